"""KCIDB documents: every document that the models accept is valid by KernelCI's own code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kcidb_io.schema import V5_3
from pydantic import ValidationError

from wqlab_contracts import kcidb


def content(**changes: Any) -> dict[str, Any]:
    """Return a small document. `checkout`, `build`, `test` are fields to change in its objects."""
    return {
        "version": {"major": 5, "minor": 3},
        "checkouts": [{"id": "lab:1", "origin": "lab", **changes.get("checkout", {})}],
        "builds": [{"id": "lab:2", "origin": "lab", "checkout_id": "lab:1", **changes.get("build", {})}],
        "tests": [{"id": "lab:3", "origin": "lab", "build_id": "lab:2", **changes.get("test", {})}],
    }


def parsed(document: dict[str, Any]) -> kcidb.Document:
    return kcidb.parse_document(json.dumps(document).encode())


def test_document_is_read_and_written_without_null():
    document = parsed(content(test={"path": "wqlab.a", "status": "DONE", "number": {"value": 1.5, "unit": "s"}}))
    assert document.origin == "lab"
    written = json.loads(document.to_json())
    assert written["tests"][0] == {
        "id": "lab:3",
        "origin": "lab",
        "build_id": "lab:2",
        "path": "wqlab.a",
        "status": "DONE",
        "number": {"value": 1.5, "unit": "s"},
    }
    assert V5_3.is_valid(written)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": {"id": "other:3"}}, "id 'other:3' does not begin with the origin 'lab'"),
        ({"test": {"build_id": "other:2"}}, "id 'other:2' does not begin with the origin 'lab'"),
        ({"test": {"id": "other:3", "build_id": "other:2", "origin": "other"}}, "several origins: lab, other"),
        ({"test": {"build_id": "lab:9"}}, "test 'lab:3' is of a build that is missing: 'lab:9'"),
        ({"build": {"checkout_id": "lab:9"}}, "build 'lab:2' is of a checkout that is missing: 'lab:9'"),
    ],
)
def test_ids_that_kcidb_accepts_and_nobody_can_use_are_refused(changes, message):
    assert V5_3.is_valid(content(**changes)), "nobody else checks it"
    with pytest.raises(ValueError, match=message):
        parsed(content(**changes))


def test_id_that_is_used_twice_is_refused():
    document = content()
    document["tests"] *= 2
    with pytest.raises(ValueError, match="id 'lab:3' is used twice"):
        parsed(document)


@pytest.mark.parametrize(
    "changes",
    [
        {"test": {"path": "a b"}},
        {"test": {"path": "a/b"}},
        {"test": {"path": "a..b"}},
        {"test": {"status": "REGRESSED"}},
        {"test": {"number": {"unit": "s"}}},
        {"test": {"start_time": "2026-03-14T15:09:00"}},
        {"test": {"log_url": "console.log"}},
        {"test": {"comment": "a\0b"}},
        {"test": {"misc": []}},
        {"test": {"verdict": "regression"}},
        {"test": {"log_excerpt": "x" * (kcidb.EXCERPT_LIMIT + 1)}},
        {"build": {"architecture": "x86-64"}},
        {"build": {"output_files": [{"name": "out/kernel", "url": "https://lab.example.org/k"}]}},
        {"checkout": {"git_repository_url": "git://git.example.org/linux.git"}},
        {"checkout": {"git_repository_url": "https://\b"}},
        {"checkout": {"git_repository_url": "https://[0]"}},
        {"checkout": {"git_commit_hash": "c0ffee"}},
        {"checkout": {"patchset_hash": "c0ffee"}},
        {"checkout": {"message_id": "none"}},
        {"checkout": {"origin": "Lab"}},
        {"checkout": {"valid": None}},
    ],
)
def test_both_refuse_what_the_schema_forbids(changes):
    assert not V5_3.is_valid(content(**changes))
    with pytest.raises(ValueError):
        parsed(content(**changes))


@pytest.mark.parametrize("value", [None, {"a": None}, ["a\0"], {"a\0": 1}, [[None]]])
def test_null_and_nul_are_refused_in_free_fields(value):
    with pytest.raises(ValueError, match="not allowed"):
        parsed(content(test={"misc": {"field": value}}))


WORDS = st.one_of(
    st.text(max_size=20),
    st.from_regex(r"\Ahttps?://[a-z.\[\]:0-9]{0,8}(/[a-z%0-9 ?=]{0,8})?\Z"),
    st.from_regex(r"\A[a-z_.-]{0,8}[.:@/ ]?[a-z_.-]{0,8}\n?\Z"),
)
FIELDS = {
    "checkout": ("tree_name", "git_repository_url", "message_id", "comment", "patchset_hash", "log_excerpt"),
    "build": ("architecture", "command", "compiler", "config_name", "config_url", "log_url"),
    "test": ("path", "comment", "status", "log_url", "start_time"),
}


@settings(max_examples=300)
@given(st.data())
def test_documents_that_are_accepted_are_valid_by_kcidb(data):
    changes: dict[str, dict[str, Any]] = {}
    kind = data.draw(st.sampled_from(sorted(FIELDS)))
    field = data.draw(st.sampled_from(FIELDS[kind]))
    changes[kind] = {field: data.draw(WORDS)}
    try:
        document = parsed(content(**changes))
    except ValueError:
        return
    V5_3.validate(json.loads(document.to_json()))


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("https://lab.example.org", True),
        ("http://127.0.0.1:8750/r/7", True),
        ("http://[::1]:8750/r/7?boot=1", True),
        ("https://user:word@lab.example.org", False),
        ("https://lab.example.org/#a", False),
        ("https://lab.example.org/a b", False),
        ("/r/7", False),
    ],
)
def test_urls(url, accepted):
    assert kcidb.is_url(url) is accepted
    if accepted:
        V5_3.validate(content(test={"log_url": url}))


def test_large_or_broken_documents_are_refused_with_a_reason():
    with pytest.raises(ValueError, match="bytes, more than"):
        kcidb.parse_document(b" " * (kcidb.DOCUMENT_LIMIT + 1))
    with pytest.raises(ValueError, match="Invalid JSON"):
        kcidb.parse_document(b"{")
    with pytest.raises(ValueError, match=r"tests/0/path: .* \(and 1 more mistakes\)"):
        parsed(content(test={"path": "a b", "status": "GOOD"}))


def test_numbers_are_finite():
    with pytest.raises(ValidationError):
        kcidb.Number(value=float("nan"))
