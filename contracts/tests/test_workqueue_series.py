"""CSV format of workqueue series."""

from __future__ import annotations

import pytest

from wqlab_contracts import workqueue_series
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import BootKey
from wqlab_contracts.workqueue_series import Row


def row(**changes: object) -> Row:
    """Return a row of one workqueue; `changes` replace fields."""
    fields: dict[str, object] = {
        "scenario": "HIGH", "setting": "scope=cache,strict=1", "repetition": 0, "phase": "traced", "source": "stats",
        "seconds": 1.5, "workqueue": "events", "values": {"started": 3, "queued": 1},
    }  # fmt: skip
    return Row.model_validate(fields | changes)


def test_written_rows_are_read_back() -> None:
    rows = [row(), row(seconds=2.5, values={}), row(workqueue="", values={}, note="no counters")]
    assert list(workqueue_series.read(workqueue_series.write(rows))) == rows


def test_write_stops_at_the_row_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue_series, "ROW_LIMIT", 2)
    assert len(list(workqueue_series.read(workqueue_series.write([row()] * 3)))) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b\n1,2\n", "the columns differ"), (workqueue_series.write([row()]).replace("1.5", "soon"), "not a workqueue")],
)
def test_other_text_is_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(workqueue_series.read(text))


def test_file_name_identifies_the_boot() -> None:
    boot = BootKey(block=2, position=1, arm=Arm.CANDIDATE, attempt=3)
    assert workqueue_series.file_name(boot) == "workqueues-block2-1-candidate-attempt3.csv"
