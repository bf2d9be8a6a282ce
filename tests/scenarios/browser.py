"""Drive Debian's Chromium with Playwright on a lab's pages, and check what a user would notice."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Playwright, Response, expect

from wqlab_lab.web import packages

from .processes import descendants

CHROMIUM = "/usr/bin/chromium"
WIDE, NARROW = (1440, 900), (390, 844)
WCAG_22_AA = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
THEME_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block", "heading-order"]}
"""The rules on colours, which are all that a theme changes, and the heading order."""
EVERY_VIEW = [(width, *theme) for width in (WIDE, NARROW) for theme in (("light", WCAG_22_AA), ("dark", THEME_RULES))]
"""Window size in pixels, colour scheme, and the accessibility rules that are checked in this combination."""
VIEWS = (
    EVERY_VIEW if os.environ.get("WQLAB_EVERY_VIEW") else [(WIDE, "light", WCAG_22_AA), (NARROW, "dark", WCAG_22_AA)]
)
"""The views of the default suite: each width and each theme once. The nightly suite sets the variable."""
WITH_PICTURES = bool(os.environ.get("WQLAB_EVERY_VIEW") or os.environ.get("WQLAB_ARTIFACTS"))
"""True if pages are photographed: in the nightly suite, or if somebody wants the pictures."""
GOOD_LAYOUT_SHIFT = 0.1
"""Sum of layout-shift scores up to which a page counts as good (web.dev, Cumulative Layout Shift)."""

PAGE_TIMEOUT_MS = 600_000
"""Longest time for a page or the answer to a form. It ends the wait for what never comes, also on a busy machine."""
VIEWS_TIMEOUT_S = 600.0
"""Longest time for all views of a page."""
RUN_TIMEOUT_MS = 3_600_000
"""Longest time for a whole run: as long as a test may take."""

_COUNT_SHIFTS = """
window.layoutShift = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""

# Playwright has no time limit for scripts, and Chromium has been seen to draw no frame for minutes. What needs a frame
# after these waits has a limit of its own.
_TWO_FRAMES = """() => new Promise(done => {
  requestAnimationFrame(() => requestAnimationFrame(done));
  setTimeout(done, 5000);
})"""
_FONTS_READY = "() => Promise.race([document.fonts.ready, new Promise(done => setTimeout(done, 10000))]).then(() => {})"

_SCROLL_THROUGH = f"""async () => {{
  const frames = {_TWO_FRAMES};
  for (let at = 0; at < document.documentElement.scrollHeight; at += innerHeight) {{
    scrollTo(0, at);
    await frames();
  }}
  scrollTo(0, 0);
}}"""


def start_chromium(playwright: Playwright) -> Browser:
    expect.set_options(timeout=PAGE_TIMEOUT_MS)
    return playwright.chromium.launch(
        executable_path=CHROMIUM,
        args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        timeout=PAGE_TIMEOUT_MS,
    )


