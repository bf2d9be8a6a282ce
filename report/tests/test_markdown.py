"""Markdown of a report."""

from __future__ import annotations

import re

from report_examples import improvement, study
from report_support import hostile

from wqlab_report.writers.markdown import render_markdown


def test_markdown_escapes_input():
    text = re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", render_markdown(hostile()))
    text = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in text.replace("\\<", "")
    assert not re.search(r"(?<!\\)\[a\]", text)
    assert "**bold**" not in text


def test_all_targets_are_recomputed_as_one_family():
    both = study().model_copy(update={"targets": [*improvement().targets, *study().targets]})
    document = render_markdown(both)
    assert "wqlab samples 11 -o run11.csv\nwqlab samples 12 -o run12.csv\n" in document
    assert document.count("wqlab compare run11.csv run12.csv --reference scope=system,strict=0\n") == 1
