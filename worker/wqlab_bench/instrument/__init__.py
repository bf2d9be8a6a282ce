"""Instrumented emulation: build the TCG plugin, write QEMU's arguments, read the plugin's output.

An instrumented device executes one guest instruction per nanosecond of its clock (-icount), so the same boot runs the
same instructions each time. The plugin counts instructions and cache lines that move between CPUs in windows that the
guest marks, and carries results out of the guest (docs/instrumented.md).
"""
