"""JSON schema of the messages between server and workers, and of the files that one program writes for another.

`golden/messages.json` detects changes of these formats; `server/openapi.json` detects those of the REST API. After an
intended change run `make golden` and read the diff.
"""

from __future__ import annotations

import json
import os
import pkgutil
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from wqlab_contracts import bundle, instrument, messages
from wqlab_contracts.messages import Message

GOLDEN = Path(__file__).parent / "golden" / "messages.json"
FILES = (instrument.InstrumentProfile, bundle.Manifest, bundle.RunRecord)
LEVELS = 4
"""Levels of the document whose entries have lines of their own: definitions, models, their properties, each of them."""


def _models() -> list[type[Message]]:
    """Return all classes of the package `messages`, and the records of files."""
    modules = [import_module(f"{messages.__name__}.{each.name}") for each in pkgutil.iter_modules(messages.__path__)]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
    }
    return [*sorted(found - {Message}, key=lambda model: model.__name__), *FILES]


def test_schema_equals_the_golden_file() -> None:
    _, document = models_json_schema([(model, "validation") for model in _models()])
    text = _text(_without_descriptions(document), LEVELS) + "\n"
    if os.environ.get("WQLAB_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "a format changed; if intended, update both sides and run `make golden`"


def test_every_message_forbids_unknown_fields() -> None:
    assert {model.model_config.get("extra") for model in _models()} == {"forbid"}


def _without_descriptions(schema: Any) -> Any:
    """Return the schema without texts that are not part of the format; a field may have the name of such a text."""
    if isinstance(schema, dict):
        return {
            key: _without_descriptions(value)
            for key, value in schema.items()
            if key not in ("description", "title") or not isinstance(value, str)
        }
    if isinstance(schema, list):
        return [_without_descriptions(value) for value in schema]
    return schema


def _text(value: Any, levels: int) -> str:
    """Return JSON with the objects of some levels spread over lines, so that each field of a message has one."""
    if levels == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    entries = ",\n".join(f"{json.dumps(key)}: {_text(each, levels - 1)}" for key, each in sorted(value.items()))
    return f"{{\n{textwrap.indent(entries, ' ')}\n}}"
