"""A small program in place of QEMU, with a serial line and a monitor on inherited sockets.

It prints `wqlab-ready token=- boot_id=fake` on the serial line at start and echoes its input. The input `exit` ends the
program, `crash` kills it, `flood N` prints N numbered lines. Every monitor command is printed on the serial line. With
`--refuse` it ends at once.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import socket
import sys


def main() -> None:
    if "--refuse" in sys.argv:
        sys.exit("could not set up host forwarding rule")
    words = " ".join(sys.argv)

    def channel(name: str) -> socket.socket:
        match = re.search(rf"id={name},fd=(\d+)", words)
        assert match, words
        return socket.socket(fileno=int(match[1]))

    console = channel("console")
    monitor = channel("monitor")
    monitor.sendall(b'{"QMP": {}}\n')
    console.sendall(b"wqlab-ready token=- boot_id=fake\n")
    ready = selectors.DefaultSelector()
    ready.register(console, selectors.EVENT_READ, console)
    ready.register(monitor, selectors.EVENT_READ, monitor)
    while True:
        for key, _ in ready.select():
            data = key.data.recv(4096)
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
                print("guest switched itself off", file=sys.stderr)
                return
            elif data == b"crash":
                os.kill(os.getpid(), signal.SIGKILL)
            elif data.startswith(b"flood "):
                for number in range(int(data.split()[1])):
                    console.sendall(f"line {number}\n".encode())
                console.sendall(b"flooded\n")
            else:
                console.sendall(b"got " + data + b"\n")


main()
