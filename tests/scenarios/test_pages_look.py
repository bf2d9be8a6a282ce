"""Every page as it looks: accessible, within its window, calm while it loads; photographed in all its views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .browser import COLOURS, GOOD_LAYOUT_SHIFT, NARROW, WCAG_22_AA, WIDE, Person
from .conftest import Lab, MakePerson

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1500)]

VIEWS = [(width, *theme) for width in (WIDE, NARROW) for theme in (("light", WCAG_22_AA), ("dark", COLOURS))]


@dataclass(frozen=True)
class Ended:
    """What there is to look at: a study, two series on one device, and one that does not apply."""

    study: int
    first: int
    second: int
    conflict: int


@pytest.fixture(scope="module")
def ended(lab: Lab, submissions: dict[str, int]) -> Ended:
    found = Ended(
        study=submissions["settings"],
        first=submissions["branch"],
        second=submissions["tripled"],
        conflict=submissions["conflict"],
    )
    for submission in (found.study, found.first):
        lab.finish(submission)
    lab.finish(found.second, codes=(1,))
    lab.finish(found.conflict, codes=(3,))
    return found


@pytest.fixture(scope="module")
def admin(person: MakePerson) -> Iterator[Person]:
    """Sees everything there is on a page."""
    yield person("admin")


PAGES = {
    "home": "/",
    "submit": "/submit?source=settings&plan=dm-crypt-affinity&type=four-l3",
    "submissions": "/submissions",
    "submission": "/submissions/{first}",
    "submission-failed": "/submissions/{conflict}",
    "report-study": "/submissions/{study}/report",
    "report-series": "/submissions/{second}/report",
    "compare": "/compare?first={first}&second={second}",
    "lab": "/lab",
    "device": "/lab/tiny-1",
    "plans": "/plans",
    "plan": "/plans/dm-crypt-affinity",
    "trees": "/trees",
    "account": "/account",
    "users": "/admin/users",
    "not-there": "/no-such-page",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_both_themes_and_widths(
    admin: Person, ended: Ended, pictures: Path, name: str
) -> None:
    admin.open(PAGES[name].format(**vars(ended)))
    faults = []
    if (shift := admin.layout_shift()) >= GOOD_LAYOUT_SHIFT:
        faults.append(f"moves while it loads: {shift:.3f}")
    for width, scheme, rules in VIEWS:
        view = f"{width[0]}-{scheme}"
        admin.look(width, scheme)
        admin.photograph(pictures, f"{name}-{view}")
        faults += [f"{view}: {violation}" for violation in admin.axe(rules)]
        if (over := admin.overflow()) > 0:
            faults.append(f"{view}: {over} px wider than its window")
    admin.look(WIDE, "light")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("name", "path"), [("sign-in", "/sign-in"), ("mail-link", "/r/{second}")])
def test_what_a_visitor_comes_to_first_too(
    person: MakePerson, ended: Ended, pictures: Path, name: str, path: str
) -> None:
    visitor = person(policy=False)
    visitor.open(path.format(**vars(ended)))
    for width, scheme, rules in VIEWS:
        visitor.look(width, scheme)
        visitor.photograph(pictures, f"{name}-{width[0]}-{scheme}")
        assert visitor.axe(rules) == []
        assert visitor.overflow() <= 0


def test_every_figure_is_drawn_before_a_report_is_printed(person: MakePerson, ended: Ended) -> None:
    """Also those that nobody has scrolled to."""
    reader = person()
    reader.open(f"/submissions/{ended.study}/report")
    expect(reader.page.locator("figure svg[class^=plot]").first).to_be_visible()
    before, drawn, all_of_them = reader.page.evaluate(
        """() => {
          const figures = [...document.querySelectorAll("figure")];
          const drawn = () => figures.filter(figure => figure.querySelector("svg[class^=plot]")).length;
          const before = drawn();
          dispatchEvent(new Event("beforeprint"));
          return [before, drawn(), figures.length];
        }"""
    )
    assert before < drawn == all_of_them


def test_a_report_printed_before_its_drawings_came_has_their_figures(person: MakePerson, ended: Ended) -> None:
    reader = person()
    reader.lose("PlotDrawing")
    reader.open(f"/submissions/{ended.study}/report")
    figure = reader.page.locator("figure", has_text="Data of this figure").first
    expect(figure.get_by_role("table")).to_be_hidden()
    reader.page.emulate_media(media="print")
    reader.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expect(figure.get_by_role("table")).to_be_visible()


def test_a_console_is_not_written_in_its_backgrounds_colour(admin: Person, ended: Ended) -> None:
    """For readers who want less motion too: a terminal takes its colours from a page on which nothing may move."""
    admin.open(f"/submissions/{ended.first}")
    rows = admin.page.locator(".xterm-rows")
    expect(rows).to_contain_text(re.compile(r"\d+\.\d{6}"))
    ink, paper = rows.evaluate(
        """rows => {
          let behind = rows;
          while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
          return [getComputedStyle(rows).color, getComputedStyle(behind).backgroundColor];
        }"""
    )
    assert ink != paper


def test_everything_on_the_form_is_reached_by_keyboard(admin: Person) -> None:
    """From the top of the page, by Tab alone, to the button that submits; each stop shows where it is."""
    admin.open("/submit?source=settings&plan=dm-crypt-affinity&type=tiny")
    page = admin.page
    reached = []
    for _ in range(120):
        page.keyboard.press("Tab")
        name, outlined, submits = page.evaluate(
            """() => {
              const at = document.activeElement, style = getComputedStyle(at);
              return [at.innerText || at.getAttribute("aria-label") || at.id,
                      style.outlineStyle !== "none" || style.boxShadow !== "none", at.type === "submit"];
            }"""
        )
        assert outlined, f"no focus is shown on {name!r}"
        reached.append(name)
        if submits:
            break
    assert reached[0] == "Skip to content"
    assert submits, f"Tab goes {reached}"
