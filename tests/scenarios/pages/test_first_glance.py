"""What a page shows first: the Submit button is in the window, and a section that failed to load says so."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from server.tests.support.live_server import Live
from server.tests.support.scene import TINY, Scene
from wqlab_contracts.enums import Arm

from ..browser import THEME_RULES, Person
from .conftest import MakePerson

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

LAPTOP = {"width": 1280, "height": 720}
PAGES = (
    "/",
    "/submit",
    "/submissions",
    "/submissions/{id}",
    "/series/{id}",
    "/compare?left={id}&right={id}",
    "/lab",
    "/lab/tiny-1",
    "/plans/flush",
    "/watches",
    "/history",
    "/bisections",
    "/bisections/new",
    "/history/1",
    "/history/shifts/1",
    "/bisections/1",
    "/watches/next",
    "/account",
    "/deliveries",
    "/deliveries/1",
    "/webhooks",
    "/forges",
    "/admin/users",
    "/admin/audit",
    "/admin/labs",
)


def measured(scene: Scene) -> int:
    """Return a finished submission."""
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.finish(number)
    return number


def places(page: Page) -> list[dict[str, float] | None]:
    """Return where the parts of a report's first screen are."""
    parts = ("h1", ".report-line >> nth=1", ".report-claims", ".report-boots", ".report-trust")
    return [page.locator(part).first.bounding_box() for part in parts]


def test_report_is_readable_before_its_scripts_which_leave_it_in_place(
    scene: Scene, live: Live, chromium: Browser
) -> None:
    number = measured(scene)
    live.allow_public_reading()
    seen = []
    for scripts in (False, True):
        with closing(Person(chromium, live.url, scripts=scripts)) as reader:
            reader.lose("ibm-plex")  # which font is used for the first paint depends on when it arrives
            reader.page.goto(f"/r/{number}")
            expect(reader.page.locator("article")).to_contain_text("Can I trust it?")
            if scripts:
                expect(reader.page.get_by_role("heading", name="All comparisons")).to_be_visible()
                assert reader.page.evaluate("() => window.layoutShift") < 0.01
            else:
                expect(reader.page.locator("noscript pre")).to_contain_text(f"/r/{number}")
            seen.append(places(reader.page))
            assert reader.errors == []
    assert seen[0] == seen[1] and None not in seen[0]


def test_report_takes_few_requests_and_bytes(scene: Scene, live: Live, chromium: Browser) -> None:
    number = measured(scene)
    live.allow_public_reading()
    loaded: list[Request] = []
    with closing(Person(chromium, live.url)) as reader:
        reader.page.on("requestfinished", lambda request: loaded.append(request))
        reader.open(f"/r/{number}")
        expect(reader.page.get_by_role("heading", name="All comparisons")).to_be_visible()
        reader.page.wait_for_load_state("networkidle")
        sizes = [each.sizes() for each in loaded]
    assert len(loaded) <= 15
    assert sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes) <= 250_000


def test_submit_is_in_the_window_with_three_targets(person: MakePerson, scene: Scene) -> None:
    for name in ("small", "middle"):
        path = scene.settings.data_dir / f"device-types/{name}.yaml"
        path.write_text(TINY.replace("tiny", name))
    scene.devices()
    author = person("submit")
    author.page.set_viewport_size(LAPTOP)
    author.open("/submit?source=settings&plan=flush&type=tiny&type=small&type=middle")
    button = author.page.get_by_role("button", name="Submit 3 targets")
    for at in (0, 100_000):
        author.page.evaluate("at => scrollTo(0, at)", at)
        expect(button).to_be_in_viewport(ratio=1)
    assert button.evaluate(
        """button => {
          const { left, top, width, height } = button.getBoundingClientRect();
          return button.contains(document.elementFromPoint(left + width / 2, top + height / 2));
        }"""
    ), "nothing covers the button"


def test_filled_button_is_readable_below_the_pointer(person: MakePerson, scene: Scene) -> None:
    number = measured(scene)
    reader = person("read")
    reader.page.goto(f"/submissions/{number}")
    reader.page.get_by_role("link", name="View report").hover()
    assert reader.axe(THEME_RULES) == []


@pytest.mark.parametrize("path", PAGES)
def test_page_whose_data_fail_says_so_and_can_be_retried(person: MakePerson, scene: Scene, path: str) -> None:
    scene.devices()
    number = scene.submission("admin")
    admin = person("admin")

    def fail(route: Route) -> None:
        problem = {"type": "about:blank", "title": "Out of order", "status": 500, "detail": "out of order"}
        route.fulfill(status=500, json=problem, content_type="application/problem+json")

    admin.page.route(lambda url: "/api/v1/" in url and "/api/v1/session" not in url, fail)
    admin.page.goto(path.format(id=number))
    retry = admin.page.get_by_role("button", name="Try again")
    expect(retry.first).to_be_visible()
    expect(admin.page.get_by_text("out of order").first).to_be_visible()
    expect(admin.page.locator("[aria-hidden=true][class*=lines]")).to_have_count(0)
    admin.page.unroute_all()
    for _ in range(retry.count()):
        retry.first.click()
    expect(retry).to_have_count(0)
    admin.errors.clear()  # the browser's own lines about the failed requests
