"""Table of samples, the input of every comparison: one row per sample, text columns dictionary-encoded.

The server fills it from database rows, `csvfile` from a file; both get the same answers from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SamplesError(ValueError):
    """Samples that cannot be compared; the message names the thing and the fix."""


@dataclass(frozen=True)
class Labels:
    """A text column: `words[codes[i]]` is the text of row i."""

    codes: Codes
    words: tuple[str, ...]

    @classmethod
    def encode(cls, texts: Sequence[str]) -> Labels:
        book: dict[str, int] = {}
        codes = np.fromiter((book.setdefault(text, len(book)) for text in texts), np.int32, len(texts))
        return cls(codes, tuple(book))

    @classmethod
    def constant(cls, text: str, rows: int) -> Labels:
        return cls(np.zeros(rows, np.int32), (text,))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Labels:
        return Labels(self.codes[rows], self.words)


@dataclass(frozen=True)
class Samples:
    """One row per sample; all columns have the same length.

    `delta` and `emulator_delta` are text because they may be absent (empty): the method then has a default, or none.
    `boot` is any name that is unique within its block and arm. Raises SamplesError for columns of unequal length
    and for values that are not finite.
    """

    device_type: Labels
    device: Labels
    plan: Labels
    scenario: Labels
    setting: Labels
    block: Integers
    position: Integers
    arm: Labels
    boot: Labels
    repetition: Integers
    warmup: NDArray[np.bool_]
    metric: Labels
    unit: Labels
    scale: Labels
    direction: Labels
    role: Labels
    evidence: Labels
    delta: Labels
    emulator_delta: Labels
    value: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            column = getattr(self, field.name)
            length = len(column.codes if isinstance(column, Labels) else column)
            if length != len(self.value):
                raise SamplesError(f"column {field.name} has {length} rows, column value {len(self.value)}")
        bad = np.flatnonzero(~np.isfinite(self.value))
        if len(bad):
            raise SamplesError(
                f"row {int(bad[0])} has the value {self.value[bad[0]]}; a repetition that was not measured has no row"
            )

    def __len__(self) -> int:
        return len(self.value)

    @classmethod
    def from_columns(cls, **columns: Sequence[object] | NDArray[np.generic] | str | float | None) -> Samples:
        """Build from one sequence per column; a text, number or None stands for the same value in every row.

        A None in `delta` means that the metric has none; `emulator_delta` may be left out. Raises SamplesError for an
        unknown or missing column.
        """
        names = [field.name for field in fields(cls)]
        columns = {"emulator_delta": None, **columns}
        unknown, missing = sorted(set(columns) - set(names)), sorted(set(names) - set(columns))
        if unknown or missing:
            listed = ", ".join
            raise SamplesError(f"columns missing: {listed(missing) or 'none'}; unknown: {listed(unknown) or 'none'}")
        value = np.asarray(columns["value"], np.float64)
        made: dict[str, Any] = {name: _column(name, columns[name], len(value)) for name in names}
        return cls(**made)

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """Return all rows of all parts, in order. Needs at least one part."""
        joined: dict[str, Any] = {
            field.name: _joined([getattr(part, field.name) for part in parts]) for field in fields(cls)
        }
        return cls(**joined)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Samples:
        """Return the chosen rows, in the chosen order."""
        chosen: dict[str, Any] = {
            field.name: column.take(rows) if isinstance(column := getattr(self, field.name), Labels) else column[rows]
            for field in fields(self)
        }
        return Samples(**chosen)


_NUMBERS: dict[str, type[np.generic]] = {
    "block": np.int64,
    "position": np.int64,
    "repetition": np.int64,
    "warmup": np.bool_,
    "value": np.float64,
}


def _column(name: str, given: object, rows: int) -> Labels | NDArray[np.generic]:
    if name in _NUMBERS:
        array = np.asarray(given, _NUMBERS[name])
        return np.full(rows, array) if array.ndim == 0 else array
    if given is None or isinstance(given, str | float | int):
        return Labels.constant(_text(given), rows)
    return Labels.encode([_text(item) for item in given])  # type: ignore[attr-defined]


def _text(item: object) -> str:
    return "" if item is None else str(item)


def _joined(columns: list[Any]) -> Labels | NDArray[np.generic]:
    if not isinstance(columns[0], Labels):
        return np.concatenate(columns)
    book: dict[str, int] = {}
    codes = []
    for column in columns:
        translation = np.array([book.setdefault(word, len(book)) for word in column.words], np.int32)
        codes.append(translation[column.codes] if len(column.words) else column.codes)
    return Labels(np.concatenate(codes), tuple(book))


def group(*columns: Labels | Integers) -> Integers:
    """Return a number per row, equal exactly for rows that agree in every column."""
    key = np.zeros(len(columns[0].codes if isinstance(columns[0], Labels) else columns[0]), np.int64)
    distinct = 1
    for column in columns:
        if isinstance(column, Labels):
            codes, size = column.codes.astype(np.int64), len(column.words)
        else:
            seen, codes = np.unique(column, return_inverse=True)
            size = len(seen)
        if distinct * max(size, 1) >= 2**62:
            seen, key = np.unique(key, return_inverse=True)
            distinct = len(seen)
        key = key * max(size, 1) + codes
        distinct *= max(size, 1)
    return key
