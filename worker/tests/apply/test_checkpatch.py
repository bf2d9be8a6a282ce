"""Output of checkpatch."""

from __future__ import annotations

from pathlib import Path

from wqlab_worker.apply.checkpatch import checkpatch, parse

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


def test_tree_without_checkpatch_has_no_findings(tmp_path: Path) -> None:
    assert checkpatch(tmp_path, [tmp_path / "0001-x.patch"]) == []
