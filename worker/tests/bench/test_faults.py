from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wqlab_bench.faults import Fault, FaultKind, FaultList, Trigger, garble


@given(st.text(alphabet="ab", min_size=1, max_size=6), st.text(alphabet="ab", max_size=40), st.data())
def test_trigger_finds_text_across_chunks(text: str, stream: str, data: st.DataObject) -> None:
    trigger, seen, rest = Trigger(text), False, stream.encode()
    while rest and not seen:
        size = data.draw(st.integers(1, len(rest)))
        seen = trigger.seen(rest[:size])
        rest = rest[size:]
    assert seen == (text in stream)


def test_garble_replaces_about_a_tenth_of_the_bytes() -> None:
    garbled = garble(b"a" * 10_000, random.Random(1))
    assert len(garbled) == 10_000
    assert 700 < 10_000 - garbled.count(b"a") < 1300


def test_invalid_faults_are_rejected() -> None:
    with pytest.raises(ValidationError, match="affects power switching"):
        Fault(kind=FaultKind.DEAD, when="login:")
    with pytest.raises(ValidationError, match="leave out `every`"):
        Fault(kind=FaultKind.SLOW_POWER, every=3)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Fault(kind=FaultKind.DEAD, every=0)
    with pytest.raises(ValidationError, match="Extra inputs"):
        FaultList.model_validate({"faults": [{"kind": "hang", "after": 3}]})
