"""The pages about the history of watched trees, in Chromium on the real API, with rows as the pipeline writes them."""

from __future__ import annotations

import json
import random
import re
from datetime import timedelta
from hashlib import sha1
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session

from server.tests.support.live_server import Live
from server.tests.support.scene import Scene
from server.tests.support.watches import add_tree_watch
from wqlab_contracts.enums import (
    Direction,
    Evidence,
    Role,
    Scale,
    ShiftSource,
    ShiftState,
    Verdict,
    WatchedHeadState,
)
from wqlab_server.history.shifts import levels_of
from wqlab_server.models import (
    HistoryEnvironment,
    HistoryLine,
    HistoryPoint,
    HistoryShift,
    WatchedHead,
)
from wqlab_server.storage.db import SessionFactory, clock, transaction

from .conftest import MakePerson

pytestmark = pytest.mark.scenario


HEADS = 120
CUT, STEP = 40, 84
"""Indexes of the heads at which the environment changes, and at which the kernel does."""
TYPES = {"tiny": 1.176, "twice-tiny": 0.91, "a-device-type-with-a-rather-long-name": 1.0}
"""Factor of the step, by device type."""
LOCKS = 1
"""Line of the metric locks on the first device type."""


def write_tree(session: Session) -> None:
    add_tree_watch(session, owner="submit", tree="t", target="flush@tiny")


def write_heads(session: Session, count: int) -> None:
    begin = clock(session) - timedelta(days=count)
    for index in range(count):
        session.add(
            WatchedHead(
                id=index + 1, watch="next", ref="for-next", name="for-next", state=WatchedHeadState.MEASURED,
                commit=sha1(str(index).encode()).hexdigest(), seen_at=begin + timedelta(days=index),
                parent_id=index or None,
            )
        )  # fmt: skip
    session.flush()
    session.add(HistoryEnvironment(id=1, digest="0" * 64, facts={"device": "tiny-1"}))
    session.flush()


def write_line(
    session: Session, number: int, run: int, device_type: str, metric: str, factor: float, count: int = HEADS
) -> None:
    """Write a line with one change of the environment and one step of its level."""
    counts = metric == "locks"
    line = HistoryLine(
        id=number, watch="next", ref="for-next", plan_name="flush", device_type=device_type, scenario="fsync",
        setting="scope=cache", metric=metric, unit="locks" if counts else "MiB/s", scale=Scale.RATIO,
        direction=Direction.LOWER_IS_BETTER if counts else Direction.HIGHER_IS_BETTER, role=Role.PRIMARY,
        evidence=Evidence.MECHANISM if counts else Evidence.PERFORMANCE, delta=1.0, points=count,
    )  # fmt: skip
    session.add(line)
    session.flush()
    noise = random.Random(number)
    begin = clock(session) - timedelta(days=count)
    points = []
    for index in range(count):
        value = (34.0 if counts else 1186.0) * (factor if index >= STEP else 1.0) * (1.02 if index >= CUT else 1.0)
        value *= 1 + noise.gauss(0, 0.006)
        stepped = index == STEP and factor != 1
        worse = (factor > 1) is counts
        effect = 100 * (factor - 1) if stepped else noise.gauss(0, 0.4)
        verdict = Verdict.EQUIVALENT if index % 9 else Verdict.INCONCLUSIVE
        if stepped:
            verdict = Verdict.REGRESSION if worse else Verdict.IMPROVEMENT
        points.append(
            HistoryPoint(
                line_id=number, head_id=index + 1, run_id=run, environment_id=1, value=value, stddev=value * 0.004,
                n=4, effect=effect if index else None, ci_low=effect - 0.6 if index else None,
                ci_high=effect + 0.6 if index else None, verdict=verdict if index else None,
                cut="compiler gcc 12.2 -> gcc 13.1; disk vda-4k -> nvme-4k" if index == CUT else "",
                at=begin + timedelta(days=index, hours=2),
            )
        )  # fmt: skip
    session.add_all(points)
    line.levels = levels_of(points, line.scale)
    line.recent = [point.value for point in points][-40:]
    line.last_at = points[-1].at
    session.flush()


