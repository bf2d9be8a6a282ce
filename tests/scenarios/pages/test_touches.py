"""The submit form proposes targets for what a series touches, with the lab's own table, plans and device types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select

from server.tests.support.end_job import end_job
from server.tests.support.live_server import Live
from server.tests.support.scene import Scene
from server.tests.support.threads import taken_thread
from wqlab_contracts.enums import Outcome
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.branch_readings import BranchReadingResult
from wqlab_contracts.messages.lookups import GitBranch, LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupResult
from wqlab_server.models import BranchList, BranchReading, ThreadLookup
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

from ..browser import Person
from ..conftest import ROOT
from .conftest import MakePerson

pytestmark = pytest.mark.scenario
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
    section = page.get_by_role("region", name="What to measure")
    expect(section).to_contain_text("Give a series to see")
    page.get_by_label("Mbox file").set_input_files(SERIES)
    proposals = section.get_by_role("list", name="Proposed targets")
    first = proposals.get_by_role("listitem").first
    expect(first).to_contain_text("xfs-fsync on xeon-2s")
    expect(first).to_contain_text("because of flush_workqueue_prep_pwqs in kernel/workqueue.c")
    expect(first).to_contain_text(re.compile(r"about \d+ (min|h)"))
    expect(first).to_contain_text("Does a flush take more or fewer locks of worker pools")
    expect(first).to_contain_text("emulated, 2 packages")
    first.get_by_role("checkbox").check()
    quote = page.get_by_role("complementary", name="Quote and submit")
    command = page.locator("details", has_text="The same with")
    expect(command).to_contain_text("--target xfs-fsync@xeon-2s")
    section.get_by_role("button", name="Select all").click()
    expect(command).to_contain_text("--target cmwq-load@ryzen-3900x")
    expect(command).not_to_contain_text("--target xfs-fsync@ryzen-3900x")
    proposals.get_by_role("listitem").filter(has_text="cmwq-load on ryzen-3900x").get_by_role("checkbox").uncheck()
    expect(command).not_to_contain_text("cmwq-load")
    submitter.settle()
    # What the page adds below a chosen file moves the rest; it is an answer to the choice.
    page.evaluate("() => { window.layoutShift = 0; }")
    faults = submitter.faults_in_views("touches", pictures)
    assert not faults, faults
    quote.get_by_role("button", name="Submit 2 targets").click()
    page.wait_for_url(re.compile(r"/submissions/\d+"))


def test_visitor_of_a_public_lab_sees_proposals_and_their_cost(scene: Scene, live: Live, chromium: Browser) -> None:
    scene.devices()
    live.allow_public_reading()
    visitor = Person(chromium, live.url)
    try:
        visitor.open("/submit?source=mbox")
        page = visitor.page
        page.get_by_label("Mbox file").set_input_files(SERIES)
        expect(page.get_by_role("list", name="Proposed targets")).to_contain_text("Does a flush take")
        bar = page.get_by_role("complementary", name="Quote and submit")
        expect(bar.get_by_role("button", name="Sign in to submit")).to_be_visible()
        expect(bar).to_contain_text("min")
        assert visitor.errors == []
    finally:
        visitor.close()


def test_mailed_series_is_submitted_with_15_tabs(
    scene: Scene, person: MakePerson, sessions: SessionFactory, lab_settings: Settings, live: Live, pictures: Path
) -> None:
    """The count begins at the top of the home page. The first Tab focuses the link *Skip to content*."""
    scene.devices()
    submitter = person("submit")
    submitter.open("/")
    page = submitter.page
    stops = tabs_to(page, "Series")
    page.keyboard.type("https://lore.kernel.org/r/less-v1-1@x")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/submit\?"))
    answer_thread(page, sessions, lab_settings, live)
    submit = page.get_by_role("button", name=re.compile(r"^Submit \d+ targets"))
    expect(submit).to_be_visible()
    stops += tabs_to(page, submit.inner_text())
    assert len(stops) <= 15, stops
    questions = page.get_by_role("toolbar", name="What to measure").get_by_role("checkbox")
    page.keyboard.press("Shift+Tab")
    expect(questions.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(questions.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(submit).to_be_focused()
    faults = submitter.faults_in_views("touches-thread", pictures)
    assert not faults, faults
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/submissions/\d+"))


def tabs_to(page: Page, name: str) -> list[str]:
    """Press Tab until the element of this name has the focus; return the names of all stops."""
    stops: list[str] = []
    while name not in stops:
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate(
                """() => {
                  const at = document.activeElement;
                  return at.getAttribute("aria-label") || at.labels?.[0]?.innerText || at.innerText;
                }"""
            )
        )
        assert len(stops) < 40, stops
    return stops


def test_series_without_a_plan_says_so(scene: Scene, person: MakePerson) -> None:
    scene.devices()
    submitter = person("submit")
    submitter.open("/submit?source=mbox")
    section = submitter.page.get_by_role("region", name="What to measure")
    submitter.page.get_by_label("Mbox file").set_input_files(ELSEWHERE)
    expect(section).to_contain_text("The lab has no plan for what this series changes")
    expect(section).to_contain_text("No plan is known for WQLAB-NOTE.")


def test_branch_is_read_before_targets_are_proposed(
    scene: Scene, person: MakePerson, sessions: SessionFactory, lab_settings: Settings, live: Live, pictures: Path
) -> None:
    """The test does the work of the worker."""
    scene.devices()
    submitter = person("submit")
    submitter.open("/submit?source=git")
    page = submitter.page
    section = page.get_by_role("region", name="What to measure")
    expect(section).to_contain_text("Give a series to see")
    page.get_by_label("URL of lore or Patchwork, Message-ID, or git URL and branch").fill(
        "https://git.example.org/linux.git"
    )
    page.get_by_role("combobox", name="Branch or tag").fill("wq/faster")
    page.get_by_label("Base commit (optional)").focus()  # closes the list of branches
    expect(section).to_contain_text("Reading the branch…")
    answer_lookup(page, sessions, lab_settings, live)
    faults = submitter.faults_in_views("touches-reading", pictures)
    found = inspect(SERIES.read_text()).model_copy(update={"problems": [], "base_commit": "a" * 40})
    result = BranchReadingResult(outcome=Outcome.PASSED, base="a" * 40, commit="b" * 40, inspection=found)
    with transaction(sessions) as session:
        reading = session.scalars(select(BranchReading.id)).one()
    end_job(sessions, lab_settings, live.app.state.data, reading, lambda _: result)
    expect(section.get_by_role("listitem").first).to_contain_text("xfs-fsync on xeon-2s")
    expect(page.get_by_role("region", name="Contents of the branch")).to_contain_text(found.subject)
    submitter.settle()
    page.evaluate("() => { window.layoutShift = 0; }")
    faults += submitter.faults_in_views("touches-branch", pictures)
    assert not faults, faults


def answer_thread(page: Page, sessions: SessionFactory, settings: Settings, live: Live) -> None:
    """Answer the page's request for a mailed series."""
    while True:
        with transaction(sessions) as session:
            lookup = session.scalar(select(ThreadLookup.id))
        if lookup is not None:
            break
        page.wait_for_timeout(50)  # the page asks after a pause in typing
    mails = Artifact(sha256="a" * 64, size=1, kind="series", name="thread.mbox")
    found = inspect(SERIES.read_text())
    result = ThreadLookupResult(outcome=Outcome.PASSED, thread=taken_thread(mails), inspection=found)
    end_job(sessions, settings, live.app.state.data, lookup, lambda _: result)


def answer_lookup(page: Page, sessions: SessionFactory, settings: Settings, live: Live) -> None:
    """Answer the page's request for branches, once it has also asked for the reading of one."""
    while True:
        with transaction(sessions) as session:
            is_asked = session.scalar(select(BranchReading.id)) is not None
            lookup = session.scalar(select(BranchList.id))
        if is_asked and lookup is not None:
            found = [GitBranch(name="wq/faster", commit="b" * 40)]
            result = LookupResult(outcome=Outcome.PASSED, branches=found)
            end_job(sessions, settings, live.app.state.data, lookup, lambda _, result=result: result)
            return
        page.wait_for_timeout(50)  # the page asks after a pause in typing
