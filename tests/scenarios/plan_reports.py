"""Read figures from the reports and raw outputs of plans."""

from __future__ import annotations

import csv
import io
from typing import Any

from wqlab_contracts import traced_counts
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.traced_counts import Row, TracedTopic

from .conftest import Lab


def target(report: dict[str, Any], plan: str) -> dict[str, Any]:
    [found] = [target for target in report["targets"] if target["plan"]["name"] == plan]
    assert found["outcome"] == "passed", found["failure"]
    return dict(found)


def samples(lab: Lab, report: dict[str, Any], plan: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(lab.wqlab("samples", str(target(report, plan)["run_id"])))))


def raw_output(lab: Lab, run: int) -> list[str]:
    """Return the output of the plan's script for each boot."""
    client = lab.client()
    kept = [artifact for artifact in client.run_artifacts(run) if artifact.kind is ArtifactKind.RAW_OUTPUT]
    return [client.run_artifact(run, artifact).decode() for artifact in kept]


def waits_of_boots(lab: Lab, run: int) -> list[tuple[str, Row]]:
    """Return arm and row of each work function whose works were counted in a traced repetition."""
    client = lab.client()
    kept = [each for each in client.run_artifacts(run) if each.kind is ArtifactKind.TRACED_COUNTS]
    return [
        ("candidate" if "-candidate-" in each.name else "baseline", row)
        for each in kept
        for row in traced_counts.read(client.run_artifact(run, each).decode())
        if row.topic is TracedTopic.QUEUED
    ]


def values(rows: list[dict[str, str]], metric: str) -> dict[tuple[str, ...], float]:
    keys = ("arm", "boot", "scenario", "setting", "repetition")
    return {tuple(row[key] for key in keys): float(row["value"]) for row in rows if row["metric"] == metric}


def facts(report: dict[str, Any], plan: str) -> dict[str, str]:
    return dict(target(report, plan)["environment"]["facts"])
