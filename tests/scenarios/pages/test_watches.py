"""The pages about watches, in Chromium on the real API.

The list is a real public-inbox archive on loopback, which the worker's own code reads when a test says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect
from publicinbox import PublicInbox, public_inbox

from server.tests.support.live_server import Live
from server.tests.support.live_server import expect as expect_status
from server.tests.support.scene import Scene
from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory

from ..browser import Person
from .conftest import MakePerson
from .watched import LIST, TREE, Lists, arrive, fill

pytestmark = pytest.mark.scenario


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[PublicInbox]:
    with public_inbox(tmp_path / "archive") as started:
        yield started


@pytest.fixture
def lab_settings(lab_settings: Settings, scene_data_dir: Path, inbox: PublicInbox) -> Settings:
    watched = inbox.archive(epochs=f"{inbox.url}/{{epoch}}").model_dump(mode="json", exclude_none=True)
    archives = scene_data_dir / "intake/archives.yaml"
    known = yaml.safe_load(archives.read_text())["archives"]
    archives.write_text(yaml.safe_dump({"archives": [*known, watched]}))
    return lab_settings


@pytest.fixture
def lists(sessions: SessionFactory, lab_settings: Settings, app: FastAPI, tmp_path: Path) -> Lists:
    return Lists(sessions, lab_settings, app, tmp_path / "cache")


def preview(page: Page, lists: Lists) -> None:
    """Read the list for the preview that a page waits for."""
    expect(page.get_by_text("A worker reads the list").first).to_be_visible()
    while not lists.read():
        page.wait_for_timeout(100)  # the page shows that it waits before the lab has its request


def finish_preview(page: Page, lists: Lists) -> None:
    """As `preview`, unless the lab has a preview of less than a minute ago.

    What moves then is not counted: the preview is the answer to a button, however long the worker reads the list.
    """
    while not page.get_by_text(re.compile("minutes? of devices")).count():
        lists.read()
        page.wait_for_timeout(200)
    page.evaluate("() => { window.layoutShift = 0; }")


def test_a_watch_of_a_list_is_added_previewed_enabled_and_removed(
    person: MakePerson, scene: Scene, live: Live, inbox: PublicInbox, lists: Lists
) -> None:
    scene.devices()
    arrive(inbox, "before", asks=True, title="workqueue: lock less, once")
    arrive(inbox, "unasked")
    admin = person("admin")
    page = admin.page
    admin.open("/")
    page.get_by_role("button", name="admin").click()
    page.get_by_role("link", name="Watches").click()
    expect(page.get_by_text("No watches")).to_be_visible()
    page.get_by_role("link", name="Add a watch").first.click()
    page.get_by_label("Name", exact=True).fill("workqueue")
    page.get_by_label("Owner", exact=True).fill("submit")
    expect(page.get_by_label("List", exact=True).locator("option[disabled]")).to_have_text("lore: cannot be watched")
    page.get_by_label("Files", exact=True).fill("kernel/workqueue.c\nfs/xfs/\n")
    expect(page.get_by_label("Only if the cover letter asks")).to_be_checked()
    page.get_by_label("Targets", exact=True).fill("flusch@tiny")
    page.get_by_role("button", name="Add quiet hours").click()
    later = datetime.now(UTC) + timedelta(hours=6)  # now is no quiet hour, whenever the test runs
    page.get_by_label("from", exact=True).fill(f"{later:%H:%M}")
    page.get_by_label("to", exact=True).fill(f"{later + timedelta(hours=1):%H:%M}")
    page.get_by_role("button", name="Add watch").click()
    expect(page.get_by_text(re.compile("no plan 'flusch'; did you mean")).last).to_be_visible()
    page.get_by_label("Targets", exact=True).fill("")
    page.get_by_role("button", name="Add target").click()
    page.get_by_role("button", name="Add watch").click()

    expect(page.get_by_role("heading", level=1, name="workqueue")).to_be_visible()
    preview(page, lists)
    expect(page.get_by_text(re.compile("^1 series, [0-9]+ minutes? of devices"))).to_be_visible()
    previewed = page.get_by_role("group", name="Series that it would have taken, or nearly")
    expect(previewed.get_by_role("link", name="[PATCH 0/1] workqueue: lock less, once")).to_have_attribute(
        "href", f"{inbox.url}/before-0@x/"
    )
    expect(page.get_by_text("Not taken: 1 did not ask.")).to_be_visible()
    expect(page.get_by_text("No decisions yet")).to_be_visible()
    with live.client() as client:
        stored = expect_status(client.get("/api/v1/watches/workqueue")).json()["spec"]
    text = page.get_by_role("group", name="Watch as a file: workqueue.yaml").inner_text()
    assert ListWatch.model_validate(yaml.safe_load(text)) == ListWatch.model_validate(stored)

    page.get_by_role("button", name="Enable").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_text(["[PATCH 0/1] workqueue: lock less, once"])
    dialog.get_by_label("Days").fill("3")
    dialog.get_by_role("button", name="Show").click()
    expect(dialog.get_by_role("button", name="Enable")).to_be_disabled()
    preview(page, lists)
    dialog.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()

    arrive(inbox, "taken", asks=True, title="workqueue: lock less, again", later_s=60)
    arrive(inbox, "other", title="workqueue: nothing asked", later_s=60)
    lists.decide()
    decided = page.get_by_role("group", name="Decisions")
    taken = decided.get_by_role("row", name="lock less, again")
    expect(taken).to_contain_text("taken")
    expect(taken.get_by_role("link", name="[PATCH 0/1] workqueue: lock less, again")).to_have_attribute(
        "href", f"{inbox.url}/taken-0@x/"
    )
    expect(decided.get_by_role("row", name="nothing asked")).to_contain_text("not taken")
    page.get_by_label("State").select_option("taken")
    expect(decided.get_by_role("row", name="nothing asked")).to_have_count(0)
    taken.get_by_role("link", name=re.compile("^[0-9]+$")).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.go_back()

    page.get_by_role("link", name="Change", exact=True).click()
    page.get_by_label("Minutes a day", exact=True).fill("30")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(re.compile("[0-9]+ of 30 min"))).to_be_visible()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_text("It takes nothing.")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove the watch").click()
    expect(page.get_by_text("No watches")).to_be_visible()


def test_a_watch_of_a_tree_is_added_changed_enabled_and_removed(person: MakePerson, live: Live) -> None:
    admin = person("admin")
    page = admin.page
    admin.open("/watches?form=1")
    page.get_by_role("radio", name="A tree").check()
    page.get_by_label("Name", exact=True).fill("next")
    page.get_by_label("Owner", exact=True).fill("nobody")
    page.get_by_label("Branches", exact=True).fill("for-next")
    page.get_by_role("button", name="Add target").click()
    page.get_by_label("Parameters", exact=True).fill("jobs")
    page.get_by_role("button", name="Add watch").click()
    expect(page.get_by_text("Write name=value instead of jobs")).to_be_visible()
    page.get_by_label("Parameters", exact=True).fill("jobs=8")
    page.get_by_role("button", name="Add watch").click()
    expect(page.get_by_text(re.compile("no account 'nobody'")).last).to_be_visible()
    page.get_by_label("Owner", exact=True).fill("submit")
    page.get_by_role("button", name="Add watch").click()
    expect(page.get_by_role("heading", level=1, name="next")).to_be_visible()
    expect(page.get_by_text("No heads yet")).to_be_visible()
    with live.client() as client:
        stored = expect_status(client.get("/api/v1/watches/next")).json()["spec"]
    text = page.get_by_role("group", name="Watch as a file: next.yaml").inner_text()
    assert TreeWatch.model_validate(yaml.safe_load(text)) == TreeWatch.model_validate(stored)

    page.get_by_role("button", name="Enable").click()
    page.get_by_role("button", name="Look now").click()
    expect(page.get_by_text("The lab looks for new heads").first).to_be_visible()
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.get_by_text("neither looks nor submits now")).to_be_visible()
    page.get_by_role("link", name="Change", exact=True).click()
    page.get_by_role("radio", name="range").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("If it differs or fails, the range of commits to bisect is kept.")).to_be_visible()
    expect(page.get_by_role("button", name="Look now")).to_have_count(0)
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Look now")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove the watch").click()
    expect(page.get_by_text("No watches")).to_be_visible()


@pytest.mark.parametrize(
    ("name", "switches", "administers"),
    [
        pytest.param("read", False, False, marks=pytest.mark.nightly),
        ("submit", False, False),
        pytest.param("maintain", True, False, marks=pytest.mark.nightly),
        ("admin", True, True),
    ],
)
def test_each_role_may_do_on_the_pages_what_the_server_allows(
    person: MakePerson, live: Live, name: str, switches: bool, administers: bool
) -> None:
    with live.client() as client:
        for watch in (LIST, TREE):
            expect_status(client.post("/api/v1/watches", json=watch), 201)
        expect_status(client.post(f"/api/v1/watches/{TREE['name']}/enable"))
    someone = person(name)
    page = someone.page
    someone.open("/watches")
    expect(page.get_by_role("link", name="Add a watch")).to_have_count(int(administers))
    page.get_by_role("link", name="workqueue", exact=True).click()
    expect(page.get_by_role("heading", level=2, name="What it would have taken")).to_be_visible()
    expect(page.get_by_role("button", name="Enable")).to_have_count(int(switches))
    expect(page.get_by_role("button", name="Remove")).to_have_count(int(administers))
    expect(page.get_by_role("link", name="Change", exact=True)).to_have_count(int(administers))
    someone.open("/watches/workqueue-next")
    expect(page.get_by_role("heading", level=2, name="Heads")).to_be_visible()
    for button, offered in (("Look now", switches), ("Disable", switches), ("Remove", administers)):
        expect(page.get_by_role("button", name=button)).to_have_count(int(offered))
    # A form's address shows the page itself to others.
    someone.open("/watches?form=1")
    expect(page.get_by_role("button", name="Add watch")).to_have_count(int(administers))
    someone.open("/watches/workqueue?form=1")
    expect(page.get_by_role("button", name="Save")).to_have_count(int(administers))


def test_without_sign_in_a_public_lab_shows_what_is_watched(live: Live, chromium: Browser) -> None:
    with live.client() as client:
        expect_status(client.post("/api/v1/watches", json=LIST), 201)
    live.allow_public_reading()
    reader = Person(chromium, live.url)
    reader.open("/watches/workqueue")
    expect(reader.page.get_by_role("heading", level=1, name="workqueue")).to_be_visible()
    expect(reader.page.get_by_text("No decisions yet")).to_be_visible()
    expect(reader.page.get_by_role("button", name="Enable")).to_have_count(0)
    errors = reader.errors
    reader.close()
    assert not errors


PAGES = {
    "watches": "/watches",
    "watch": "/watches/workqueue?days=7",
    "watch-enable": "/watches/later",
    "watch-of-a-file": "/watches/from-file",
    "watch-form": "/watches?form=1",
    "watch-changed": "/watches/workqueue?form=1",
    "watch-of-a-tree": "/watches/workqueue-next",
    "watch-of-a-tree-changed": "/watches/workqueue-next?form=1",
}


def test_pages_are_accessible_and_fit_in_both_themes_and_widths(
    person: MakePerson, scene: Scene, sessions: SessionFactory, live: Live, inbox: PublicInbox, lists: Lists,
    pictures: Path,
) -> None:  # fmt: skip
    fill(scene, sessions, live, inbox, lists)
    admin = person("admin")
    faults: list[str] = []
    for name, path in PAGES.items():
        admin.open(path)
        if name == "watch":
            finish_preview(admin.page, lists)
        if name == "watch-enable":
            admin.page.get_by_role("button", name="Enable").click()
            finish_preview(admin.page, lists)
            expect(admin.page.get_by_role("dialog").get_by_role("button", name="Enable")).to_be_enabled()
        faults += admin.faults_in_views(name, pictures)
    # The bar has one item more than before: it must fit where it does not yet fold into a menu.
    for width in (720, 800, 1024):
        admin.look((width, 900), "light")
        if (over := admin.overflow()) > 0:
            faults.append(f"{over} px wider than a window of {width}")
    assert not faults, "\n".join(faults)
