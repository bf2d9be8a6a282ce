"""Inputs of the form other than a chosen file, and pages while the server is unreachable."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import NOOP, MakePerson
from .user_git import Topic

pytestmark = pytest.mark.scenario

_DROP = """([name, text]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([text], name));
  for (const type of ["dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


def test_form_offers_the_branches_of_a_git_server(person: MakePerson, topic: Topic) -> None:
    submitter = person("submitter")
    submitter.open("/submit?source=git&plan=xfs-fsync&type=tiny")
    page = submitter.page
    page.get_by_label("URL of lore or Patchwork, Message-ID, or git URL and branch").fill(topic.url)
    expect(page.get_by_text(re.compile(r"\d branch(es)? found"))).to_be_visible()
    branch = page.locator("#field-ref")
    branch.fill("top")
    page.get_by_role("option", name="topic", exact=True).click()
    expect(branch).to_have_value("topic")
    same = page.locator("details", has_text="The same with")
    expect(same).to_contain_text(f"--git {topic.url}")
    expect(same).to_contain_text("--ref topic")


def test_unreachable_git_server_is_named(person: MakePerson, topic: Topic) -> None:
    submitter = person("submitter")
    submitter.open("/submit?source=git")
    submitter.page.get_by_label("URL of lore or Patchwork, Message-ID, or git URL and branch").fill(f"{topic.url}-not")
    expect(submitter.page.get_by_text(re.compile("The branches could not be listed: .*linux.git-not"))).to_be_visible()


def test_mbox_can_be_dropped_anywhere_on_the_page(person: MakePerson) -> None:
    submitter = person("submitter")
    submitter.open("/submit?source=settings")
    submitter.page.evaluate(_DROP, [NOOP.name, NOOP.read_text()])
    held = submitter.page.get_by_role("region", name="Contents of the mbox")
    expect(held).to_contain_text("kernel/workqueue.c")


def test_lost_connection_is_shown_and_recovers(person: MakePerson) -> None:
    visitor = person()
    page = visitor.page
    visitor.open("/submissions")
    banner = page.get_by_text("Connection lost")
    visitor.context.set_offline(True)
    page.get_by_role("link", name="Lab", exact=True).click()
    expect(banner).to_be_visible()
    visitor.context.set_offline(False)
    expect(banner).to_be_hidden()
    visitor.settle()
    expect(page.get_by_role("row", name=re.compile("^tiny-1"))).to_be_visible()
    # Expected while offline: Chromium logs each failed request, and the page each part that it could not load.
    expected = re.compile("ERR_INTERNET_DISCONNECTED|The lab is not responding")
    visitor.errors[:] = [error for error in visitor.errors if not expected.search(error)]
