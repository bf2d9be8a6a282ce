"""The shell function `load_module`, by which plans load a kernel module after the modules that it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import call

NAME = "xfs-fsync"
INSMOD = 'insmod() { echo "$*" >>"$WORK/inserted"; }\n'


def load(folder: Path, files: dict[str, str], insmod: str = INSMOD) -> tuple[list[str], dict[str, str]]:
    """Call `load_module outer` in a folder with these files.

    Return the arguments of each call of insmod, and metric -> reason of what the script reports as unsupported.
    """
    plan = folder / "files"
    plan.mkdir()
    for name, text in files.items():
        (plan / name).write_text(text)
    found = call(NAME, f"{insmod}cd {plan}\nload_module outer speed=1 || record fact loaded no", folder)
    inserted = folder / "work/inserted"
    calls = inserted.read_text().splitlines() if inserted.exists() else []
    assert (found.facts.get("loaded") == "no") == bool(found.unsupported)
    return calls, dict(found.unsupported)


def test_needed_modules_are_loaded_first_and_without_its_parameters(tmp_path: Path) -> None:
    files = {"outer.ko": "", "outer.depends": "wqlab_inner\nwqlab_middle\n"}
    calls, _ = load(tmp_path, files)
    assert calls == ["./wqlab_inner.ko", "./wqlab_middle.ko", "./outer.ko speed=1"]


def test_module_that_is_built_in_is_not_loaded(tmp_path: Path) -> None:
    assert load(tmp_path, {"outer.builtin": ""}) == ([], {})


def test_refused_module_is_named(tmp_path: Path) -> None:
    refuse = 'insmod() { echo "insmod: $1: Invalid module format" >&2; return 1; }\n'
    calls, unsupported = load(tmp_path, {"outer.ko": "", "outer.depends": "wqlab_inner\n"}, refuse)
    assert calls == []
    assert unsupported["*"].endswith(
        "does not load module wqlab_inner: insmod: ./wqlab_inner.ko: Invalid module format"
    )


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"outer.absent": "this kernel has no module outer\n"}, "this kernel has no module outer"),
        ({}, "module outer did not come with the plan"),
    ],
)
def test_absent_module_is_unsupported_with_its_reason(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    assert load(tmp_path, files) == ([], {"*": reason})