def write_history(scene: Scene, sessions: SessionFactory) -> int:
    """Write six lines on three device types, and a shift in each state; return the submission of the runs."""
    submission = scene.submission()
    run = scene.run_id(submission)
    with transaction(sessions) as session:
        write_tree(session)
        write_heads(session, HEADS)
        for order, (device_type, factor) in enumerate(TYPES.items()):
            write_line(session, LOCKS + order, run, device_type, "locks", factor)
            write_line(session, LOCKS + 10 + order, run, device_type, "bw", 2 - factor)
        now = clock(session)
        measured = {"submission_id": submission, "decided_at": now - timedelta(hours=20)}
        shifts = [
            # The one that a maintainer explains below.
            (LOCKS, STEP, ShiftState.CONFIRMED, 17.6,
             {**measured, "effect": 17.2, "ci_low": 16.4, "ci_high": 18.0, "verdict": Verdict.REGRESSION}),
            (LOCKS, STEP + 20, ShiftState.NOT_REPRODUCED, 2.4,
             {**measured, "effect": 0.2, "ci_low": -0.7, "ci_high": 1.1, "verdict": Verdict.EQUIVALENT,
              "reason": "both sides are the same in the paired run"}),
            (LOCKS + 1, STEP, ShiftState.NEW, -9.0, {"reason": "waits for quiet hours to end"}),
            (LOCKS + 10, STEP, ShiftState.EXPLAINED, -17.6,
             {**measured, "effect": -17.4, "ci_low": -18.1, "ci_high": -16.7, "verdict": Verdict.REGRESSION,
              "owner": "maintain", "notes": "follows from the locks", "changed_by": "maintain"}),
            (LOCKS + 11, STEP, ShiftState.FIXED, 9.0, {"owner": "submit"}),
        ]  # fmt: skip
        for number, (line, index, state, effect, further) in enumerate(shifts, start=1):
            session.add(
                HistoryShift(
                    id=number, line_id=line, before_id=index, after_id=index + 1, state=state,
                    source=ShiftSource.VERDICT if number % 2 else ShiftSource.LEVEL, suspected_effect=effect,
                    created_at=now - timedelta(days=number), changed_at=now, **further,
                )
            )  # fmt: skip
    return submission


