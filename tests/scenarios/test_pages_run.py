"""A series from the form to its verdict in the browser, watched by a second user; and failures.

Nothing is mocked: the pages are the built ones, from the lab's own API process, and the devices boot.
"""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from wqlab_contracts.enums import DeviceHealth, ErrorKind, EventKind, JobState

from .browser import GOOD_LAYOUT_SHIFT, RUN_TIMEOUT_MS
from .conftest import NOOP, Lab, MakePerson, comparisons

pytestmark = pytest.mark.scenario


def choose_target(page: Page, plan: str, device_type: str) -> None:
    others = page.locator("details", has=page.get_by_text(re.compile("plans and devices", re.I)))
    if others.get_attribute("open") is None:
        others.locator("summary").first.click()
    others.get_by_label("Filter").fill(f"{plan} {device_type}")
    page.get_by_role("checkbox", name=f"{plan} on {device_type}", exact=True).check()


def set_blocks(page: Page, blocks: int) -> None:
    page.get_by_role("heading", name="Advanced").click()
    page.get_by_label("Blocks").fill(str(blocks))


def press_submit(page: Page) -> int:
    """Press the submit button and return the new submission's id."""
    page.get_by_role("button", name=re.compile("^Submit")).click()
    page.wait_for_url(re.compile(r"/submissions/\d+$"))
    return int(page.url.rsplit("/", 1)[1])


def wait_for_report(page: Page) -> None:
    expect(page.get_by_role("link", name="View report")).to_be_visible(timeout=RUN_TIMEOUT_MS)


class Submitted:
    """Mbox submitted by the form and watched to its end by its owner and by a visitor who is not signed in."""

    def __init__(self, person: MakePerson) -> None:
        self.owner, self.visitor = person("submitter"), person()
        page = self.owner.page
        self.owner.open("/submit")
        page.get_by_role("button", name="Choose an mbox").click()
        page.get_by_label("Mbox file").set_input_files(NOOP)
        self.inspection = page.get_by_role("region", name="Contents of the mbox").inner_text()
        choose_target(page, "xfs-fsync", "tiny")
        set_blocks(page, 2)
        page.get_by_text("Time and smallest difference of each target").click()
        takes = page.get_by_role("list", name="Quote for each target")
        expect(takes).to_contain_text("4 boots in 2 blocks")
        self.quote = page.get_by_role("complementary", name="Quote and submit").inner_text()
        self.command = page.locator("details", has_text="The same with").text_content() or ""
        self.id = press_submit(page)
        self.visitor.open(f"/submissions/{self.id}")
        for each in (self.owner, self.visitor):
            each.page.evaluate("() => { window.sameDocument = true; window.layoutShift = 0; }")
        self.consoles = [self._live_console(each.page) for each in (self.owner, self.visitor)]
        for each in (self.owner, self.visitor):
            wait_for_report(each.page)

    def _live_console(self, page: Page) -> str:
        """Check the page during a boot and return the console text."""
        console = page.get_by_role("group", name=re.compile("^Console of boot"))
        expect(page.get_by_role("heading", name=re.compile("^Console of boot"))).to_be_visible(timeout=RUN_TIMEOUT_MS)
        expect(console).to_contain_text("Linux version 6.12", timeout=RUN_TIMEOUT_MS)
        return console.inner_text()


@pytest.fixture(scope="module")
def submitted(person: MakePerson) -> Submitted:
    return Submitted(person)


def test_form_shows_the_patches_and_the_quote(submitted: Submitted) -> None:
    assert "workqueue:" in submitted.inspection and "kernel/workqueue.c" in submitted.inspection
    assert "Device time" in submitted.quote and re.search(r"\d (s|min|h)\b", submitted.quote)
    assert " submit" in submitted.command and "--mbox" in submitted.command
    assert "--blocks 2" in submitted.command


def test_two_users_see_a_run_and_its_verdict_without_reload(submitted: Submitted) -> None:
    shown = []
    for each in (submitted.owner, submitted.visitor):
        assert each.page.evaluate("() => window.sameDocument"), "the page was loaded again"
        assert each.layout_shift() < GOOD_LAYOUT_SHIFT
        steps = each.page.get_by_role("region", name="Steps")
        expect(steps).to_contain_text("equivalent")
        expect(steps).to_contain_text("2 of 2 completed")
        shown.append(re.sub(r"\d+:\d\d", "", steps.inner_text()))
    assert shown[0] == shown[1]


def test_series_without_effect_is_equivalent(lab: Lab, submitted: Submitted) -> None:
    [found] = comparisons(lab.finish(submitted.id), metric="locks_per_flush", question="kernel")
    assert found["verdict"] == "equivalent" and found["exact"]
    # The pool of each of two CPUs, that of the workqueue's default pwq, and the completion.
    assert found["baseline"]["mean"] == found["candidate"]["mean"] == 4


def test_only_owner_and_maintainers_can_retry(submitted: Submitted) -> None:
    expect(submitted.owner.page.get_by_role("button", name="Retry")).to_be_visible()
    expect(submitted.visitor.page.get_by_role("button", name="Retry")).to_have_count(0)


def test_report_begins_with_the_verdict(submitted: Submitted) -> None:
    page = submitted.owner.page
    page.get_by_role("link", name="View report").click()
    verdict = page.get_by_role("region", name="Verdict", exact=True)
    expect(verdict).to_contain_text("No change of locks per flush on tiny (emulated). Speed was not measured.")


def test_copied_report_text_equals_the_command_output(lab: Lab, submitted: Submitted) -> None:
    text = lab.wqlab("report", str(submitted.id))
    answer = httpx.get(f"{lab.url}/r/{submitted.id}.txt", timeout=None)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    assert answer.text.strip() == text.strip()


