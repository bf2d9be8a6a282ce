"""Run the base tree's scripts/checkpatch.pl on each patch in the sandbox and parse its findings."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from wqlab_contracts.messages import CheckpatchFinding

from ..sandbox import MIB, Limits, Sandbox

SCRIPT = "scripts/checkpatch.pl"
FINDINGS_LIMIT = 500
_LIMITS = Limits(wall_s=300.0, log_bytes=4 * MIB, disk_bytes=MIB, processes=64)
_FINDING = re.compile(r"^(ERROR|WARNING|CHECK):(?:[A-Z0-9_]+: )?\s*(.*)$")
_PLACE = re.compile(r"^#\d+: (?:FILE: (.*?):?)?$")
_SEVERITY: dict[str, Literal["error", "warning", "check"]] = {
    "ERROR": "error",
    "WARNING": "warning",
    "CHECK": "check",
}


def checkpatch(tree: Path, patches: Sequence[Path]) -> list[CheckpatchFinding]:
    """Return the findings of all patches in order; empty if the tree has no checkpatch.pl. Findings fail no series."""
    findings: list[CheckpatchFinding] = []
    for patch in patches if (tree / SCRIPT).is_file() else []:
        log = io.BytesIO()
        Sandbox(read_only={"/src": tree, "/patch": patch}, limits=_LIMITS).run(
            ["perl", f"/src/{SCRIPT}", "--root=/src", "--no-summary", "--show-types", "--color=never", "/patch"],
            log=log,
            working_directory="/src",
        )
        findings += parse(log.getvalue().decode(errors="replace"), patch.name)
    return findings[:FINDINGS_LIMIT]


def parse(output: str, patch: str) -> list[CheckpatchFinding]:
    """Parse the long output of checkpatch.

    `where` of a finding is file:line, or the name of the patch if the finding is about the commit message.
    """
    findings = []
    for block in re.split(r"\n\s*\n", output):
        lines = block.strip("\n").split("\n")
        match = _FINDING.match(lines[0])
        if match is None:
            continue
        place = _PLACE.match(lines[1]) if len(lines) > 1 else None
        where = place[1] if place and place[1] else patch
        findings.append(CheckpatchFinding(severity=_SEVERITY[match[1]], text=match[2], where=where))
    return findings
