"""`wqlab inspect` prints which patches of an mbox a lab would apply, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Wqlab

from wqlab_contracts.enums import ExitCode

CASES = Path(__file__).parents[2] / "worker/tests/mail_cases"


def test_patches_are_shown_in_the_order_of_application(wqlab: Wqlab) -> None:
    ended = wqlab("inspect", str(CASES / "E1-patchwork-v2.mbox"), "--json")
    found = json.loads(ended.out)
    assert ended.code == 0
    assert [patch["message_id"] for patch in found["patches"]] == ["m1@example.org", "m2@example.org", "m3@example.org"]
    assert found["patches"][0]["title"] == "subsys: change 1" and found["patches"][0]["author"].startswith("Dev A <")
    assert [change["path"] for change in found["patches"][0]["files"]] == ["kernel/f1.c"]
    assert (found["version"], found["refusal"], found["base"]) == (2, None, None)
    assert "subsys: change 3" in wqlab("inspect", str(CASES / "E1-patchwork-v2.mbox")).out


def test_refusal_has_a_reason_and_an_exit_code(wqlab: Wqlab) -> None:
    ended = wqlab("inspect", str(CASES / "I1-octet-stream-x-default.mbox"), "--json")
    assert ended.code == ExitCode.SERIES_FAILED
    assert "octet-stream" in json.loads(ended.out)["refusal"]
    missing = wqlab("inspect", str(CASES / "A1-gb18030-reply-raid.mbox"), "--message-id", "other@example.org")
    assert missing.code == ExitCode.SERIES_FAILED and "refused: " in missing.out


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_every_case_is_inspected_as_expected(wqlab: Wqlab, path: Path) -> None:
    case = json.loads(path.read_text())
    named = ["--message-id", case["message_id"]] if case["run"] == "thread" else []
    ended = wqlab("inspect", str(path.with_suffix(".mbox")), *named, "--json")
    found, expected = json.loads(ended.out), case["expected"]
    if case["run"] == "thread":
        assert [patch["message_id"] for patch in found["patches"]] == expected["patches"]
        assert found["refusal"] is None
    if "titles" in expected:
        assert [patch["title"] for patch in found["patches"]] == expected["titles"]
    if case["run"] == "inspect" and "patches" in expected:
        assert [patch["title"] for patch in found["patches"]] == expected["patches"]
    if expected.get("usable") or expected.get("ok"):
        assert found["refusal"] is None
    if "commands" in expected:
        assert found["commands"][0]["commands"] == expected["commands"] and ended.code == 0


def test_what_cannot_be_read_is_a_mistake_of_usage(wqlab: Wqlab, tmp_path: Path) -> None:
    file = tmp_path / "series.mbox"
    assert wqlab("inspect", str(file)).code == ExitCode.USAGE
    file.write_text("x")
    assert wqlab("inspect", str(file), "--message-id", "no id").code == ExitCode.USAGE
    assert wqlab("inspect", str(file), "--revision", "2").code == ExitCode.USAGE
    assert wqlab("inspect", str(file)).code == ExitCode.SERIES_FAILED
