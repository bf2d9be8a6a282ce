"""The submit form proposes targets for what a series touches, with the lab's own table, plans and device types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from server.tests.support.scene import Scene

from ..conftest import ROOT
from .conftest import MakePerson

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(600)]
SERIES = ROOT / "kernels/examples/flush-lock-runs.mbox"
ELSEWHERE = ROOT / "tests/series/anywhere.mbox"


@pytest.fixture
def scene_data_dir() -> Path:
    return ROOT


def test_ticked_proposals_become_the_targets(scene: Scene, person: MakePerson, pictures: Path) -> None:
    scene.devices()
    submitter = person("submit")
    submitter.open("/submit?source=mbox")
    page = submitter.page
    section = page.get_by_role("region", name="What it touches")
    expect(section).to_contain_text("Give a series to see")
    page.get_by_label("Mbox file").set_input_files(SERIES)
    proposals = section.get_by_role("list", name="Proposed targets")
    first = proposals.get_by_role("listitem").first
    expect(first).to_contain_text("xfs-fsync on xeon-2s")
    expect(first).to_contain_text("because of flush_workqueue_prep_pwqs in kernel/workqueue.c")
    expect(first).to_contain_text(re.compile(r"≤ \d+ (min|h)"))
    section.get_by_label("xfs-fsync on xeon-2s").check()
    quote = page.get_by_role("complementary", name="Quote and submit")
    expect(quote).to_contain_text("--target xfs-fsync@xeon-2s")
    section.get_by_role("button", name="Select all").click()
    expect(quote).to_contain_text("--target cmwq-load@ryzen-3900x")
    expect(quote).not_to_contain_text("--target xfs-fsync@ryzen-3900x")
    section.get_by_label("cmwq-load on ryzen-3900x").uncheck()
    expect(quote).not_to_contain_text("cmwq-load")
    submitter.settle()
    # What the page adds below a chosen file moves the rest; it is an answer to the choice.
    page.evaluate("() => { window.layoutShift = 0; }")
    faults = submitter.faults_in_views("touches", pictures)
    assert not faults, faults
    quote.get_by_role("button", name="Submit 2 targets").click()
    page.wait_for_url(re.compile(r"/submissions/\d+"))


def test_series_without_a_plan_and_a_branch_say_so(scene: Scene, person: MakePerson) -> None:
    scene.devices()
    submitter = person("submit")
    submitter.open("/submit?source=mbox")
    section = submitter.page.get_by_role("region", name="What it touches")
    submitter.page.get_by_label("Mbox file").set_input_files(ELSEWHERE)
    expect(section).to_contain_text("The lab has no plan for what this series changes")
    expect(section).to_contain_text("No plan is known for WQLAB-NOTE.")
    submitter.page.get_by_role("radio", name="Branch").check()
    expect(section).to_contain_text("The lab has the diff of a branch only after it has applied it")
