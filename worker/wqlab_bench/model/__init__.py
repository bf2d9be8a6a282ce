"""Modelled devices: the patched QEMU whose CPUs run in parallel in virtual time.

QEMU executes all CPUs in turn on one host thread, and each CPU has a clock of its own: the CPU that is behind all
others runs next. The patch keeps the clocks; the plugin of instrumented devices adds what instructions, cache lines and
interrupts cost by the device type's cost profile (docs/model.md).
"""
