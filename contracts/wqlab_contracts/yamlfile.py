"""Read YAML files and report errors with file, line and key.

A document is read into PyYAML's node tree, which has line marks. It is checked for mistakes that plain loading hides,
such as duplicate keys, converted to plain values and validated by a pydantic model. Each violation is mapped back to
its node.
"""

from __future__ import annotations

import difflib
import io
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, Union

import yaml
from pydantic import BaseModel, ValidationError

DEPTH_LIMIT = 100
"""Levels of nesting; libyaml's composer recurses, and thousands of levels would end the process."""
PROBLEM_LIMIT = 50
"""Problems of one file that are explained; each takes time proportional to the file's size."""
M = TypeVar("M", bound=BaseModel)
Location = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in one file. `line` counts from 1; 0 stands for the whole file."""

    file: str
    line: int
    key: str
    """Dotted path of the value, such as `units[1].name`; empty for the whole document."""
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class DataError(ValueError):
    """The data folder has problems; the message lists all of them by file and line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class _Loader(yaml.CSafeLoader):
    """YAML loader with the booleans of YAML 1.2: `on`, `off`, `yes` and `no` are strings."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Stream(io.StringIO):
    name: str
    """File name in the parser's marks."""


def _line_nested_too_deeply(text: str) -> int | None:
    """Return the line in which the nesting exceeds DEPTH_LIMIT, or None. Raises yaml.YAMLError."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_LIMIT:
                return event.start_mark.line + 1 if event.start_mark else 0
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


class Document:
    """One YAML file (or several merged), with its problems and the location of each value."""

    def __init__(self, file: str, root: yaml.Node | None, problems: list[Problem]) -> None:
        self.file = file
        self.root = root
        self.problems = problems

    @classmethod
    def read(cls, path: Path, file: str) -> Document:
        """Read a file. Bad content raises nothing, it is listed in `problems`. `file` is the name used there."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return cls(file, None, [Problem(file, 0, "", f"cannot be read: {error}")])
        return cls.parse(text, file)

    @classmethod
    def parse(cls, text: str, file: str) -> Document:
        """Parse the text of a file, as `read` does."""
        try:
            stream = _Stream(text)
            stream.name = file
            if (line := _line_nested_too_deeply(text)) is not None:
                return cls(file, None, [Problem(file, line, "", f"nested more than {DEPTH_LIMIT} levels deep")])
            root = yaml.compose(stream, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            return cls(file, None, [Problem(file, line, "", f"not valid YAML: {error.problem or error.context}")])
        except yaml.YAMLError as error:
            return cls(file, None, [Problem(file, 0, "", f"not valid YAML: {error}")])
        if root is None:
            return cls(file, None, [Problem(file, 1, "", "the file is empty")])
        return cls(file, root, list(_structural_problems(file, root, (), set())))

    def over(self, defaults: Document) -> Document:
        """Return this document merged over `defaults`: mappings merge key by key, other values replace the default.

        Defaults that have problems are ignored.
        """
        if self.root is None or defaults.root is None or defaults.problems:
            return self
        return Document(self.file, _merge(defaults.root, self.root), self.problems)

    def over_named(self, key: str, defaults: Document) -> Document:
        """Return this document with each mapping in the list at `key` merged over the one of the same `name` there.

        Defaults that have problems are ignored.
        """
        own, theirs = self._node((key,)), defaults._node((key,))
        if defaults.problems or not isinstance(theirs, yaml.SequenceNode):
            return self
        if not isinstance(self.root, yaml.MappingNode) or not isinstance(own, yaml.SequenceNode):
            return self
        known = {name.value: item for item in theirs.value if (name := _child(item, "name")) is not None}
        items = [
            _merge(known[name.value], item) if (name := _child(item, "name")) and name.value in known else item
            for item in own.value
        ]
        return self._with(self.root, key, own, items)

    def spread(self, key: str, inner: str) -> Document:
        """Return this document with each mapping in the list at `key` that has a list at `inner` replaced by the items
        of that list, each merged over the rest of the mapping."""
        own = self._node((key,))
        if not isinstance(self.root, yaml.MappingNode) or not isinstance(own, yaml.SequenceNode):
            return self
        items: list[yaml.Node] = []
        for item in own.value:
            inside = _child(item, inner)
            if isinstance(item, yaml.MappingNode) and isinstance(inside, yaml.SequenceNode):
                shared = [pair for pair in item.value if pair[0].value != inner]
                rest = yaml.MappingNode(item.tag, shared, item.start_mark, item.end_mark)
                items += [_merge(rest, each) for each in inside.value]
            else:
                items.append(item)
        return self._with(self.root, key, own, items)

    def _with(self, root: yaml.MappingNode, key: str, own: yaml.SequenceNode, items: list[yaml.Node]) -> Document:
        """Return this document with other items in the list at `key`."""
        changed = yaml.SequenceNode(own.tag, items, own.start_mark, own.end_mark)
        content = [(each, changed if each.value == key else value) for each, value in root.value]
        node = yaml.MappingNode(root.tag, content, root.start_mark, root.end_mark)
        return Document(self.file, node, self.problems)

    def problem(self, location: Location, message: str) -> Problem:
        """Return a problem at the value at `location`, or at the nearest enclosing value that exists."""
        mark = self._mark(location)
        return Problem(mark.name, mark.line + 1, dotted(location), message)

    def plain(self) -> Any:
        """Return the content as plain Python values. Only for documents without structural problems."""
        return _plain(self.root) if self.root is not None else None

    def validate_as(self, model: type[M]) -> M | None:
        """Return the validated model, or None after adding the violations to `problems`, at most PROBLEM_LIMIT."""
        if self.problems or self.root is None:
            return None
        try:
            return model.model_validate(self.plain())
        except ValidationError as error:
            shown = error.errors()[:PROBLEM_LIMIT]
            self.problems.extend(self._explain(model, dict(violation)) for violation in shown)
            return None

    def _mark(self, location: Location) -> yaml.Mark:
        node = self.root
        if node is None:
            return yaml.Mark(self.file, 0, 0, 0, "", 0)
        mark: yaml.Mark = node.start_mark
        for step in location:
            if isinstance(node, yaml.MappingNode):
                mark = next((key.start_mark for key, _ in node.value if key.value == step), mark)
            child = _child(node, step)
            if child is None:
                break
            if isinstance(node, yaml.SequenceNode):
                mark = child.start_mark
            node = child
        return mark

    def _explain(self, model: type[BaseModel], violation: dict[str, Any]) -> Problem:
        # pydantic appends "[key]" for a bad dictionary key, and the name of the tried type inside a union.
        location = self._existing(tuple(step for step in violation["loc"] if step != "[key]"), violation["type"])
        message = str(violation["msg"]).removeprefix("Value error, ")
        if violation["type"] == "extra_forbidden":
            known = _fields_at(model, location[:-1])
            close = difflib.get_close_matches(str(location[-1]), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"
            message = f"unknown field; {hint}"
        elif violation["type"] == "missing":
            message = "required field is missing"
        elif (
            violation["type"] == "string_type"
            and violation["input"] is not None
            and isinstance(node := self._node(location), yaml.ScalarNode)
        ):
            # The text of the node, because YAML reads 6.10 as the number 6.1.
            message = f"must be text: write it in quotes ('{node.value}')"
        elif violation["type"] == "value_error":
            location = self._quoted(location, message)
        elif not isinstance(violation["input"], dict | list):
            message = f"{message} (not {violation['input']!r})"
        return self.problem(location, message)

    def _node(self, location: Location) -> yaml.Node | None:
        node = self.root
        for step in location:
            node = _child(node, step) if node is not None else None
        return node

    def _quoted(self, location: Location, message: str) -> Location:
        """Return the location, at or under `location`, of the first scalar quoted in the message of a model's check."""
        node = self._node(location)
        found = _scalars(node, location) if node is not None else iter(())
        return next((quoted for quoted, text in found if repr(text) in message), location)

    def _existing(self, location: Location, kind: str) -> Location:
        """Return `location` without trailing steps that name no value of the document."""
        node, depth = self.root, 0
        while depth < len(location) and node is not None:
            node = _child(node, location[depth])
            depth += node is not None
        return location[: depth + 1] if kind == "missing" else location[:depth]


def dotted(location: Location) -> str:
    """Format a location: ('units', 1, 'name') -> 'units[1].name'."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    return None


def _scalars(node: yaml.Node, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, (*location, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _scalars(item, (*location, index))
    else:
        yield location, node.value


def _structural_problems(file: str, node: yaml.Node, location: Location, seen: set[int]) -> Iterator[Problem]:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        if id(node) in seen:
            yield Problem(file, line, dotted(location), "an alias (*name) repeats a value; write it out")
            return
        seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        first_line: dict[str, int] = {}
        for key, value in node.value:
            key_line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                yield Problem(file, key_line, dotted(location), "a key must be plain text")
                continue
            here = (*location, key.value)
            if key.value in first_line:
                yield Problem(
                    file, key_line, dotted(here), f"key is written twice; first on line {first_line[key.value]}"
                )
            first_line.setdefault(key.value, key_line)
            yield from _structural_problems(file, value, here, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _structural_problems(file, item, (*location, index), seen)
    else:
        try:
            _plain(node)
        except Exception:  # PyYAML's constructors raise ValueError, KeyError, AttributeError ...
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            message = f"{node.value!r} cannot be read as {tag}; if it is text, write it in quotes"
            yield Problem(file, line, dotted(location), message)


def _merge(default: yaml.Node, node: yaml.Node) -> yaml.Node:
    if not (isinstance(default, yaml.MappingNode) and isinstance(node, yaml.MappingNode)):
        return node
    defaults = {key.value: (key, value) for key, value in default.value}
    merged = [
        (key, _merge(defaults[key.value][1], value) if key.value in defaults else value) for key, value in node.value
    ]
    own = {key.value for key, _ in node.value}
    merged.extend(pair for name, pair in defaults.items() if name not in own)
    return yaml.MappingNode(node.tag, merged, node.start_mark, node.end_mark)


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    return yaml.constructor.SafeConstructor().construct_object(node)


def _fields_at(model: type[BaseModel], location: Location) -> list[str]:
    """Return the field names of the model at `location`; empty if there is no model."""
    kinds: list[Any] = [model]
    for step in location:
        kinds = [inner for kind in kinds for inner in _step(kind, step)]
    return [field.alias or name for kind in kinds if _is_model(kind) for name, field in kind.model_fields.items()]


def _step(kind: Any, step: str | int) -> list[Any]:
    """Return the types that a value of type `kind` can have at key or index `step`."""
    if _is_model(kind):
        for name, field in kind.model_fields.items():
            if step in (name, field.alias):
                return _alternatives(field.annotation)
        return []
    arguments = typing.get_args(kind)
    if isinstance(typing.get_origin(kind), type) and arguments:
        return _alternatives(arguments[-1])
    return []


def _alternatives(kind: Any) -> list[Any]:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return [inner for argument in typing.get_args(kind) for inner in _alternatives(argument)]
    if typing.get_origin(kind) is typing.Annotated:
        return _alternatives(typing.get_args(kind)[0])
    return [kind]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def is_text(word: str) -> bool:
    """Return True if YAML reads an unquoted word as text, and not as a number, date, boolean or null."""
    return isinstance(yaml.safe_load(word), str)


def suggest_name(name: str, known: Mapping[str, object] | set[str]) -> str:
    """Return the end of an error message on an unknown name: the closest known name, or all of them."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else f"there are: {', '.join(sorted(known)) or 'none'}"
