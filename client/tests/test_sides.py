"""`wqlab compare LEFT RIGHT`: two sides that the lab has measured."""

from __future__ import annotations

import pytest
from commandline import Wqlab
from fakelab import FakeLab

from wqlab_client.cli.sides import are_sides
from wqlab_contracts.api.any_comparison import AnyComparison, ComparedFigure, ComparedSide, PairedRun, Pairing
from wqlab_contracts.api.report import ArmSummary, EnvironmentDifference
from wqlab_contracts.api.submissions import SubmissionRequest, TargetSummary
from wqlab_contracts.enums import Arm, Direction, Evidence, ExitCode, JobState, Outcome, Role, Scale, Verdict
from wqlab_contracts.messages import CommitPair, Series, Target

TARGET = TargetSummary(
    run_id=3, plan="xfs-fsync", device_type="tiny", emulated=True, device="tiny-1", state=JobState.FINISHED,
    outcome=Outcome.PASSED, verdict=Verdict.IMPROVEMENT, headline="locks: 2 less", done_boots=4, total_boots=4,
)  # fmt: skip


def side(selector: str) -> ComparedSide:
    return ComparedSide(
        selector=selector, submission_id=12, title="Fewer locks", arm=Arm.CANDIDATE, tree="linux",
        commit="c" * 40, devices=["tiny-1"], targets=[TARGET], finished_at=None,
    )  # fmt: skip


FIGURE = ComparedFigure(
    plan="xfs-fsync", device_types=("tiny", "tiny"), scenario="fsync", settings=("", ""), metric="locks",
    unit="locks", scale=Scale.DIFFERENCE, direction=Direction.LOWER_IS_BETTER, role=Role.PRIMARY,
    evidence=Evidence.MECHANISM, left=ArmSummary(mean=4, stddev=0.5, n=6), right=ArmSummary(mean=2, stddev=0.5, n=6),
    pairs=0, effect=-2, ci95=(-3, -1), p=0.01, text="-2 locks [-3, -1]; a difference beyond noise",
)  # fmt: skip
PAIR = SubmissionRequest(
    series=Series(commits=CommitPair(baseline="c" * 40, candidate="d" * 40, ref="main")),
    tree="linux",
    targets=[Target(plan="xfs-fsync", device_type="tiny")],
)


def comparison(offer: PairedRun | None) -> AnyComparison:
    return AnyComparison(
        left=side("12"), right=side("17"), pairing=Pairing.ENVIRONMENTS, says="the environments differ",
        differences=[EnvironmentDifference(name="compiler", baseline="gcc 12", candidate="gcc 13")],
        figures=[FIGURE], paired_run=offer,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sides"),
    [
        (["12", "17:baseline"], True),
        (["linux-next@1f2e3d4c5b6a", "12:candidate;setting=scope=cache"], True),
        (["a.csv", "b.csv"], False),
        (["12"], False),
        (["12", "17", "18"], False),
    ],
)
def test_sides_are_told_from_files(arguments: list[str], sides: bool) -> None:
    assert are_sides(arguments) is sides


def test_both_sides_what_differs_and_the_offer_are_printed(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/compare", comparison(PairedRun(request=PAIR, why="measures both")))
    done = wqlab("compare", "12", "17")
    assert done.code == 0
    assert "environments: the environments differ" in done.out
    assert "       xfs-fsync on tiny: improvement; locks: 2 less\n" in done.out
    assert "differs: compiler: gcc 12 | gcc 13" in done.out
    assert "-2 locks [-3, -1]; a difference beyond noise" in done.out
    assert "wqlab compare '12' '17' --submit" in done.err
    assert lab.requests[-1].query == {"left": "12", "right": "17"}


@pytest.mark.parametrize("offer", [None, PairedRun(request=None, why="no run has kernels of two trees")])
def test_nothing_is_submitted_without_an_offer(wqlab: Wqlab, lab: FakeLab, offer: PairedRun | None) -> None:
    lab.serve("/compare", comparison(offer))
    done = wqlab("compare", "12", "17", "--submit")
    assert done.code == ExitCode.USAGE
    assert "there is no run of 12 and 17 to submit" in done.err
    assert all(each.method == "GET" for each in lab.requests)


def test_options_of_files_are_refused_for_sides_and_the_other_way_round(wqlab: Wqlab) -> None:
    assert "--reference and --looks are for CSV files" in wqlab("compare", "12", "17", "--reference", "x").err
    assert "--submit needs two sides" in wqlab("compare", "a.csv", "--submit").err
