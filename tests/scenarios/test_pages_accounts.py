"""Sign-in, permissions of each role, users and tokens, in a browser with a real server."""

from __future__ import annotations

import re
import subprocess

import pytest
from playwright.sync_api import expect

from .conftest import Lab, MakePerson

pytestmark = pytest.mark.scenario


def test_wrong_password_shows_a_message(person: MakePerson) -> None:
    page = person().page
    page.goto("/sign-in")
    page.get_by_label("User name").fill("a-viewer")
    page.get_by_label("Password", exact=True).fill("not the password at all")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("no user has this name and password")
    assert page.url.endswith("/sign-in")


def test_sign_in_returns_to_the_page_and_sign_out_ends_it(
    lab: Lab, person: MakePerson, passwords: dict[str, str]
) -> None:
    visitor = person()
    page = visitor.page
    visitor.open("/plans/xfs-fsync")
    page.get_by_role("link", name="Sign in").first.click()
    page.get_by_label("User name").fill("a-submitter")
    page.get_by_label("Password", exact=True).fill(passwords["submitter"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{lab.url}/plans/xfs-fsync")
    (cookie,) = [each for each in visitor.context.cookies() if each.get("httpOnly")]
    assert cookie.get("sameSite") in {"Lax", "Strict"}
    page.get_by_role("button", name="a-submitter").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in").first).to_be_visible()
    assert not [each for each in visitor.context.cookies() if each["name"] == cookie["name"]]


@pytest.mark.parametrize(
    ("role", "submits", "maintains", "administers"),
    [
        (None, False, False, False),
        pytest.param("viewer", False, False, False, marks=pytest.mark.nightly),
        pytest.param("submitter", True, False, False, marks=pytest.mark.nightly),
        ("maintainer", True, True, False),
        ("admin", True, True, True),
    ],
)
def test_role_sees_only_its_permitted_actions(
    person: MakePerson, role: str | None, submits: bool, maintains: bool, administers: bool
) -> None:
    someone = person(role)
    page = someone.page
    someone.open("/submit")
    if role is None:
        expect(page.get_by_role("button", name="Sign in to submit")).to_be_visible()
    else:
        expect(page.get_by_role("button", name=re.compile("^Submit"))).to_be_enabled(enabled=submits)
    someone.open("/lab")
    expect(page.get_by_role("link", name="tiny-1").first).to_be_visible()
    expect(page.get_by_role("button", name="Quarantine: tiny-1")).to_have_count(int(maintains))
    if role is not None:
        someone.open("/admin/users")
        expect(page.get_by_role("button", name="Create user")).to_have_count(int(administers))
        someone.open("/admin/audit")
        expect(page.get_by_role("table", name="Audit log")).to_have_count(int(administers))


def test_server_refuses_actions_that_the_page_hides(person: MakePerson) -> None:
    """The request has the viewer's cookie and CSRF token and comes from the viewer's page."""
    viewer = person("viewer")
    viewer.open("/lab")
    script = """async () => {
      const { csrf_token } = await (await fetch("/api/v1/session")).json();
      const send = headers => fetch("/api/v1/devices/tiny-1/quarantine", {
        method: "POST", headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ reason: "because" }) });
      return [(await send({ "x-csrf-token": csrf_token })).status, (await send({})).status];
    }"""
    assert viewer.page.evaluate(script) == [403, 403]


def test_created_token_works_until_revoked(lab: Lab, person: MakePerson) -> None:
    submitter = person("submitter")
    page = submitter.page
    submitter.open("/account")
    page.get_by_label("Name", exact=True).fill("for CI")
    page.get_by_role("button", name="Create token").click()
    shown = page.get_by_text("it will not be shown again").locator("xpath=ancestor::*[.//code or .//pre][1]")
    found = re.search(r"wql_[\w-]+", shown.inner_text())
    assert found is not None

    def listing(codes: set[int]) -> str:
        result = subprocess.run(
            ["wqlab", "list"],
            env={**lab.environment, "WQLAB_TOKEN": found.group()},
            text=True,
            capture_output=True,
            check=False,
        )
        assert result.returncode in codes, result
        return result.stderr

    listing({0})
    page.get_by_role("button", name="Revoke for CI").click()
    expect(page.get_by_role("button", name="Revoke for CI")).to_have_count(0)
    assert "token" in listing({2, 4})


def test_created_user_signs_in_until_disabled(lab: Lab, person: MakePerson) -> None:
    admin = person("admin")
    page = admin.page
    admin.open("/admin/users")
    page.get_by_label("User name").fill("newcomer")
    page.get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Create user").click()
    shown = page.get_by_text("it will not be shown again").locator("xpath=ancestor::*[.//code or .//pre][1]")
    found = re.search(r"\b[a-z2-9]{4}(?:-[a-z2-9]{4}){4}\b", shown.inner_text())
    assert found is not None
    someone = person()
    someone.sign_in("newcomer", found.group())
    expect(someone.page.get_by_role("button", name="newcomer")).to_be_visible()
    page.get_by_role("button", name="Disable newcomer").click()
    expect(page.get_by_role("button", name="Enable newcomer")).to_be_visible()
    someone.open("/")
    expect(someone.page.get_by_role("link", name="Sign in").first).to_be_visible()
