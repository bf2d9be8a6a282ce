"""Run the base tree's scripts/checkpatch.pl on each patch in the sandbox and parse its findings."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import CheckpatchFinding

from ..sandbox import LINE_LIMIT, MIB, Finished, Limits, Sandbox

SCRIPT = "scripts/checkpatch.pl"
FINDINGS_LIMIT = 500
TOTAL_S = 600.0
"""Longest time for all patches of a series: the queue of applies waits for it."""
TOTAL_OUTPUT_BYTES = 16 * MIB
"""Most output for all patches of a series."""
_LIMITS = Limits(wall_s=300.0, log_bytes=4 * MIB, disk_bytes=MIB, processes=64)
_FINDING = LinearPattern(r"^(ERROR|WARNING|CHECK):(?:[A-Z0-9_]+: )?\s*(.*)$")
_PLACE = LinearPattern(r"^#\d+: (?:FILE: (.*?):?)?$")
_SEVERITY: dict[str, Literal["error", "warning", "check"]] = {
    "ERROR": "error",
    "WARNING": "warning",
    "CHECK": "check",
}


@dataclass(frozen=True)
class Checked:
    """Findings of checkpatch, which fail no series."""

    findings: list[CheckpatchFinding]
    skipped: str = ""
    """Why not every patch was checked; empty if all were."""


def checkpatch(tree: Path, patches: Sequence[Path]) -> Checked:
    """Check all patches in order with the tree's checkpatch.pl, until TOTAL_S or TOTAL_OUTPUT_BYTES is reached."""
    if not (tree / SCRIPT).is_file():
        return Checked([], f"the base tree has no {SCRIPT}")
    findings: list[CheckpatchFinding] = []
    skipped = ""
    deadline, output_left = time.monotonic() + TOTAL_S, TOTAL_OUTPUT_BYTES
    for number, patch in enumerate(patches, start=1):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or output_left <= 0:
            limit = f"{TOTAL_S:.0f} s" if left_s <= 0 else f"{TOTAL_OUTPUT_BYTES // MIB} MiB of output"
            reason = f"checkpatch exceeded its limit of {limit} for all patches before patch {number} of {len(patches)}"
            return Checked(findings[:FINDINGS_LIMIT], skipped or reason)
        log = io.BytesIO()
        limits = replace(_LIMITS, wall_s=min(_LIMITS.wall_s, left_s), log_bytes=min(_LIMITS.log_bytes, output_left))
        finished = Sandbox(read_only={"/src": tree, "/patch": patch}, limits=limits).run(
            ["perl", f"/src/{SCRIPT}", "--root=/src", "--no-summary", "--show-types", "--color=never", "/patch"],
            log=log,
            working_directory="/src",
        )
        output_left -= len(log.getvalue())
        findings += parse(log.getvalue().decode(errors="replace"), patch.name)
        if reason := _incomplete(finished):
            skipped = skipped or f"{reason} on patch {number} of {len(patches)}"
    return Checked(findings[:FINDINGS_LIMIT], skipped)


def _incomplete(finished: Finished) -> str:
    """Return why checkpatch did not check a patch to its end; empty if it did. With findings its status is 1."""
    if finished.stopped:
        return f"checkpatch exceeded its limit of {finished.stopped.value}"
    if finished.log_truncated:
        return "checkpatch printed too much"
    return "" if finished.exit_code in {0, 1} else f"checkpatch ended with status {finished.exit_code}"


def parse(output: str, patch: str) -> list[CheckpatchFinding]:
    """Parse the long output of checkpatch.

    `where` of a finding is file:line, or the name of the patch if the finding is about the commit message.
    """
    findings = []
    for lines in _blocks(output):
        match = _FINDING.match(lines[0])
        if match is None:
            continue
        place = _PLACE.match(lines[1]) if len(lines) > 1 else None
        where = place[1] if place and place[1] else patch
        findings.append(CheckpatchFinding(severity=_SEVERITY[match[1]], text=match[2], where=where))
    return findings


def _blocks(output: str) -> Iterator[list[str]]:
    """Yield the lines between blank lines, each of at most LINE_LIMIT characters."""
    block: list[str] = []
    for line in output.split("\n"):
        if line.strip():
            block.append(line[:LINE_LIMIT])
        elif block:
            yield block
            block = []
    if block:
        yield block
