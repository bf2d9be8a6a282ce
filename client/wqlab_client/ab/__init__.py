"""`wqlab ab`: compare two kernels on one machine, or in an emulator on this host, without a lab.

Only this package of the client imports the worker and the bench. It uses the parts of them that need no server.
"""
