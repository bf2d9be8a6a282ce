"""Validation of git URLs that users submit."""

from __future__ import annotations

import pytest

from wqlab_server.http.git_urls import url_problem


@pytest.mark.parametrize("url", ["https://example.org/linux.git", "git://example.org/linux.git", "/srv/linux.git"])
def test_public_urls_and_allowed_paths_are_accepted(url: str) -> None:
    assert url_problem(url, ["/srv/linux.git/"]) is None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://example.org/a b", "white space"),
        ("https://example.org/" + "x" * 2000, "2000 characters"),
        ("/etc", "/srv/linux.git"),
        ("ssh://example.org/linux.git", "scheme ssh is not supported"),
        ("linux.git", "without a scheme"),
        ("https://", "no host"),
        ("https://example.org:port/linux.git", "not a URL"),
        ("https://127.1/linux.git", "unusual form of an IP address"),
        ("git://0x7f000001/linux.git", "unusual form of an IP address"),
        ("https://git_.example/linux.git", "not a host name"),
        ("https://b\u00fccher.example/linux.git", "not a host name"),
        ("https://user:secret@example.org/linux.git", "credentials"),
    ],
)
def test_refused_url_has_a_reason(url: str, words: str) -> None:
    problem = url_problem(url, ["/srv/linux.git"])
    assert problem is not None
    assert words in problem
