"""NUL bytes in messages are replaced, in patches rejected; long texts are cut."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.enums import Arm, ErrorKind, EventKind
from wqlab_contracts.messages import (
    BlockDiscarded,
    BootKey,
    ConsoleChunk,
    Event,
    Failure,
    JobEvents,
    MboxSeries,
    RunEvent,
    Samples,
)
from wqlab_contracts.messages.base import FACTS_LEFT_OUT, bounded_facts, cut, shorten

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)


def test_nul_is_replaced_in_nested_texts() -> None:
    failure = Failure(kind=ErrorKind.KERNEL, summary="a\0b", excerpt="\0", advice="\n\t")
    assert (failure.summary, failure.excerpt, failure.advice) == ("a\ufffdb", "\ufffd", "\n\t")
    samples = Samples(at=NOW, boot=KEY, samples=[], commands={"x\0": "fio\0"}, facts={"a": "\x01"})
    assert samples.commands == {"x\ufffd": "fio\ufffd"}
    assert samples.facts == {"a": "\x01"}
    event = Event(seq=1, at=NOW, kind=EventKind.FINDING, data={"deep": [{"er": "\0"}]})
    assert event.data == {"deep": [{"er": "\ufffd"}]}


def test_nul_is_replaced_in_a_batch_of_events() -> None:
    text = (
        '{"type": "block_discarded", "at": "2026-01-01T00:00:00Z", "block": 0, "attempt": 0, "arm": "baseline", '
        '"failure": {"kind": "kernel", "summary": "wrong\\u0000"}}'
    )
    read: RunEvent = TypeAdapter(RunEvent).validate_json(text)
    assert isinstance(read, BlockDiscarded)
    assert read.failure.summary == "wrong\ufffd"
    assert read.arm is Arm.BASELINE
    batch = JobEvents.model_validate_json(f'{{"fence": 1, "events": [{text}]}}')
    assert batch.events == [read]
    assert "\\u0000" not in batch.model_dump_json()


def test_console_data_is_unchanged() -> None:
    assert ConsoleChunk(fence=1, boot=KEY, offset=0, data="AAAA").data == "AAAA"


def test_mbox_with_nul_is_rejected() -> None:
    with pytest.raises(ValidationError, match="NUL byte at character 2"):
        MboxSeries(text="ab\0")
    assert MboxSeries(text="From x\r\n").text == "From x\r\n"


@given(
    st.dictionaries(
        st.sampled_from([FACTS_LEFT_OUT, *(f"{number} {'n' * 150}" for number in range(30))]),
        st.sampled_from(["", "7", "v" * 5000, "\U0001f512" * 5000]),
    )
)
def test_limits_of_texts_change_nothing_when_a_message_is_read_again(facts: dict[str, str]) -> None:
    """A message passes the process of a device session, the worker and the server."""
    first = bounded_facts(facts)
    assert bounded_facts(first) == first
    for limit in (cut, shorten):
        text = limit("x" * 100_000)
        assert limit(text) == text


@pytest.mark.parametrize("size", [1, 1000])
def test_missing_facts_are_counted(size: int) -> None:
    facts = bounded_facts({f"fact {number}": "v" * size for number in range(600)})
    assert len(facts) - 1 + int(facts[FACTS_LEFT_OUT]) == 600
    assert bounded_facts(facts) == facts
