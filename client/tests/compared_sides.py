"""A comparison of two submissions, as the lab answers it."""

from __future__ import annotations

from wqlab_contracts.api.any_comparison import AnyComparison, ComparedFigure, ComparedSide, PairedRun, Pairing
from wqlab_contracts.api.report import ArmSummary, EnvironmentDifference
from wqlab_contracts.api.submissions import TargetSummary
from wqlab_contracts.enums import Arm, Direction, Evidence, JobState, Outcome, Role, Scale, Verdict

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


def comparison(offer: PairedRun | None) -> AnyComparison:
    return AnyComparison(
        left=side("12"), right=side("17"), pairing=Pairing.ENVIRONMENTS, says="the environments differ",
        differences=[EnvironmentDifference(name="compiler", baseline="gcc 12", candidate="gcc 13")],
        figures=[FIGURE], paired_run=offer,
    )  # fmt: skip
