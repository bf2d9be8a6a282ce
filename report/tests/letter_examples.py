"""A letter of docs/, with a line that says what its figures are, and reports of measured devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelled_examples import modelled
from report_parts import PATCH, RYZEN, build, report, ryzen, samples, target

from wqlab_contracts.api.bisections import Bisection, BisectionRequest, BisectionStep, CommitRef
from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord, FalsePositiveRate
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import (
    PAIR,
    Arm,
    BisectionState,
    BisectionStepKind,
    BisectionStepState,
    CanaryKind,
    Evidence,
    Role,
    Scale,
)
from wqlab_contracts.mail import OutgoingMail, ReplyTo
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.plan_file import read_plan
from wqlab_contracts.specs import TestPlan
from wqlab_report.letters.regression import Lab
from wqlab_report.mail import Sender, preview

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "testplans"


def plan(name: str) -> TestPlan:
    found = read_plan(PLANS / name / "plan.yaml", name).validate_as(TestPlan)
    assert found is not None
    return found


XFS_FSYNC, DM_CRYPT = plan("xfs-fsync"), plan("dm-crypt-affinity")
URL = "https://lab.example.org"
SENDER = Sender("wqlab <wqlab@lab.example.org>", ReplyTo.ALL)
LAB = Lab("wqlab <wqlab@lab.example.org>", "Ada Lovelace <ada@lab.example.org>", regzbot=True)
AT_16 = MeasuredTopology(
    cpus=32,
    core=[cpu % 16 for cpu in range(32)],
    l3=[cpu % 16 // 8 for cpu in range(32)],
    node=[cpu % 16 // 8 for cpu in range(32)],
    package=[cpu % 16 // 8 for cpu in range(32)],
)
"""Two packages; the second siblings of all cores are numbered last."""
COMMIT, PARENT, GOOD, BAD = (f"{digit:x}" * 40 for digit in (0xC, 0xB, 0xA, 0xD))


def demo_count() -> Report:
    """Return the report of docs/example-report.txt, as far as a letter shows it: its counts, title, base and device."""
    metrics = {
        "locks_per_flush": ((6, 6), (4, 4)),
        "locks_per_flush_mean": ((12.57, 12.97), (9.88, 10.76)),
        "locks_per_fsync": ((18.64, 19.46), (14.90, 16.14)),
    }
    cells = _cells("fsync", "", metrics)
    one = target(
        2, XFS_FSYNC, "xeon-2s", samples(XFS_FSYNC, "xeon-2s", cells), [""], list(PAIR), AT_16,
        RYZEN, (2, 2), {}, facts={"default affinity scope": "cache_shard", "preemption": "lazy"},
    )  # fmt: skip
    base = "be8da40e6f18" + "0" * 28
    of = {"tree": "linux-7.3", "origin": "linux-source-7.3", "release": "7.3.4", "base_commit": base}
    builds = [build(Arm.BASELINE, 1, **of), build(Arm.CANDIDATE, 2, **of)]
    made = report(2, "workqueue: Keep the pwqs of a pool together", [one], True, builds, patches=[PATCH])
    apply = made.submission.apply.model_copy(update={"base_commit": base, "release": "7.3.4"})
    return _published(made, apply=apply, tree="linux-7.3")


def model() -> Report:
    return _published(modelled())


def measured(factor: float = 0.88, *, emulated: bool = False) -> Report:
    """Return a report of dm-crypt on a machine, whose candidate has `factor` times the bandwidth of the baseline."""
    setting = "scope=cache,strict=1"
    before = (993.1, 994.9, 992.4, 995.2, 993.0, 993.8, 994.1, 992.6, 993.9, 994.6)
    noise = (1.001, 0.999, 1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.001, 0.999)
    after = [round(value * factor * each, 2) for value, each in zip(before, noise, strict=True)]
    metrics = {"bandwidth": (before, after), "cpu_utilisation": ([round(v / 12.4, 2) for v in before],) * 2}
    cells = _cells("LOW", setting, metrics)
    one = target(
        31, DM_CRYPT, "ryzen-3900x", samples(DM_CRYPT, "ryzen-3900x", cells, emulated=emulated), [setting], list(PAIR),
        ryzen(), RYZEN, (10, 10), {}, emulated=emulated,
        facts={"cpu model": "AMD Ryzen 9 3900X 12-Core Processor", "governor": "performance", "scale": ""},
    )  # fmt: skip
    record = CanaryRecord(
        device="ryzen-3900x-1", device_type="ryzen-3900x", plan=DM_CRYPT.name, kind=CanaryKind.OTHER_LAYOUT,
        canaries=40, since=datetime(2026, 1, 1, tzinfo=UTC), until=datetime(2026, 3, 1, tzinfo=UTC),
        false_positives=_RATE,
        metrics=[
            CanaryMetric(
                metric="bandwidth", unit="MiB/s", scale=Scale.RATIO, role=Role.PRIMARY, evidence=Evidence.PERFORMANCE,
                scenario="LOW", floor=0.31, blocks=400, effects=[], false_positives=_RATE,
            )
        ],
        line="On ryzen-3900x-1, 240 A/A comparisons of dm-crypt-affinity: 6 called different, 2.5 %",
    )  # fmt: skip
    one = one.model_copy(update={"canaries": [record]})
    of = {"tree": "wq", "origin": "https://git.kernel.org/pub/scm/linux/kernel/git/tj/wq.git", "base_commit": PARENT}
    builds = [build(Arm.BASELINE, 1, **of), build(Arm.CANDIDATE, 2, **of)]
    made = report(31, "workqueue: Place an example in time", [one], True, builds, patches=[PATCH])
    apply = made.submission.apply.model_copy(update={"base_commit": PARENT, "release": "7.3.0-rc1"})
    return _published(made, apply=apply, tree="wq")


_RATE = FalsePositiveRate(comparisons=240, called_different=6, constant=0, rate=0.025, rate_low=0.009, rate_high=0.053)


def bisection(**changes: Any) -> Bisection:
    """Return the bisection that `measured` has confirmed."""
    request = BisectionRequest(
        tree="wq", good=GOOD, bad="for-next", plan="dm-crypt-affinity", device_type="ryzen-3900x", metric="bandwidth",
    )  # fmt: skip
    made = Bisection(
        id=4, request=request, owner="ada", state=BisectionState.FOUND, reason="", good=GOOD, bad=BAD, commits=64,
        culprit=CommitRef(
            commit=COMMIT, subject="workqueue: Place an example in time", author="Eve <eve@example.org>", is_merge=False
        ),
        first=COMMIT, probability=0.99, effect=-12.1, ci95=(-12.6, -11.5), culprit_effect=-12.0,
        culprit_ci95=(-12.2, -11.8), reverted=revert(), scale=Scale.RATIO, unit="MiB/s", failure_rate=None,
        failure_title="",
        device="ryzen-3900x-1", boots=30, plain_boots=120, shift_id=None, watch=None,
        created_at=datetime(2026, 3, 1, tzinfo=UTC), ended_at=None,
    )  # fmt: skip
    return made.model_copy(update=changes)


def revert(**changes: Any) -> BisectionStep:
    """Return the measurement of the commit reverted on top of the bad one."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    made = BisectionStep(
        id=9, kind=BisectionStepKind.REVERT, state=BisectionStepState.MEASURED, level=0, baseline=BAD, candidate=COMMIT,
        submission_id=32, reason="", effect=13.52, ci95=(13.41, 13.66), verdict=None, passed=0, failed=0, boots=20,
        submitted_at=at, ended_at=at,
    )  # fmt: skip
    return made.model_copy(update=changes)


def _cells(
    scenario: str, setting: str, metrics: Mapping[str, tuple[Sequence[float], Sequence[float]]]
) -> dict[tuple[str, str, str, Arm], Sequence[float]]:
    return {
        (scenario, setting, name, arm): values
        for name, sides in metrics.items()
        for arm, values in zip(PAIR, sides, strict=True)
    }


def _published(made: Report, **submission: Any) -> Report:
    """Return the report as a lab with a public URL makes it."""
    changed = made.submission.model_copy(update={"author": "Grace <grace@example.org>", **submission})
    return made.model_copy(update={"lab_url": URL, "submission": changed})


def _written(what: str, mail: OutgoingMail) -> str:
    head = [f"From: {mail.sender}", f"To: {', '.join(mail.to)}"]
    head += [f"Cc: {', '.join(mail.cc)}"] if mail.cc else []
    return "\n".join([f"({what})", "", *head, f"Subject: {mail.subject}", "", mail.body])


LETTERS: dict[str, Callable[[], str]] = {
    "example-letter-count.txt": lambda: _written(
        "An example. Its counts, title, base and topology are those of example-report.txt, which a lab has written.",
        preview(demo_count(), None, SENDER),
    ),
}
"""File in docs/ -> its content."""
