"""Sign-in with an OpenID provider in a browser: its page, roles from groups, and a provider that is gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from oidc_provider_mock import User, run_server_in_thread
from playwright.sync_api import Browser, Page, expect

from wqlab_lab.paths import free_port

from .browser import Person
from .conftest import Lab

pytestmark = pytest.mark.scenario

LABEL = "Sign in at Example"
PEOPLE = (
    User(sub="s-ada", claims={"preferred_username": "ada", "groups": ["kernel"]}),
    User(sub="s-grace", claims={"preferred_username": "a-viewer", "groups": ["kernel", "wqlab-admins"]}),
    User(sub="s-eve", claims={"preferred_username": "eve", "groups": ["choir"]}),
)
PRINT_ENVIRONMENT = (
    "import json; from wqlab_lab.paths import LabPaths; "
    "print(json.dumps(LabPaths.from_environment().server_environment()))"
)


@dataclass
class Api:
    """A second API process of the lab, with an OpenID provider that may not run yet."""

    url: str
    provider_port: int
    people: list[Person] = field(default_factory=list)


@pytest.fixture(scope="module")
def api(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("oidc")
    secret = folder / "client-secret"
    secret.write_text("a client secret that the provider does not check\n")
    port, provider_port = free_port(0), free_port(0)
    api = Api(f"http://127.0.0.1:{port}", provider_port)
    settings = {
        "WQLAB_PUBLIC_URL": api.url,
        "WQLAB_OIDC_ISSUER": f"http://localhost:{provider_port}",
        "WQLAB_OIDC_CLIENT_ID": "wqlab",
        "WQLAB_OIDC_CLIENT_SECRET_FILE": str(secret),
        "WQLAB_OIDC_ROLES": "kernel=submitter;wqlab-admins=admin",
        "WQLAB_OIDC_LABEL": LABEL,
    }
    # The environment that `make up` gives to the API.
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_ENVIRONMENT],
        env={**lab.environment, **settings},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    with (folder / "api.log").open("w") as log:
        process = subprocess.Popen(
            ["wqlab-server", "api", "--port", str(port)], env=json.loads(printed), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _await_api(api.url, process, folder / "api.log")
        yield api
    finally:
        process.terminate()
        process.wait()


def _await_api(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/healthz", trust_env=False, timeout=None).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


@pytest.fixture(scope="module")
def provider(api: Api) -> Iterator[None]:
    with run_server_in_thread(api.provider_port, user_claims=PEOPLE):
        yield


@pytest.fixture
def visitor(api: Api, chromium: Browser) -> Iterator[Person]:
    person = Person(chromium, api.url)
    # The provider's page loads a style sheet from the internet.
    person.page.route("https://cdn.jsdelivr.net/**", lambda route: route.fulfill(body="", content_type="text/css"))
    yield person
    person.close()
    assert not person.errors, f"errors on the browser's console: {person.errors}"


def sign_in(visitor: Person, subject: str) -> None:
    """Sign in at the provider. The server asks an unreachable provider again after 15 s."""
    visitor.open("/sign-in")
    link = visitor.page.get_by_role("link", name=LABEL)
    while link.count() == 0:
        visitor.page.wait_for_timeout(1000)
        visitor.open("/sign-in")
    link.click()
    choose(visitor.page, subject)


def choose(page: Page, subject: str) -> None:
    expect(page.get_by_role("heading", name="Authorize Client")).to_be_visible()
    page.get_by_role("button", name=subject, exact=True).first.click()


def test_provider_that_is_gone_is_named_and_passwords_work(
    api: Api, visitor: Person, passwords: dict[str, str]
) -> None:
    visitor.open("/sign-in")
    status = visitor.page.get_by_role("status").filter(has_text=LABEL)
    expect(status).to_contain_text(f"{LABEL} does not work now: localhost/.well-known/openid-configuration cannot be")
    assert visitor.axe() == []
    assert visitor.overflow() <= 0
    visitor.sign_in("a-submitter", passwords["submitter"])
    expect(visitor.page.get_by_role("button", name="a-submitter")).to_be_visible()


def test_person_signs_in_returns_to_the_page_and_signs_out(api: Api, provider: None, visitor: Person) -> None:
    page = visitor.page
    sign_in(visitor, "s-ada")
    expect(page.get_by_role("button", name="ada", exact=True)).to_be_visible()
    page.get_by_role("button", name="ada", exact=True).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in").first).to_be_visible()

    visitor.open("/plans/xfs-fsync")
    page.get_by_role("link", name="Sign in").first.click()
    expect(page.get_by_role("link", name=LABEL)).to_be_visible()
    assert visitor.axe() == []
    page.get_by_role("link", name=LABEL).click()
    choose(page, "s-ada")
    page.wait_for_url(f"{api.url}/plans/xfs-fsync")
    expect(page.get_by_role("button", name="ada", exact=True)).to_be_visible()
    cookies = {each["name"]: each for each in visitor.context.cookies(api.url)}
    assert "wqlab_sign_in" not in cookies
    assert (cookies["wqlab_session"]["httpOnly"], cookies["wqlab_session"]["sameSite"]) == (True, "Lax")
    visitor.open("/account")
    expect(page.get_by_text("submitter, by your groups")).to_be_visible()
    expect(page.get_by_role("heading", name="API tokens")).to_be_visible()
    expect(page.get_by_role("heading", name="Password")).to_have_count(0)
    # A change by the page, with the session's CSRF token.
    page.get_by_label("Name", exact=True).fill("for CI")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("it will not be shown again")).to_be_visible()


def test_person_without_a_group_is_told_what_to_do(api: Api, provider: None, visitor: Person) -> None:
    page = visitor.page
    sign_in(visitor, "s-eve")
    expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
    expect(page.get_by_text("None of your groups has a role in this lab")).to_be_visible()
    page.get_by_role("link", name="Sign in again").click()
    expect(page.get_by_label("User name")).to_be_visible()


def test_answer_of_an_old_tab_is_refused_with_a_page(api: Api, provider: None, visitor: Person) -> None:
    visitor.open("/sign-in")
    answer = visitor.page.goto("/api/v1/session/oidc/callback?state=old&code=x")
    assert answer is not None
    assert answer.status == 400
    expect(visitor.page.get_by_text("belongs to no sign-in that this browser has begun")).to_be_visible()
    assert visitor.axe() == []


def test_administrator_sees_how_people_sign_in_and_keeps_one_out(
    api: Api, provider: None, visitor: Person, chromium: Browser, passwords: dict[str, str]
) -> None:
    """The person is an administrator by a group, with the name of a local account, which it does not get."""
    sign_in(visitor, "s-grace")
    expect(visitor.page.get_by_role("button", name="a-viewer-2")).to_be_visible()
    visitor.open("/admin/users")
    expect(visitor.page.get_by_role("button", name="Create user")).to_be_visible()

    local = Person(chromium, api.url)
    local.sign_in("a-admin", passwords["admin"])
    local.open("/admin/users")
    row = local.page.get_by_role("row").filter(has_text="a-viewer-2")
    expect(row).to_contain_text(f"http://localhost:{api.provider_port}")
    expect(row.get_by_role("combobox")).to_have_count(0)
    expect(row.get_by_role("button", name="New password for a-viewer-2")).to_have_count(0)
    expect(local.page.get_by_role("row").filter(has_text="a-maintainer")).to_contain_text("password")
    assert local.axe() == []
    row.get_by_role("button", name="Disable a-viewer-2").click()
    expect(row.get_by_role("button", name="Enable a-viewer-2")).to_be_visible()
    assert local.errors == []
    local.close()

    visitor.open("/")
    expect(visitor.page.get_by_role("link", name="Sign in").first).to_be_visible()
    sign_in(visitor, "s-grace")
    expect(visitor.page.get_by_text("The account a-viewer-2 is disabled")).to_be_visible()
