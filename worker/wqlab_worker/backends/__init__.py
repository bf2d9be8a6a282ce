"""Backends: run blocks on a device of a lab, through labgrid or LAVA. Only this package imports labgrid."""