def test_report_link_works_without_scripts_or_sign_in(submitted: Submitted, person: MakePerson) -> None:
    reader = person(scripts=False)
    answer = reader.page.goto(f"/r/{submitted.id}")
    assert answer is not None and answer.status == 200
    expect(reader.page.get_by_role("region", name="Verdict")).to_contain_text("locks per flush")
    text = reader.page.locator(".report-text")
    expect(text).to_be_visible()
    expect(text).to_contain_text("locks_per_flush")
    expect(text).to_contain_text("equivalent")


def test_pages_of_a_submission_are_accessible_and_fit(submitted: Submitted, pictures: Path) -> None:
    """The nightly suite looks at every page, in all themes and widths (test_pages_look.py)."""
    faults = []
    for name, path in {
        "home": "/",
        "submit": "/submit",
        "submissions": "/submissions",
        "submission": f"/submissions/{submitted.id}",
        "report": f"/r/{submitted.id}",
        "lab": "/lab",
    }.items():
        submitted.owner.open(path)
        submitted.owner.settle()
        faults += submitted.owner.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)


def test_form_shows_an_error_beside_its_field(person: MakePerson) -> None:
    submitter = person("submitter")
    page = submitter.page
    submitter.open("/submit?source=settings")
    choose_target(page, "dm-crypt-affinity", "tiny")
    set_blocks(page, 0)
    page.get_by_role("button", name=re.compile("^Submit")).click()
    expect(page.get_by_label("Blocks")).to_have_attribute("aria-invalid", "true")
    assert page.url.split("?")[0].endswith("/submit"), "it was not submitted"


def test_owner_cancels_and_retries_a_submission(lab: Lab, person: MakePerson) -> None:
    submitter = person("submitter")
    page = submitter.page
    submitter.open("/submit?source=settings")
    choose_target(page, "dm-crypt-affinity", "tiny")
    set_blocks(page, 20)
    first = press_submit(page)
    for submission in (first, first + 1):
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel submission").click()
        expect(page.get_by_role("link", name="View report")).to_be_visible(timeout=RUN_TIMEOUT_MS)
        view = lab.client().submission(submission)
        assert view.failure is not None and view.failure.kind is ErrorKind.CANCELED
        if submission == first:
            page.get_by_role("button", name="Retry").click()
            page.get_by_role("dialog").get_by_role("button", name="Retry").click()
            page.wait_for_url(re.compile(rf"/submissions/{first + 1}$"))
            expect(page.get_by_text(f"retry of {first}")).to_be_visible()


@pytest.mark.nightly
def test_failing_device_is_shown_and_its_run_moves(lab: Lab, person: MakePerson) -> None:
    """The device fails in its only boot. Without a reload the page shows the run on the other device."""
    client = lab.client()
    watcher, maintainer = person(), person("maintainer")
    submission = lab.submit(
        *("--settings-only", "--target", "dm-crypt-affinity@fragile", "--scenario", "LOW", "--blocks", "2"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
    )
    watcher.open(f"/submissions/{submission}")
    page = watcher.page
    page.evaluate("() => { window.sameDocument = true; }")
    boot = next(event.boot_id for event in client.events(submission) if event.kind is EventKind.BOOT_STATE)
    (run,) = client.submission(submission).runs
    device = next(each.device for each in client.run(run.id).boots if each.id == boot)
    lab.fault(device, {"kind": "dead"})
    try:
        attempt = page.locator("#failures").get_by_role("group").first
        expect(attempt).to_contain_text("the lab, not the kernel", timeout=RUN_TIMEOUT_MS)
        expect(attempt).to_contain_text(device)
        expect(attempt).to_contain_text("What to do:")
        row = maintainer.page.get_by_role("row", name=re.compile(rf"^{device}\b"))
        maintainer.open("/lab")
        expect(row).to_contain_text("suspect", timeout=RUN_TIMEOUT_MS)
        lab.fault(device)
        row.get_by_role("button", name=f"Check now: {device}").click()
        maintainer.page.get_by_role("dialog").get_by_role("button", name="Run health check").click()
        wait_for_report(page)
        assert page.evaluate("() => window.sameDocument")
        expect(page.get_by_role("region", name="Steps")).to_contain_text("attempt 2")
        assert client.submission(submission).failure is None, "the run passed on the other device"
    finally:
        lab.fault(device)
    expect(row).to_contain_text(re.compile("free|in use"), timeout=RUN_TIMEOUT_MS)
    assert client.run(run.id).state is JobState.FINISHED


@pytest.mark.nightly
def test_maintainer_checks_and_releases_a_failed_device(lab: Lab, person: MakePerson) -> None:
    device = "fragile-1"
    maintainer = person("maintainer")
    maintainer.open("/lab")
    row = maintainer.page.get_by_role("row", name=re.compile(rf"^{device}\b"))
    dialog = maintainer.page.get_by_role("dialog")
    lab.fault(device, {"kind": "dead"})
    try:
        row.get_by_role("button", name=f"Check now: {device}").click()
        dialog.get_by_role("button", name="Run health check").click()
        expect(row).to_contain_text("quarantined", timeout=RUN_TIMEOUT_MS)
    finally:
        lab.fault(device)
    row.get_by_role("button", name=f"Release: {device}").click()
    dialog.get_by_role("button", name="Release").click()
    expect(row).to_contain_text(re.compile("free|in use"), timeout=RUN_TIMEOUT_MS)
    assert lab.client().device(device).health is DeviceHealth.GOOD
