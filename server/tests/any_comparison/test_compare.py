"""Comparison of any two sides: pairing, environments, what is said, and the offered run."""

from __future__ import annotations

from typing import Any

import pytest

from wqlab_contracts.api.any_comparison import AnyComparison, Pairing
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import CommitPair, Series

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration

NOISE = [0.0, 0.4, -0.3, 0.2, -0.5, 0.1]


def locks(shift: float) -> Any:
    """Return values with a spread between blocks; the candidate has `shift` more."""

    def value(arm: Arm, setting: str, metric: str, block: int) -> float:
        return 100.0 + NOISE[block % 6] + (shift + NOISE[(block + 2) % 6] if arm is Arm.CANDIDATE else 0.0)

    return value


def compare(lab: LabUnderTest, left: str, right: str, status: int = 200) -> Any:
    answer = lab.client.get(
        "/api/v1/compare",
        params={"left": left, "right": right},
        headers={"Authorization": f"Bearer {lab.token}"},
    )
    assert answer.status_code == status, answer.text
    return AnyComparison.model_validate_json(answer.content) if status == 200 else answer.json()["detail"]


def measured(lab: LabUnderTest, shift: float, **more: Any) -> int:
    lab.worker.value = locks(shift)
    submission_id = lab.submit("locks@single", blocks=6, **more)
    lab.finished(submission_id)
    return submission_id


def test_arms_of_one_submission_are_paired(lab: LabUnderTest) -> None:
    number = measured(lab, 30)
    found = compare(lab, f"{number}:baseline", str(number))
    assert (found.pairing, found.differences, found.paired_run) == (Pairing.PAIRED, [], None)
    assert (found.left.arm, found.right.arm) == (Arm.BASELINE, Arm.CANDIDATE)
    figure = found.figures[0]
    assert (figure.metric, figure.pairs) == ("locks_per_flush", 6)
    assert figure.ci95 is not None
    assert figure.ci95[0] < 30 < figure.ci95[1]
    assert "a difference beyond noise" in figure.text
    reported = next(c for c in lab.report(number).targets[0].comparisons if c.metric == "locks_per_flush")
    assert figure.effect == pytest.approx(reported.effect)
    assert figure.ci95 == pytest.approx(reported.ci95)


def test_two_submissions_on_one_device_have_a_wider_interval(lab: LabUnderTest) -> None:
    first, second = measured(lab, 30), measured(lab, 33)
    found = compare(lab, f"{first}:candidate", f"{second}:candidate")
    assert (found.pairing, found.differences) == (Pairing.UNPAIRED, [])
    figure = found.figures[0]
    assert (figure.effect, figure.pairs) == (pytest.approx(3), 0)
    assert figure.ci95 is not None
    paired = compare(lab, f"{first}:baseline", f"{first}:candidate").figures[0].ci95
    assert paired is not None
    assert figure.ci95[1] - figure.ci95[0] > paired[1] - paired[0]
    assert found.paired_run is not None
    assert found.paired_run.request is None
    assert "made from patches" in found.paired_run.why and "`--walk`" in found.paired_run.why


def test_commits_of_one_tree_are_offered_as_a_pair(lab: LabUnderTest) -> None:
    def pair(letter: str) -> Series:
        return Series(commits=CommitPair(baseline="b" * 40, candidate=letter * 40, ref="refs/heads/main"))

    first, second = measured(lab, 30, series=pair("c")), measured(lab, 33, series=pair("d"))
    offer = compare(lab, str(first), str(second)).paired_run
    assert offer is not None
    assert offer.request is not None
    assert offer.request.series is not None
    assert offer.request.series.commits == CommitPair(baseline="c" * 40, candidate="d" * 40, ref="refs/heads/main")
    (target,) = offer.request.targets
    assert (target.plan, target.device_type, target.device) == ("locks", "single", "single-1")


def test_another_device_type_has_no_interval(lab: LabUnderTest) -> None:
    first = measured(lab, 30)
    second = lab.submit("locks@device", blocks=6)
    lab.finished(second)
    found = compare(lab, f"{first};device_type=single", f"{second};device_type=device")
    assert found.pairing is Pairing.ENVIRONMENTS
    assert {"device type", "device"} <= {each.name for each in found.differences}
    figure = found.figures[0]
    assert figure.device_types == ("single", "device")
    assert (figure.ci95, figure.p) == (None, None)
    assert figure.effect is not None
    assert "not attributable" in figure.text
    assert found.paired_run is not None
    assert "two device types" in found.paired_run.why


def test_settings_of_one_study_are_paired(lab: LabUnderTest) -> None:
    number = lab.submit("affinity@device", series=None, blocks=6)
    lab.finished(number)
    found = compare(lab, f"{number};setting=scope=system", f"{number};setting=scope=cpu")
    assert found.pairing is Pairing.PAIRED
    (figure,) = found.figures
    assert figure.settings == ("scope=system", "scope=cpu")
    assert figure.effect == pytest.approx(75)


def test_values_that_are_no_evidence_have_means_only(lab: LabUnderTest) -> None:
    number = measured(lab, 30)
    figure = next(f for f in compare(lab, f"{number}:baseline", str(number)).figures if f.metric == "throughput")
    assert (figure.effect, figure.ci95, figure.left.stddev) == (None, None, None)
    assert figure.text.startswith("no evidence")


@pytest.mark.parametrize(
    ("left", "right", "status", "detail"),
    [
        ("1;speed=2", "1", 422, "is no side"),
        ("yesterday", "1", 422, "is no side"),
        ("1;setting=\0", "1", 422, "is no side"),
        ("99", "1", 404, "no submission 99"),
        ("1", "1:candidate", 422, "both sides are the same"),
        ("1;plan=affinity", "1:baseline", 422, "no figure in common"),
        ("lab-tree@1234567", "1", 404, "no head lab-tree@1234567"),
    ],
)
def test_unusable_sides_say_what_is_wrong(lab: LabUnderTest, left: str, right: str, status: int, detail: str) -> None:
    assert measured(lab, 30) == 1
    assert detail in compare(lab, left, right, status)
