"""`wqlab read-console` prints what a lab would read in a console log, without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Wqlab

from wqlab_contracts.enums import ExitCode

CASES = Path(__file__).parents[2] / "contracts/tests/consoles/cases"
OOPS = (
    "[    1.000000] EXT4-fs (vda): mounted\n"
    "[    2.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
    "[    2.000100] RIP: 0010:flush_workqueue_prep_pwqs+0x84/0x1b0\n"
    "[    2.000200] ---[ end trace 0000000000000000 ]---\n"
    "[    2.000300] Kernel panic - not syncing: Fatal exception\n"
)


def test_reports_are_shown_with_what_counts(wqlab: Wqlab, tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text(OOPS)
    ended = wqlab("read-console", str(log), "--json")
    oops, panic = json.loads(ended.out)["reports"]
    assert ended.code == ExitCode.REGRESSION
    assert (oops["first_line"], oops["last_line"], oops["charged"], oops["caused_by"]) == (2, 4, True, None)
    assert oops["stack"] == ["flush_workqueue_prep_pwqs"]
    assert (panic["kind"], panic["charged"], panic["caused_by"]) == ("panic", False, 0)
    lines = wqlab("read-console", str(log)).out.splitlines()
    assert lines[0].startswith("lines 2-4: oops (fatal): BUG: kernel NULL pointer dereference")
    assert lines[1].startswith("  counts against the kernel; defect: ")
    assert lines[3].startswith("  caused by report 0; defect: ")


def test_log_without_reports(wqlab: Wqlab, tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text("[    1.000000] EXT4-fs (vda): mounted\n[    2.0] \x1b[31mred\n")
    ended = wqlab("read-console", str(log))
    assert (ended.code, ended.out) == (0, "no kernel report\n")
    missing = wqlab("read-console", str(tmp_path / "none"))
    assert missing.code == ExitCode.USAGE and "cannot read" in missing.err


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_every_case_is_read_as_expected(wqlab: Wqlab, path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    log = tmp_path / "console.log"
    log.write_bytes("".join(f"{line}\n" for line in case["lines"]).encode())
    found = json.loads(wqlab("read-console", str(log), "--json").out)["reports"]
    expected = case["expected"].get("reports")
    if expected is not None:
        kinds = [{each["kind"]} if isinstance(each["kind"], str) else set(each["kind"]) for each in expected]
        assert len(found) == len(expected)
        assert case["expected"].get("any_order") or all(
            each["kind"] in kind for each, kind in zip(found, kinds, strict=True)
        )


def test_other_commands_start_without_the_patterns_of_consoles() -> None:
    code = "import sys, wqlab_client.cli; sys.exit('re2' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
