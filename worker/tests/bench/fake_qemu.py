"""A small real program that behaves like QEMU towards `Machine`: a serial line and a monitor on inherited sockets.

Serial line: prints `wqlab-ready token=- boot_id=fake` at start; echoes what it gets; `exit` ends the program, `flood N`
prints N numbered lines. Every monitor command is told on the serial line. With `--refuse` it ends at once.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys


def main() -> None:
    if "--refuse" in sys.argv:
        sys.exit("could not set up host forwarding rule")
    words = " ".join(sys.argv)
    console = socket.socket(fileno=int(re.search(r"id=console,fd=(\d+)", words)[1]))
    monitor = socket.socket(fileno=int(re.search(r"id=monitor,fd=(\d+)", words)[1]))
    monitor.sendall(b'{"QMP": {}}\n')
    console.sendall(b"wqlab-ready token=- boot_id=fake\n")
    ready = selectors.DefaultSelector()
    ready.register(console, selectors.EVENT_READ)
    ready.register(monitor, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            data = key.fileobj.recv(4096)
            if not data:
                return
            if key.fileobj is monitor:
                for line in data.splitlines():
                    command = json.loads(line)
                    arguments = json.dumps(command.get("arguments") or {}, sort_keys=True)
                    monitor.sendall(b'{"event": "SOMETHING"}\n{"return": {}}\n')
                    if command["execute"] != "qmp_capabilities":
                        console.sendall(f"monitor: {command['execute']} {arguments}\n".encode())
            elif data == b"exit":
                sys.exit("guest switched itself off")
            elif data.startswith(b"flood "):
                for number in range(int(data.split()[1])):
                    console.sendall(f"line {number}\n".encode())
                console.sendall(b"flooded\n")
            else:
                console.sendall(b"got " + data + b"\n")


main()
