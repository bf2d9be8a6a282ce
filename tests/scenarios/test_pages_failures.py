"""Pages of a series that failed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import Lab, MakePerson

pytestmark = pytest.mark.scenario


def test_failed_build_shows_the_compiler_error(lab: Lab, broken: int, person: MakePerson) -> None:
    lab.finish(broken, codes=(3,))
    visitor = person()
    visitor.open(f"/submissions/{broken}")
    page = visitor.page
    failure = page.get_by_role("group", name=re.compile("^Failure:")).first
    expect(failure).to_contain_text("the series or the request")
    expect(failure).to_contain_text(re.compile(r"kernel/workqueue\.c:\d+"))
    expect(failure).to_contain_text("What to do:")
    page.get_by_role("region", name="Steps").get_by_role("link", name=re.compile("candidate", re.IGNORECASE)).click()
    expect(page.get_by_role("heading", name=re.compile(r"^\d+ errors?$"))).to_be_visible()
    expect(page.get_by_role("group", name=re.compile("^Log of build"))).to_be_visible()
