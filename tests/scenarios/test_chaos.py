"""Random disturbances with a seed: every submission ends as its undisturbed twin, and nothing is lost or repeated.

`make chaos` runs the campaign of docs/reliability.md, which takes hours; the nightly suite also runs ten disturbances.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from .chaos import EQUAL, WORSE, Chaos, Ending, missing_or_repeated, wait_for_free_devices
from .conftest import EXAMPLE, NOOP, SERIES, Lab

pytestmark = pytest.mark.scenario

DEVICES = ("fragile-1", "fragile-2")
SEED = int(os.environ.get("WQLAB_CHAOS_SEED", "1"))
STRIKES = int(os.environ.get("WQLAB_CHAOS_STRIKES", "500"))


def submit(lab: Lab, series: str, plan: str = "xfs-fsync") -> int:
    return lab.submit("--mbox", series, "--target", f"{plan}@fragile", "--blocks", "2")


@pytest.mark.nightly
def test_short_disturbance_changes_no_verdict(lab: Lab) -> None:
    chaos = Chaos(lab, SEED, DEVICES, lasting=False)
    equal, worse = submit(lab, str(NOOP)), submit(lab, str(SERIES / "inverted.mbox"))
    chaos.disturb([equal, worse], count=10)
    client = lab.client()
    reports = [client.report(submission) for submission in (equal, worse)]
    assert [Ending.of(report) for report in reports] == [EQUAL, WORSE], chaos.counts
    assert [missing_or_repeated(client, report) for report in reports] == [{}, {}]
    wait_for_free_devices(lab)


@pytest.mark.nightly
@pytest.mark.timeout(6 * 3600)
def test_campaign_changes_no_verdict(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    def tell(line: str) -> None:
        """Print a line now: a campaign takes hours."""
        with capsys.disabled():
            print(line, flush=True)

    tell(f"\nseed {SEED}")
    kinds: dict[str, Callable[[], int]] = {
        "no change": lambda: submit(lab, str(NOOP)),
        "regression": lambda: submit(lab, str(SERIES / "inverted.mbox")),
        "improvement or none": lambda: submit(lab, str(EXAMPLE)),
        "settings study": lambda: lab.submit(
            *("--settings-only", "--target", "dm-crypt-affinity@fragile", "--scenario", "LOW", "--blocks", "2"),
            *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
        ),
    }
    client = lab.client()
    twins = {}
    for kind, start in kinds.items():
        lab.wqlab("watch", str(submission := start()), codes=(0, 1))
        twins[kind] = Ending.of(client.report(submission))
    chaos = Chaos(lab, SEED, DEVICES, stop_s=float(os.environ.get("WQLAB_CHAOS_STOP_S", "5")))
    ended: dict[int, tuple[str, Ending, dict[str, int]]] = {}
    while chaos.counts.total() < STRIKES:
        started = {start(): kind for kind, start in kinds.items()}
        chaos.disturb(started, STRIKES)
        for submission, kind in started.items():
            report = client.report(submission)
            ending, damage = Ending.of(report), missing_or_repeated(client, report)
            ended[submission] = kind, ending, damage
            if ending != twins[kind] or damage:
                tell(f"submission {submission} ({kind}): {ending}, its twin {twins[kind]}; {damage}")
        tell(f"{chaos.counts.total()} disturbances, {len(ended)} submissions, {chaos.released} releases")
        tell(", ".join(f"{name} {number}" for name, number in sorted(chaos.counts.items())))
    wait_for_free_devices(lab)
    assert {submission: ending for submission, (_, ending, _) in ended.items()} == {
        submission: twins[kind] for submission, (kind, _, _) in ended.items()
    }
    assert not any(damage for _, _, damage in ended.values())
