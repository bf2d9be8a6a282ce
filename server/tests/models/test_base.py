"""Column types for contract models and enums."""

from __future__ import annotations

from enum import StrEnum

import pytest
from pydantic import ValidationError
from sqlalchemy.dialects import postgresql

from wqlab_contracts.enums import ErrorKind, JobState
from wqlab_contracts.messages import Failure
from wqlab_server.models.base import Typed, closed

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
FAILURE = Failure(kind=ErrorKind.KERNEL, summary="panic")


def test_typed_column_stores_json_and_reads_the_model() -> None:
    column = Typed(Failure)
    stored = column.process_bind_param(FAILURE, DIALECT)
    assert stored["kind"] == "kernel"
    assert column.process_result_value(stored, DIALECT) == FAILURE
    assert column.process_bind_param(None, DIALECT) is column.process_result_value(None, DIALECT) is None


def test_typed_column_refuses_json_of_another_model() -> None:
    with pytest.raises(ValidationError):
        Typed(Failure).process_result_value({"from": "another release"}, DIALECT)


def test_enum_column_is_text_with_a_check_of_the_values() -> None:
    column = closed(JobState)
    assert (column.name, column.native_enum, list(column.enums)) == ("job_state", False, [str(s) for s in JobState])

    class ParserKindOfPlan(StrEnum):
        TEXT = "text"

    assert closed(ParserKindOfPlan).name == "parser_kind_of_plan"
