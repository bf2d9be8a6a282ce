"""What `lab/setup.sh` does to a host on which it installs packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

SETUP = Path(__file__).parents[1] / "setup.sh"
UNITS = "/etc/systemd/system"


def mask(folder: Path, *packages: str) -> None:
    """Run the part of the script that masks services, in a folder in place of systemd's."""
    _, start, rest = SETUP.read_text().partition("for name; do\n")
    body, end, _ = rest.partition("\ndone\n")
    subprocess.run(["sh", "-euc", (start + body + end).replace(UNITS, str(folder)), "setup", *packages], check=True)


def test_daemons_of_rehearsal_machines_do_not_start_with_the_host(tmp_path: Path) -> None:
    daemons = ("snmpd", "ser2net", "conserver-server", "openipmi", "prometheus")
    units = tmp_path / "units"
    mask(units, "git", *daemons)
    assert {unit.name: str(unit.readlink()) for unit in units.iterdir()} == {
        f"{name}.service": "/dev/null" for name in daemons
    }


def test_a_unit_of_the_operator_stays(tmp_path: Path) -> None:
    (unit := tmp_path / "snmpd.service").write_text("[Service]\n")
    mask(tmp_path, "snmpd")
    assert unit.read_text() == "[Service]\n"
