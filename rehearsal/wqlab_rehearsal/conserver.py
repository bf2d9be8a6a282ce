"""Configure `conserver` as the holder of a serial-over-LAN session, and the lab's way to it.

conserver keeps the console's log and serves any number of people with `console`; its protocol is its own, and labgrid
does not speak it. So socat offers a TCP port, and runs `console` for each connection. (ser2net can run it too, but
leaves processes behind if a connection ends at once.)
"""

from __future__ import annotations

from pathlib import Path

from . import bmc

HOST = "127.0.0.1"


def serial_over_lan(ipmi_port: int, password_file: Path) -> str:
    """Return the command that conserver runs: ipmitool on a terminal, with the password in a file.

    The escape character is one that no console prints at the beginning of a line: `~` would be ipmitool's.
    """
    words = f"-C {bmc.CIPHER_SUITE} -H {HOST} -p {ipmi_port} -U {bmc.USER} -f {password_file}"
    return f"/usr/bin/ipmitool -I lanplus -e ] {words} sol activate"


def write(folder: Path, name: str, ports: tuple[int, int], command: str) -> list[str]:
    """Write the configuration for the console `name` to `folder` and return conserver's command.

    `ports` are TCP ports for its clients: the main one, and that of the process which holds the console.
    """
    folder.mkdir(parents=True, exist_ok=True)
    users = folder / "passwd"
    users.write_text("*any*:\n")  # anyone on the loopback, without a password
    file = folder / "conserver.cf"
    file.write_text(f"""\
config * {{
    daemonmode no;
    redirect no;
    logfile {folder}/server.log;
}}
access * {{ trusted {HOST}; }}
default * {{
    master {HOST};
    rw *;
    logfile {folder}/&.log;
    options autoreinit, !ixon;
}}
console {name} {{
    type exec;
    exec {command};
}}
""")
    main, holder = (str(port) for port in ports)
    return ["conserver", "-C", str(file), "-P", str(users), "-M", HOST, "-p", main, "-b", holder]


def offer(name: str, port: int, conserver_port: int) -> list[str]:
    """Return the command that offers the console `name` as TCP port `port`.

    `console` may write even if somebody else was writing; that person can still read.
    """
    listen = f"TCP-LISTEN:{port},bind={HOST},reuseaddr,fork"
    return ["socat", listen, f"EXEC:console -M {HOST} -p {conserver_port} -f {name},pty,rawer,ctty,setsid"]
