"""The HTML page of a report."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from all_examples import EXAMPLES
from report_examples import improvement
from report_support import hostile

from wqlab_report.writers.html import render_html


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("name", [*EXAMPLES, "hostile"])
def test_html_has_no_script_and_no_external_resource(name):
    page = render_html(hostile() if name == "hostile" else EXAMPLES[name]())
    tags = Tags()
    tags.feed(page)
    assert not tags.seen & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    assert not [attribute for attribute in tags.attributes if attribute.startswith("on")]
    own = re.escape(improvement().lab_url)  # links to the lab itself are allowed
    assert not re.search(rf"""(?:src|href)\s*=\s*["'](?!#|{own}/)|url\(|@import""", page)
    assert "{{ 7*7 }}" in page or name != "hostile"
