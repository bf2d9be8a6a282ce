"""A machine that is only a serial port: started at power on, it prints what firmware and a golden system print.

    machine_script.py PORT [silent | login | garbled]

It listens at PORT as QEMU's serial port does, says its ready line with a new boot id, and echoes what it gets.
"""

from __future__ import annotations

import socket
import sys
import time
import uuid


def main() -> None:
    port, mode = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    server = socket.create_server(("127.0.0.1", port))
    line, _ = server.accept()
    if mode == "garbled":
        line.sendall(bytes(range(128, 256)) * 20)
    elif mode == "login":
        line.sendall(b"Debian GNU/Linux 12 server ttyS1\r\n\r\nserver login: ")
    elif mode != "silent":
        line.sendall(b"UEFI firmware 1.0\r\nStarting the golden system\r\n")
        time.sleep(0.3)
        line.sendall(f"wqlab-ready token=- boot_id={uuid.uuid4()}\r\n".encode())
    while data := line.recv(4096):
        if mode != "silent":
            line.sendall(data)


if __name__ == "__main__":
    main()
