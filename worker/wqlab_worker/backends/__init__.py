"""How a run reaches a device: one module a lab technology. Only this package imports labgrid."""
