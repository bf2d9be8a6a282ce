from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wqlab_bench.faults import Fault, FaultKind, FaultList, Trigger, garble


@given(st.text(alphabet="ab", min_size=1, max_size=6), st.text(alphabet="ab", max_size=40), st.data())
def test_a_trigger_sees_its_text_however_it_is_cut(text: str, stream: str, data: st.DataObject) -> None:
    trigger, seen, rest = Trigger(text), False, stream.encode()
    while rest and not seen:
        size = data.draw(st.integers(1, len(rest)))
        seen = trigger.seen(rest[:size])
        rest = rest[size:]
    assert seen == (text in stream)


def test_garbling_keeps_the_length_and_spoils_about_a_tenth() -> None:
    spoilt = garble(b"a" * 10_000, random.Random(1))
    assert len(spoilt) == 10_000
    assert 700 < 10_000 - spoilt.count(b"a") < 1300


def test_faults_are_checked() -> None:
    with pytest.raises(ValidationError, match="about switching the power"):
        Fault(kind=FaultKind.DEAD, when="login:")
    with pytest.raises(ValidationError, match="Extra inputs"):
        FaultList.model_validate({"faults": [{"kind": "hang", "after": 3}]})
