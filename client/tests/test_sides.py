"""`wqlab compare LEFT RIGHT`: two sides that the lab has measured."""

from __future__ import annotations

import pytest
from commandline import Wqlab
from compared_sides import comparison
from fakelab import FakeLab

from wqlab_client.cli.sides import are_sides
from wqlab_contracts.api.any_comparison import PairedRun
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import ExitCode
from wqlab_contracts.messages import CommitPair, Series, Target

PAIR = SubmissionRequest(
    series=Series(commits=CommitPair(baseline="c" * 40, candidate="d" * 40, ref="main")),
    tree="linux",
    targets=[Target(plan="xfs-fsync", device_type="tiny")],
)


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
