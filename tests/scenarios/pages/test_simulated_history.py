"""The pages of a history that is full: many heads on four device types, and shifts in every state."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from playwright.sync_api import expect

from server.tests.support import simulated_history
from server.tests.support.simulated_history import story
from wqlab_contracts.enums import ShiftState
from wqlab_lab import web
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory

from ..conftest import ROOT
from .conftest import MakePerson

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

TYPE, METRIC = "ryzen-3900x", "locks_per_fsync"


@pytest.fixture
def lab_settings(settings: Settings, redis: str) -> Settings:
    """Return settings with the repository's device types and plans."""
    pages = web.build(Path(os.environ["WQLAB_CACHE"]))
    return settings.model_copy(update={"data_dir": ROOT, "web_dir": pages, "broker_url": redis})


def test_full_history_is_shown_on_all_pages(
    person: MakePerson, sessions: SessionFactory, lab_settings: Settings, app: FastAPI, pictures: Path
) -> None:
    simulated_history.load(sessions, lab_settings, app.state.data, owner="maintain")
    reader = person("read")
    page = reader.page
    reader.open("/history")
    for state in ShiftState:
        expect(page.get_by_role("cell", name=re.compile(f"^{state.value.replace('_', ' ')}")).first).to_be_visible()
    for device_type in story.MACHINES:
        expect(page.get_by_role("table", name=re.compile(f"^{device_type}:"))).to_be_visible()
    expect(page.get_by_role("heading", name=f"Metrics ({3 * len(story.MACHINES)} lines)")).to_be_visible()
    shift_path = page.locator("a[href^='/history/shifts/']").first.get_attribute("href")
    line = page.get_by_role("table", name="Metrics over heads").get_by_role("row", name=re.compile(f"{METRIC}.*{TYPE}"))
    line.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1, name=f"{METRIC} on {TYPE}")).to_be_visible()
    expect(page.get_by_text(f"{METRIC}, {story.HEADS} heads of for-next")).to_be_visible()
    line_path = urlsplit(page.url).path
    expect(page.locator("[data-cut]").first).to_be_attached()
    changes = page.get_by_role("region", name="Changes of the environment")
    expect(changes.get_by_text("compiler gcc 12.2.0 -> gcc 13.1.0")).to_be_visible()
    types = page.get_by_role("region", name="On other device types")
    expect(types.locator("svg")).to_have_count(len(story.MACHINES) - 1)
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    page.get_by_role("link", name="report", exact=True).click()
    expect(page.get_by_text(story.title(story.HEADS - 1)).first).to_be_visible()

    faults: list[str] = []
    for name, path in {"full-history": "/history", "full-line": line_path, "full-shift": str(shift_path)}.items():
        reader.open(path)
        expect(page.locator("main svg, main article").first).to_be_visible()
        faults += reader.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)