class Chart:
    """The chart of a line, driven by keys."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.slider = page.get_by_role("slider", name=re.compile("^Heads of"))

    def press(self, *keys: str) -> None:
        self.slider.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def shows(self, start: int, end: int) -> None:
        """Expect the points with these indexes, `end` excluded."""
        expect(self.slider).to_have_attribute("data-from", str(start))
        expect(self.slider).to_have_attribute("data-to", str(end))


def test_a_week_has_its_shifts_by_device_type(person: MakePerson, scene: Scene, sessions: SessionFactory) -> None:
    submission = write_history(scene, sessions)
    reader = person("read")
    page = reader.page
    reader.open("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Trends").click()
    expect(page.get_by_role("heading", name="This week")).to_be_visible()
    table = page.get_by_role("table", name=re.compile("^tiny:"))
    expect(table).to_have_accessible_name("tiny: 1 worse, 1 not reproduced, 1 explained")
    confirmed = table.get_by_role("row", name=re.compile("confirmed"))
    expect(confirmed).to_contain_text("worse")
    expect(confirmed).to_contain_text("+17.2 % [+16.4, +18.0]")
    expect(confirmed.get_by_role("link", name=f"submission {submission}")).to_be_visible()
    unsure = table.get_by_role("row", name=re.compile("not reproduced"))
    expect(unsure).to_contain_text("+2.40 %")
    expect(unsure).to_contain_text("+0.20 % [\u22120.70, +1.10]")
    expect(page.get_by_text("No shift on a-device-type-with-a-rather-long-name.")).to_be_visible()

    page.get_by_label("Device type").select_option("twice-tiny")
    expect(table).to_have_count(0)
    expect(page.get_by_role("table", name=re.compile("^twice-tiny:"))).to_contain_text("waits for quiet hours")
    expect(page.get_by_role("heading", name="Metrics (2 lines)")).to_be_visible()
    page.get_by_role("combobox", name="Metric", exact=True).select_option("bw")
    expect(page.get_by_role("heading", name="Metrics (1 line)")).to_be_visible()
    page.get_by_role("link", name="90 days").click()
    page.wait_for_url(lambda url: "days=90" in url and "metric=bw" in url and "type=twice-tiny" in url)
    expect(page.get_by_role("heading", name="Last 90 days")).to_be_visible()


def test_a_chart_is_zoomed_by_keys_and_by_dragging_and_a_link_restores_it(
    person: MakePerson, scene: Scene, sessions: SessionFactory, live: Live
) -> None:
    write_history(scene, sessions)
    reader = person("read")
    page = reader.page
    reader.open("/history")
    metrics = page.get_by_role("table", name="Metrics over heads")
    metrics.get_by_role("row", name=re.compile(r"locks.* tiny ")).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1, name="locks on tiny")).to_be_visible()
    drawing = Chart(page)
    drawing.shows(0, HEADS)
    drawing.press("End")
    expect(drawing.slider).to_have_attribute("aria-valuenow", str(HEADS))
    drawing.press("+", "+")
    drawing.shows(HEADS - 30, HEADS)
    drawing.press("Home")
    drawing.shows(0, 30)
    drawing.press("Escape")
    drawing.shows(0, HEADS)

    page.get_by_role("button", name=re.compile("^[0-9a-f]{12}$")).click()
    expect(drawing.slider).to_have_attribute("aria-valuenow", str(CUT + 1))
    expect(page.get_by_text("Changed before this head: compiler gcc 12.2 -> gcc 13.1")).to_be_visible()
    drawing.press("+", "ArrowRight")
    page.wait_for_url(lambda url: f"at={CUT + 2}" in url and "from=" in url)
    link, seen = page.url, drawing.slider.get_attribute("aria-valuetext")
    other = person("submit")
    other.open(link.removeprefix(live.url))
    restored = Chart(other.page)
    restored.shows(CUT - 20, CUT + 40)
    assert restored.slider.get_attribute("aria-valuetext") == seen

    box = drawing.slider.bounding_box()
    assert box is not None
    drawing.press("Escape")
    drawing.shows(0, HEADS)
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 160, steps=4)
    page.mouse.up()
    expect(page.get_by_text(re.compile(r"heads 5\d to 8\d of 120"))).to_be_visible()
    page.get_by_role("button", name="All heads").click()
    drawing.shows(0, HEADS)

    types = page.get_by_role("region", name="On other device types")
    expect(types.get_by_role("link")).to_have_count(2)
    types.get_by_role("row", name=re.compile("twice-tiny")).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1, name="locks on twice-tiny")).to_be_visible()


def test_points_are_exported(person: MakePerson, scene: Scene, sessions: SessionFactory) -> None:
    write_history(scene, sessions)
    reader = person("read")
    page = reader.page
    reader.open(f"/history/{LOCKS}")
    for name in ("CSV", "JSON"):
        with page.expect_download() as started:
            page.get_by_role("link", name=name, exact=True).click()
        text = started.value.path().read_text()
        assert started.value.suggested_filename == f"wqlab-history-{LOCKS}.{name.lower()}"
        assert len(text.splitlines()) == HEADS + 1 if name == "CSV" else len(json.loads(text)["series"]) == HEADS


def test_a_maintainer_explains_a_shift_that_others_only_read(
    person: MakePerson, scene: Scene, sessions: SessionFactory
) -> None:
    write_history(scene, sessions)
    maintainer = person("maintain")
    page = maintainer.page
    maintainer.open("/history")
    page.get_by_role("row", name=re.compile("confirmed")).get_by_role("link", name="locks").click()
    expect(page.get_by_role("heading", level=1, name="locks worse on tiny")).to_be_visible()
    expect(page.get_by_text("+17.2 % [+16.4, +18.0]")).to_be_visible()
    page.get_by_label("State").select_option("explained")
    page.get_by_label("Owner").fill("nobody")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("there is no account 'nobody'").last).to_be_visible()
    page.get_by_role("button", name="Take it over").click()
    page.get_by_label("Notes").fill("more pools, on purpose")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Shift 1 is changed.")).to_be_visible()
    expect(page.get_by_text("A maintainer has said why it is no defect.").first).to_be_visible()
    expect(page.get_by_text("+17.2 % [+16.4, +18.0]")).to_be_visible()

    reader = person("read")
    reader.open("/history/shifts/1")
    expect(reader.page.get_by_text("more pools, on purpose")).to_be_visible()
    expect(reader.page.get_by_role("button", name="Save")).to_have_count(0)


def test_a_lab_without_history_says_how_to_get_one(person: MakePerson, sessions: SessionFactory) -> None:
    reader = person("read")
    reader.open("/history")
    expect(reader.page.get_by_text("No tree is watched")).to_be_visible()
    expect(reader.page.get_by_role("article").get_by_role("link", name="Watched trees")).to_be_visible()
    with transaction(sessions) as session:
        write_tree(session)
    reader.open("/history")
    expect(reader.page.get_by_text("1 tree is watched: next.")).to_be_visible()


PAGES = {
    "history": "/history",
    "history-filtered": "/history?days=90&type=tiny&metric=locks",
    "history-none": "/history?tree=other",
    "line": "/history/1",
    "line-point": "/history/1?from=70&to=110&at=85",
    "line-cut": "/history/3?at=41",
    "shift": "/history/shifts/1",
    "shift-not-reproduced": "/history/shifts/2",
}


def test_pages_are_accessible_and_fit_in_both_themes_and_widths(
    person: MakePerson, scene: Scene, sessions: SessionFactory, pictures: Path
) -> None:
    write_history(scene, sessions)
    maintainer = person("maintain")
    faults: list[str] = []
    for name, path in PAGES.items():
        maintainer.open(path)
        expect(maintainer.page.locator("main svg, main article").first).to_be_visible()
        faults += maintainer.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)
