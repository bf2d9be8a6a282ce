"""Write the findings of a report at lines of the source as annotations of a diff, for GitHub and for GitLab.

GitHub: "Workflow commands for GitHub Actions"; GitLab: "Code Quality report format".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm

from ..content import shared_text

MOST = 200
"""Most annotations of a report."""
_PLACE = re.compile(r"([^\s:][^:\s]*):([1-9][0-9]{0,8})(?::([1-9][0-9]{0,8}))?$")
_ERROR = re.compile(r"([^\s:][^:\s]*):([1-9][0-9]{0,8}):(?:([1-9][0-9]{0,8}):)? (?:fatal )?error: (.*)")


class Level(StrEnum):
    """How severe an annotation is, the most severe first; the values are GitHub's commands."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


_SEVERITY = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTICE: "info"}
"""Severities of GitLab."""
_OF_CHECKPATCH = {"error": Level.WARNING, "warning": Level.WARNING, "check": Level.NOTICE}


@dataclass(frozen=True)
class Annotation:
    """A finding at a line of the source."""

    level: Level
    path: str
    line: int
    title: str
    text: str
    column: int | None = None


def annotations_of(report: Report) -> list[Annotation]:
    """Return what was found at lines of the source, each once, the most severe first, at most MOST.

    These are compiler errors and new warnings, kernel reports of the candidate at the first changed file of their
    trace, and findings of checkpatch.
    """
    found = dict.fromkeys([*_compiler(report), *_kernel(report), *_checkpatch(report)])
    return sorted(found, key=lambda each: list(Level).index(each.level))[:MOST]


def render_github(found: Sequence[Annotation]) -> str:
    """Return a workflow command for each annotation."""
    lines = []
    for each in found:
        fields = {"file": each.path, "line": f"{each.line}", "title": each.title}
        fields |= {"col": f"{each.column}"} if each.column is not None else {}
        properties = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
        lines.append(f"::{each.level.value} {properties}::{_data(each.text)}\n")
    return "".join(lines)


def render_gitlab(found: Sequence[Annotation]) -> str:
    """Return the annotations as a Code Quality report.

    A fingerprint does not depend on the line number, so that GitLab recognises a finding whose line has moved.
    """
    issues = [
        {
            "description": f"{each.title}: {each.text}",
            "check_name": each.title,
            "fingerprint": hashlib.sha256(f"{each.path}\n{each.title}\n{each.text}".encode()).hexdigest(),
            "severity": _SEVERITY[each.level],
            "location": {"path": each.path, "lines": {"begin": each.line}},
        }
        for each in found
    ]
    return f"{json.dumps(issues, indent=1, ensure_ascii=False)}\n"


def _compiler(report: Report) -> Iterator[Annotation]:
    for build in shared_text.kernels(report):
        if build.arm is not Arm.CANDIDATE:
            continue
        if build.failure is not None:
            for match in map(_ERROR.match, build.failure.excerpt.splitlines()):
                if match is not None:
                    column = int(match[3]) if match[3] else None
                    yield Annotation(Level.ERROR, match[1], int(match[2]), "compiler error", _text(match[4]), column)
        for warning in build.new_warnings:
            if (place := _PLACE.match(warning.where)) is not None:
                column = int(place[3]) if place[3] else None
                text = _text(f"{warning.text} {warning.option}")
                yield Annotation(Level.WARNING, place[1], int(place[2]), "compiler warning", text, column)


def _kernel(report: Report) -> Iterator[Annotation]:
    changed = {file for patch in report.submission.apply.patches for file in patch.files}
    for target in report.targets:
        for finding in target.findings:
            frames = [frame for frame in finding.stack if frame.file and frame.line]
            at = next((frame for frame in frames if frame.file in changed), None)
            if finding.arm is Arm.CANDIDATE and at is not None:
                level = Level.ERROR if finding.fatal else Level.WARNING
                text = f"{finding.title} ({target.plan.name} on {target.device_type})"
                yield Annotation(level, at.file, at.line, shared_text.kind(finding).lower(), _text(text))


def _checkpatch(report: Report) -> Iterator[Annotation]:
    for finding in report.submission.apply.checkpatch:
        if (place := _PLACE.match(finding.where)) is not None:
            level = _OF_CHECKPATCH[finding.severity]
            yield Annotation(level, place[1], int(place[2]), "checkpatch", _text(finding.text))


def _text(text: str) -> str:
    """Return one line without control characters."""
    return "".join(each if each.isprintable() else " " for each in " ".join(text.split()))[:1000]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
