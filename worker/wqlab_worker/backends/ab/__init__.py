"""Backends of `wqlab ab`: one machine, or an emulator on this host, without a lab around it.

They use neither labgrid nor a server. The client imports this package.
"""
