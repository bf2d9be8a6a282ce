"""Configure `ser2net` as the console server: it holds a console and offers it as a TCP port."""

from __future__ import annotations

from pathlib import Path

from . import bmc

RAW, RFC2217 = "tcp", "telnet(rfc2217),tcp"
"""ser2net's accepters for labgrid's protocols: bytes only, or with commands that set the port's speed (RFC 2217)."""


def serial_over_lan(ipmi_port: int) -> str:
    """Return ser2net's connector for the serial-over-LAN session of a BMC on this machine."""
    return f"ipmisol,lan -p {ipmi_port} -U {bmc.USER} -P {bmc.PASSWORD} 127.0.0.1,115200"


def serial_port(line: Path) -> str:
    """Return ser2net's connector for a serial port of this machine."""
    return f"serialdev,{line},115200n81,local"


def write(folder: Path, port: int, accepter: str, connector: str) -> list[str]:
    """Write the configuration to `folder` and return ser2net's command. `port` is the TCP port for the lab.

    `accepter` is RAW or RFC2217, as the exporter's file says. `connector` is what ser2net holds.

    A new connection ends an older one: a session that died must not keep the console.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "ser2net.yaml"
    file.write_text(f"""\
connection: &console
  accepter: {accepter},127.0.0.1,{port}
  connector: {connector}
  options:
    kickolduser: true
""")
    # -d: in the foreground with messages on standard error, -n would detach; -u: no UUCP locks.
    return ["ser2net", "-d", "-u", "-c", str(file), "-P", str(folder / "ser2net.pid")]
