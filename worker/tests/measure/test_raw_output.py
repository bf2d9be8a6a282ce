from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wqlab_worker.measure.raw_output import RawOutput


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(2, 60).map(lambda half: 2 * half))
def test_buffer_keeps_its_limit_and_counts_missing_bytes(texts: list[str], limit: int) -> None:
    raw = RawOutput(limit)
    for text in texts:
        raw.add(text)
        assert len(raw) <= limit
    whole = "".join(texts).encode()
    missing = len(whole) - limit
    cut = f"\n# {missing} bytes are left out here\n".encode()
    kept = whole if missing <= 0 else whole[: limit // 2] + cut + whole[-limit // 2 :]
    assert raw.text() == kept


def test_middle_of_an_oversized_text_is_left_out() -> None:
    raw = RawOutput(10)
    raw.add("a" * 5 + "b" * 1_000_000 + "c" * 5)
    assert raw.text() == b"aaaaa\n# 1000000 bytes are left out here\nccccc"
