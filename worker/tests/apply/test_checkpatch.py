"""Output of checkpatch."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.apply.checkpatch import SCRIPT, Checked, checkpatch, parse
from wqlab_worker.sandbox import MIB, Limits

OUTPUT = """\
WARNING:LONG_LINE: line length of 120 exceeds 100 columns
#12: FILE: kernel/workqueue.c:10:
+long

ERROR: Missing Signed-off-by: line(s)

CHECK:SPACING: spaces preferred around that '+'
#20: FILE: kernel/fork.c:7:

total: 1 errors
"""


def test_findings_have_severity_text_and_place() -> None:
    findings = [(finding.severity, finding.where, finding.text) for finding in parse(OUTPUT, "0001-x.patch")]
    assert findings == [
        ("warning", "kernel/workqueue.c:10", "line length of 120 exceeds 100 columns"),
        ("error", "0001-x.patch", "Missing Signed-off-by: line(s)"),
        ("check", "kernel/fork.c:7", "spaces preferred around that '+'"),
    ]


def tree_with(folder: Path, script: str) -> tuple[Path, list[Path]]:
    """Return a tree whose checkpatch.pl is `script`, and two patches."""
    tree = folder / "tree"
    (tree / "scripts").mkdir(parents=True)
    (tree / SCRIPT).write_text(script)
    patches = [folder / "0001-x.patch", folder / "0002-y.patch"]
    for patch in patches:
        patch.write_text("a patch")
    return tree, patches


def test_tree_without_checkpatch_is_not_clean(tmp_path: Path) -> None:
    assert checkpatch(tmp_path, [tmp_path / "0001-x.patch"]) == Checked(
        [], "the base tree has no scripts/checkpatch.pl"
    )


@pytest.mark.parametrize(
    ("script", "findings", "skipped"),
    [
        ("exit 0;", 0, ""),
        ('print "ERROR:X: wrong\\n"; exit 1;', 2, ""),
        ('die "Use of uninitialized value";', 0, "checkpatch ended with status 255 on patch 1 of 2"),
        ('$| = 1; print "ERROR:X: wrong\\n\\n"; kill 9, $$;', 2, "checkpatch ended with status 137 on patch 1 of 2"),
        ("while (1) { print 'x' x 65536; }", 0, "checkpatch exceeded its limit of time on patch 1 of 2"),
    ],
)
def test_checkpatch_that_does_not_end_well_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, findings: int, skipped: str
) -> None:
    monkeypatch.setattr("wqlab_worker.apply.checkpatch._LIMITS", Limits(wall_s=3.0, log_bytes=MIB))
    checked = checkpatch(*tree_with(tmp_path, script))
    assert (len(checked.findings), checked.skipped) == (findings, skipped)


@pytest.mark.parametrize(
    ("bound", "value", "script", "skipped"),
    [
        ("TOTAL_S", 1.5, "sleep 600;", "checkpatch exceeded its limit of"),
        ("TOTAL_OUTPUT_BYTES", MIB, "print 'x' x 2000000;", "checkpatch printed too much"),
    ],
)
def test_time_and_output_are_limited_for_all_patches_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, script: str, skipped: str
) -> None:
    monkeypatch.setattr(f"wqlab_worker.apply.checkpatch.{bound}", value)
    tree, patches = tree_with(tmp_path, script)
    checked = checkpatch(tree, patches * 200)  # they would take longer than a test may
    assert checked.skipped.startswith(skipped)
