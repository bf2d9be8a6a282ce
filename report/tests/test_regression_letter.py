"""When a bisected regression is mailed to a list, and what its letter must have."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from letter_examples import BAD, COMMIT, LAB, bisection, measured, revert

from wqlab_contracts.api.bisections import Bisection
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import BisectionState, BisectionStepState
from wqlab_contracts.mail import OutgoingMail, problems
from wqlab_report.letters.regression import Lab, not_told
from wqlab_report.mail import culprit_mail


def written(lab: Lab = LAB, report: Report | None = None) -> OutgoingMail:
    return culprit_mail(
        bisection(), report or measured(), lab, ["list@example.org"], datetime(2026, 3, 2, tzinfo=UTC), key="k"
    )


@pytest.mark.parametrize(
    ("found", "report", "reason"),
    [
        (bisection(), measured(), ""),
        (bisection(), measured(1.12), "no regression"),
        (bisection(), measured(1.0), "no regression"),
        (bisection(), measured(emulated=True), "not measured on hardware"),
        (bisection(state=BisectionState.RANGE), measured(), "range"),
        (bisection(state=BisectionState.NOT_CONFIRMED), measured(), "not found"),
        (bisection(culprit=None), measured(), "not found"),
        (
            bisection(request=bisection().request.model_copy(update={"metric": "cpu_utilisation"})),
            measured(),
            "no regression",
        ),
        (
            bisection(request=bisection().request.model_copy(update={"device_type": "xeon-2s"})),
            measured(),
            "not measured on hardware",
        ),
    ],
)
def test_which_bisections_are_told(found: Bisection, report: Report, reason: str) -> None:
    told = not_told(found, report)
    assert reason in told
    assert bool(told) is bool(reason)


def test_letter_has_the_form_of_the_kernel_test_robot() -> None:
    mail = written()
    assert (mail.to, mail.cc) == (["Eve <eve@example.org>"], ["list@example.org"])
    for part in ("wq:for-next", COMMIT[:12], "bandwidth -12.0 %", "ryzen-3900x-1"):
        assert part in mail.subject
    text = " ".join(mail.body.split())
    for part in (
        f"commit {COMMIT}", "%stddev %change %stddev", "95 % interval of the change [-12.1, -11.9] %",
        "240 A/A comparisons of dm-crypt-affinity: 6 called different", "| Reported-by: wqlab <wqlab@lab.example.org>",
        "| Closes: https://lab.example.org/bisections/4",
        f"reverted on top of {BAD[:12]}: bandwidth +13.5 %, 95 % interval [+13.4, +13.7]",
        "run by Ada Lovelace <ada@lab.example.org>",
    ):  # fmt: skip
        assert part in text
    assert problems(mail) == [], "no line that tools would collect as a trailer"


@pytest.mark.parametrize("origin", ["/srv/git/wq.git", "file:///srv/git/wq.git"])
def test_folder_of_the_lab_is_no_address_of_the_tree(origin: str) -> None:
    report = measured()
    builds = [each.model_copy(update={"origin": origin}) for each in report.submission.builds]
    report = report.model_copy(update={"submission": report.submission.model_copy(update={"builds": builds})})
    body = written(report=report).body
    assert "/srv" not in body
    assert "of tree wq (7.3.0-rc1)" in body


def test_the_tracker_is_addressed_only_if_the_rule_says_so() -> None:
    assert f"\n#regzbot introduced: {COMMIT}\n" in written().body
    assert "regzbot" not in written(replace(LAB, regzbot=False)).body


def test_there_is_no_letter_without_a_regression() -> None:
    with pytest.raises(ValueError, match="no regression"):
        written(report=measured(1.12))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reverted": None}, "not measured."),
        ({"reverted": None, "bad": COMMIT}, "that is its parent."),
        (
            {"reverted": revert(state=BisectionStepState.UNUSABLE, effect=None, reason="the files conflict")},
            "not measured (the files conflict).",
        ),
    ],
)
def test_letter_says_why_a_revert_was_not_measured(changes: dict[str, Any], said: str) -> None:
    body = culprit_mail(bisection(**changes), measured(), LAB, [], datetime(2026, 3, 2, tzinfo=UTC), key="k").body
    assert f"reverted on top of {(changes.get('bad') or BAD)[:12]}: {said}" in " ".join(body.split())
