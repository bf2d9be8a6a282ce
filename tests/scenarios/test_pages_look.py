"""Every page is accessible, fits its window and does not shift while it loads; screenshots of all views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .browser import Person
from .conftest import Lab, MakePerson

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


@dataclass(frozen=True)
class Ended:
    """Finished submissions: a study, two series on one device, one with counts, and one that does not apply."""

    study: int
    first: int
    second: int
    counted: int
    conflict: int


@pytest.fixture(scope="module")
def ended(lab: Lab, submissions: dict[str, int]) -> Ended:
    found = Ended(
        study=submissions["settings"],
        first=submissions["branch"],
        second=submissions["tripled"],
        counted=submissions["counted"],
        conflict=submissions["conflict"],
    )
    for submission in (found.study, found.first, found.counted):
        lab.finish(submission)
    lab.finish(found.second, codes=(1,))
    lab.finish(found.conflict, codes=(3,))
    return found


@pytest.fixture(scope="module")
def admin(person: MakePerson) -> Iterator[Person]:
    """Sign in as an administrator, who sees everything on a page."""
    yield person("admin")


PAGES = {
    "home": "/",
    "submit": "/submit?source=settings&plan=dm-crypt-affinity&type=four-l3",
    "submit-git": "/submit",
    "submissions": "/submissions",
    "submissions-empty": "/submissions?q=no-such-submission",
    "submission": "/submissions/{first}",
    "submission-failed": "/submissions/{conflict}",
    "report-study": "/r/{study}",
    "report-series": "/r/{second}",
    "report-counted": "/r/{counted}",
    "compare": "/compare?left={first}&right={second}",
    "compare-empty": "/compare",
    "lab": "/lab",
    "device": "/lab/tiny-1",
    "plan": "/plans/dm-crypt-affinity",
    "account": "/account",
    "users": "/admin/users",
    "audit": "/admin/audit",
    "not-there": "/no-such-page",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_and_fits_in_both_themes_and_widths(
    admin: Person, ended: Ended, pictures: Path, name: str
) -> None:
    admin.open(PAGES[name].format(**vars(ended)))
    faults = admin.faults_in_views(name, pictures)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("name", "path"), [("sign-in", "/sign-in"), ("mail-link", "/r/{second}")])
def test_visitor_pages_are_accessible_and_fit(
    person: MakePerson, ended: Ended, pictures: Path, name: str, path: str
) -> None:
    visitor = person(policy=False)
    visitor.open(path.format(**vars(ended)))
    assert visitor.faults_in_views(name, pictures) == []


def test_every_figure_is_drawn_before_printing(person: MakePerson, ended: Ended) -> None:
    """Charts that were never scrolled into view are included."""
    reader = person()
    reader.open(f"/r/{ended.study}")
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


def test_report_printed_without_charts_shows_their_values(person: MakePerson, ended: Ended) -> None:
    reader = person()
    reader.lose("PlotDrawing")
    reader.open(f"/r/{ended.study}")
    figure = reader.page.locator("figure", has_text="Show data").first
    expect(figure.get_by_role("table")).to_be_hidden()
    reader.page.emulate_media(media="print")
    reader.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    expect(figure.get_by_role("table")).to_be_visible()


def test_form_is_operable_by_keyboard(admin: Person) -> None:
    """Tab alone moves from the top of the page to the submit button, and each focused element is visible."""
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
