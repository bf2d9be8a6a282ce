"""NUL bytes in messages are replaced, in patches rejected."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.enums import Arm, ErrorKind, EventKind
from wqlab_contracts.messages import (
    BlockDiscarded,
    BootKey,
    ConsoleChunk,
    Event,
    Failure,
    MboxSeries,
    RunEvent,
    RunEvents,
    Samples,
)

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
    batch = RunEvents.model_validate_json(f'{{"fence": 1, "events": [{text}]}}')
    assert batch.events == [read]
    assert "\\u0000" not in batch.model_dump_json()


def test_console_data_is_unchanged() -> None:
    assert ConsoleChunk(fence=1, boot=KEY, offset=0, data="AAAA").data == "AAAA"


def test_mbox_with_nul_is_rejected() -> None:
    with pytest.raises(ValidationError, match="NUL byte at character 2"):
        MboxSeries(text="ab\0")
    assert MboxSeries(text="From x\r\n").text == "From x\r\n"
