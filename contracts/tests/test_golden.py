"""Golden JSON schema of each message and resource, to detect changes of the wire format.

After an intended change run `make golden` and read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from wqlab_contracts import bundle, cpu_layout, enums, instrument, mail, messages, specs
from wqlab_contracts.api import (
    accounts,
    audit,
    base,
    bisections,
    builds,
    comparison,
    curves,
    deliveries,
    devices,
    ladder,
    plans,
    queue,
    quotes,
    report,
    rules,
    runs,
    series,
    steps,
    storage,
    submissions,
    subscriptions,
    sweeps,
    touches,
    webhooks,
)
from wqlab_contracts.api import instrument as api_instrument
from wqlab_contracts.messages import commit_lists, list_mails, list_reads, lookups, shared_boots, walk
from wqlab_contracts.messages import storage as storage_messages

MODULES = (
    messages,
    commit_lists,
    list_mails,
    list_reads,
    lookups,
    shared_boots,
    walk,
    comparison,
    ladder,
    accounts,
    audit,
    base,
    bisections,
    builds,
    curves,
    deliveries,
    devices,
    plans,
    queue,
    quotes,
    report,
    rules,
    runs,
    series,
    steps,
    storage,
    storage_messages,
    submissions,
    subscriptions,
    sweeps,
    touches,
    webhooks,
    bundle,
    cpu_layout,
    instrument,
    mail,
    api_instrument,
    specs,
)

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("WQLAB_WRITE_GOLDEN") == "1"


def models() -> list[type[BaseModel]]:
    """Return all concrete messages and resources of the contracts."""
    found = {
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseModel)
        and f"{value.__module__}.".startswith(f"{module.__name__}.")
        and value not in (messages.Message, specs.Strict, base.ComputedResource, base.Page)
    }
    return sorted(found, key=lambda model: model.__name__)


def check(name: str, content: Any) -> None:
    path = GOLDEN / f"{name}.json"
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no {path.name}; create it with WQLAB_WRITE_GOLDEN=1"
    assert text == path.read_text(), (
        f"the wire format of {name} changed; if intended, update both sides and the golden file"
    )


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_schema(model: type[BaseModel]) -> None:
    schema = model.model_json_schema(ref_template="{model}")
    # Nested models have their own files; descriptions are not part of the wire format.
    schema.pop("$defs", None)
    check(f"schema/{model.__name__}", _without_descriptions(schema))


def test_enums() -> None:
    vocabularies = {
        name: [member.value for member in value]
        for name, value in vars(enums).items()
        if isinstance(value, type)
        and issubclass(value, enums.StrEnum | enums.IntEnum)
        and value.__module__.startswith("wqlab_contracts.")
    }
    check("enums", vocabularies)


def test_golden_files_match_the_models() -> None:
    assert {path.stem for path in (GOLDEN / "schema").glob("*.json")} == {model.__name__ for model in models()}


EXAMPLES = sorted((GOLDEN / "examples").glob("*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_unchanged_by_a_round_trip(path: Path) -> None:
    """A recorded message is parsed and serialised to the same content."""
    model = getattr(messages, path.stem.partition("-")[0])
    message = TypeAdapter(model).validate_json(path.read_text())
    assert json.loads(message.model_dump_json(by_alias=True)) == json.loads(path.read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_unknown_field_is_rejected(path: Path) -> None:
    model = getattr(messages, path.stem.partition("-")[0])
    content = json.loads(path.read_text()) | {"surprise": 1}
    with pytest.raises(ValidationError, match="surprise"):
        TypeAdapter(model).validate_python(content)


def test_jobs_and_results_have_examples() -> None:
    have = {path.stem.partition("-")[0] for path in EXAMPLES}
    assert {"ApplyJob", "ApplyResult", "BuildJob", "BuildResult", "RunJob", "RunResult", "Samples", "Finding"} <= have


def _without_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_descriptions(value) for key, value in schema.items() if key not in ("description", "title")
        }
    if isinstance(schema, list):
        return [_without_descriptions(value) for value in schema]
    return schema
