"""Boots that a device measures alone, without a connection to the worker; shared by LAVA and instrumented devices.

The worker sends the list of the script's calls with the boot, `onboard/calls.sh` runs them, and their results are
replayed to the measuring loop.
"""
