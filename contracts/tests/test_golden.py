"""Every message's wire shape, pinned as JSON: a change shows in a diff, and old senders can be judged by it.

After a wanted change: WQLAB_WRITE_GOLDEN=1 pytest contracts/tests/test_golden.py, and read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from wqlab_contracts import cpu_layout, enums, messages, specs
from wqlab_contracts.api import accounts, quotes, steps
from wqlab_contracts.api import curves as api_curves
from wqlab_contracts.api import queue as api_lab
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api import series as api_series
from wqlab_contracts.api import submissions as api
from wqlab_contracts.messages import lookups

MODULES = (
    messages,
    lookups,
    api,
    api_curves,
    api_lab,
    quotes,
    api_report,
    api_series,
    steps,
    cpu_layout,
    accounts,
    specs,
)

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("WQLAB_WRITE_GOLDEN") == "1"


def models() -> list[type[BaseModel]]:
    """Every concrete message and resource that the contracts define."""
    found = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
        and value not in (messages.Message, specs.Strict, api.Page)
    }
    return sorted(found, key=lambda model: model.__name__)


def check(name: str, content: Any) -> None:
    path = GOLDEN / f"{name}.json"
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no {path.name}: WQLAB_WRITE_GOLDEN=1 writes it"
    assert text == path.read_text(), f"the wire shape of {name} changed; is that wanted, and do all sides know?"


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_schema(model: type[BaseModel]) -> None:
    schema = model.model_json_schema(ref_template="{model}")
    # What a model is made of has a file of its own; descriptions are prose.
    schema.pop("$defs", None)
    check(f"schema/{model.__name__}", _without_prose(schema))


def test_enums() -> None:
    vocabularies = {
        name: [member.value for member in value]
        for name, value in vars(enums).items()
        if isinstance(value, type)
        and issubclass(value, enums.StrEnum | enums.IntEnum)
        and value.__module__ == enums.__name__
    }
    check("enums", vocabularies)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in (GOLDEN / "schema").glob("*.json")} == {model.__name__ for model in models()}


EXAMPLES = sorted((GOLDEN / "examples").glob("*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_survives_a_round_trip(path: Path) -> None:
    """A recorded message reads back and is written as it was, to the byte."""
    model = getattr(messages, path.stem.partition("-")[0])
    message = TypeAdapter(model).validate_json(path.read_text())
    assert json.loads(message.model_dump_json(by_alias=True)) == json.loads(path.read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_unknown_field_is_refused(path: Path) -> None:
    model = getattr(messages, path.stem.partition("-")[0])
    content = json.loads(path.read_text()) | {"surprise": 1}
    with pytest.raises(ValidationError, match="surprise"):
        TypeAdapter(model).validate_python(content)


def test_there_is_an_example_of_every_job_and_result() -> None:
    have = {path.stem.partition("-")[0] for path in EXAMPLES}
    assert {"ApplyJob", "ApplyResult", "BuildJob", "BuildResult", "RunJob", "RunResult", "Samples", "Finding"} <= have


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_prose(value) for key, value in schema.items() if key not in ("description", "title")}
    if isinstance(schema, list):
        return [_without_prose(value) for value in schema]
    return schema
