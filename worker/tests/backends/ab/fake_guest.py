"""A small program in place of QEMU: it prints its first argument on the serial line and ends as the second one says.

`stay` waits to be killed, `exit` ends like a guest that restarts, `crash` kills itself, `echo` returns what is typed.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys


def channel(name: str) -> socket.socket:
    match = re.search(rf"id={name},fd=(\d+)", " ".join(sys.argv))
    assert match, sys.argv
    return socket.socket(fileno=int(match[1]))


def main() -> None:
    text, then = sys.argv[1:3]
    console, monitor = channel("console"), channel("monitor")
    monitor.sendall(b'{"QMP": {}}\n')
    monitor.recv(4096)
    monitor.sendall(b'{"return": {}}\n')
    console.sendall(text.encode())
    if then == "exit":
        return
    if then == "crash":
        print("qemu: cannot allocate memory", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    while data := console.recv(4096):
        if then == "echo":
            console.sendall(data)


main()