class Person:
    """User with a separate browser context.

    `errors` collects errors on the console. `policy=False` bypasses the content security policy, for tests that run
    scripts in a page that forbids them.
    """

    def __init__(self, browser: Browser, url: str, *, scripts: bool = True, policy: bool = True) -> None:
        self.context = browser.new_context(
            base_url=url,
            viewport={"width": WIDE[0], "height": WIDE[1]},
            color_scheme="light",
            reduced_motion="reduce",
            java_script_enabled=scripts,
            bypass_csp=not policy,
        )
        self.context.add_init_script(_COUNT_SHIFTS)
        self.errors: list[str] = []
        self._network_changed = False
        self._lost: list[str] = []
        self.page = self._new_page()

    def _new_page(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self._error(str(error)))
        page.on("response", self._response)
        return page

    def close(self) -> None:
        self.context.close()

    def sign_in(self, name: str, password: str) -> None:
        self.open("/sign-in")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password", exact=True).fill(password)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.wait_for_url(lambda url: "/sign-in" not in url)

    def open(self, path: str) -> Response | None:
        """Open a path and wait until the page has loaded its data."""
        with ended_after(VIEWS_TIMEOUT_S):
            answer = self.page.goto(path)
            self.settle()
        return answer

    def lose(self, file: str) -> None:
        """Block a file from now on, as a broken connection would; the resulting console errors are ignored."""
        self._lost.append(file)
        self.page.route(f"**/{file}*", lambda route: route.abort())

    def settle(self) -> None:
        expect(self.page.locator("h1").first).to_be_visible()
        expect(self.page.locator("[aria-busy=true]")).to_have_count(0)
        self.page.evaluate(_FONTS_READY)

    def look(self, width: tuple[int, int], scheme: str) -> None:
        """Resize the window and set the preferred colour scheme of the operating system."""
        self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        self.page.set_viewport_size({"width": width[0], "height": width[1]})
        self.page.evaluate(_TWO_FRAMES)

    def photograph(self, folder: Path, name: str) -> None:
        """Scroll through the page, because charts are drawn when visible; save a screenshot of it if WITH_PICTURES."""
        self.page.evaluate(_SCROLL_THROUGH)
        self.settle()
        if WITH_PICTURES:
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")

    def axe(self, rules: dict[str, Any] = WCAG_22_AA) -> list[str]:
        """Return axe-core's violations of `rules` and of the heading order on the current page."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(_axe_source())
        found: dict[str, Any] = self.page.evaluate(
            # heading-order is a best-practice rule, in none of the WCAG tags.
            "rules => axe.run(document, { runOnly: rules, resultTypes: ['violations'],"
            " rules: { 'heading-order': { enabled: true } } })",
            rules,
        )
        return [
            f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def layout_shift(self) -> float:
        return float(self.page.evaluate("() => window.layoutShift"))

    def overflow(self) -> int:
        """Return the pixels by which the page is wider than its window."""
        return int(self.page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth"))

    def faults_in_views(self, name: str, pictures: Path) -> list[str]:
        """Look at the current page in its views, photographed as `name` with a suffix; return its faults.

        Faults are accessibility violations, a page wider than its window, and text that moved while the page loaded.
        Chromium has been seen to stop answering for good on a busy machine, so the page is opened a second time then.
        """
        address = self.page.url
        try:
            with ended_after(VIEWS_TIMEOUT_S):
                return self._faults(name, pictures)
        except Error as error:
            if "crashed" not in str(error):
                raise
        self.page = self._new_page()
        self.open(address)
        with ended_after(VIEWS_TIMEOUT_S):
            return self._faults(name, pictures)

    def _faults(self, name: str, pictures: Path) -> list[str]:
        faults = []
        if (shift := self.layout_shift()) >= GOOD_LAYOUT_SHIFT:
            faults.append(f"{name} moves while it loads: {shift:.3f}")
        for width, scheme, rules in VIEWS:
            view = f"{name}-{width[0]}-{scheme}"
            self.look(width, scheme)
            self.photograph(pictures, view)
            faults += [f"{view}: {violation}" for violation in self.axe(rules)]
            if (over := self.overflow()) > 0:
                faults.append(f"{view}: {over} px wider than its window")
        self.look(WIDE, "light")
        return faults

    def _console(self, message: ConsoleMessage) -> None:
        # A refused request (4xx) is no console error: tests check what the page shows.
        refused = re.match(r"Failed to load resource: .* status of 4\d\d", message.text)
        if message.type == "error" and not refused:
            self._error(f"{message.text} ({message.location['url']})")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self._error(f"{response.status} {response.url}")

    def _error(self, text: str) -> None:
        # Requests fail when an interface of the machine comes or goes, such as a container's, and Chromium loads
        # the page again. The test sees what a page lacks.
        self._network_changed |= "ERR_NETWORK_CHANGED" in text
        if self._network_changed and any(each in text for each in ("ERR_NETWORK_CHANGED", "Unable to preload")):
            return
        if not any(f"/{file}" in text for file in self._lost):
            self.errors.append(text)


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Kill the pages of this process's browser after this time: Playwright then raises Error, as it does for a crash.

    Scripts in a page have no time limit of their own.
    """
    timer = threading.Timer(seconds, _kill_pages)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill_pages() -> None:
    for process in descendants(os.getpid()):
        try:
            if b"--type=renderer" in Path(f"/proc/{process}/cmdline").read_bytes():
                os.kill(process, signal.SIGKILL)
        except OSError:  # it has ended
            continue


def _axe_source() -> str:
    folder = packages(Path(os.environ["WQLAB_CACHE"]))
    return (folder / "node_modules/axe-core/axe.min.js").read_text()
