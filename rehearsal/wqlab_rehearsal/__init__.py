"""Rehearsal machines: QEMU behind the daemons and protocols of the machines in docs/hardware.

`machines` says what they are. One module writes the configuration of each daemon: `bmc`, `console_server`, `pdu`,
`netboot`; `network` and `serial_line` are programs of their own. `prepare` writes everything that a machine needs.
"""
