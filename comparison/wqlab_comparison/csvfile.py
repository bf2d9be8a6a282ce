"""Read and write samples as CSV: the lab's export and the input of `wqlab compare`.


    device_type,device,plan,scenario,setting,block,position,arm,boot,repetition,warmup,metric,unit,scale,direction,role,evidence,delta,emulator_delta,value

Only block, arm, boot, repetition, scenario, metric, unit, direction and value must be there. A missing column, and an
empty cell of an optional one, takes its default from `DEFAULTS`; `scale` is `difference` for shares (unit % or points)
and `ratio` otherwise.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np

from wqlab_contracts.enums import Arm, Direction, Evidence, Role, Scale
from wqlab_contracts.units import PERCENT_UNITS

from .samples import Labels, Samples, SamplesError

COLUMNS = tuple(field.name for field in fields(Samples))
REQUIRED = ("block", "arm", "boot", "repetition", "scenario", "metric", "unit", "direction", "value")
DEFAULTS = {
    "device_type": "unnamed",
    "device": "unnamed",
    "plan": "unnamed",
    "setting": "",
    "position": "0",
    "warmup": "0",
    "scale": "",
    "role": Role.PRIMARY.value,
    "evidence": Evidence.PERFORMANCE.value,
    "delta": "",
    "emulator_delta": "",
}
SHARE_UNITS = PERCENT_UNITS | {"point", "points", "pp"}
"""Units of shares and utilisation, which can be zero and are compared as differences."""

WHOLE = ("block", "position", "repetition")
_CHOICES: dict[str, frozenset[str]] = {
    "arm": frozenset(Arm),
    "direction": frozenset(Direction),
    "scale": frozenset({"", *Scale}),
    "role": frozenset(Role),
    "evidence": frozenset(Evidence),
}
_TRUTH = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}
_CHUNK = 5_000
_CHUNK_CHARACTERS = 500_000
T = TypeVar("T")


class CsvError(SamplesError):
    """Malformed CSV file; the message names file, line, column and the fix."""


class _Codebook(dict[str | tuple[str, ...], int]):
    """Text -> code, in order of appearance."""

    def __missing__(self, text: str | tuple[str, ...]) -> int:
        self[text] = code = len(self)
        return code


def read_csv(path: Path) -> Samples:
    """Read a whole file. Raises CsvError if it is malformed; OSError if the file cannot be opened."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            return _read(file, path)
        except csv.Error as error:
            raise CsvError(f"{path}: not CSV: {error}") from error
        except UnicodeDecodeError as error:
            raise CsvError(f"{path}: not UTF-8 text at byte {error.start}; save it as UTF-8 CSV") from error


def write_csv(samples: Samples, file: TextIO) -> None:
    """Write every column; reading the text back gives the same samples."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    texts: list[Iterable[object]] = []
    for name in COLUMNS:
        column = getattr(samples, name)
        if isinstance(column, Labels):
            texts.append([column.words[code] for code in column.codes.tolist()])
        elif name == "warmup":
            texts.append(column.astype(np.int64).tolist())
        else:
            texts.append(map(repr, column.tolist()))
    writer.writerows(zip(*texts, strict=True))


def _read(file: TextIO, path: Path) -> Samples:
    header = [name.strip() for name in next(csv.reader(file, strict=True), [])]
    _check_header(header, path)
    spans = _spans(header)
    books = [_Codebook() for _ in spans]
    codes: list[list[np.ndarray]] = [[] for _ in spans]
    values: list[np.ndarray] = []
    before = 0
    for parts in _chunks(file, header, path):
        for index, (span, texts) in enumerate(zip(spans, parts, strict=True)):
            if header[span.start] == "value":
                values.append(_floats(_plain(texts), path, before))
            else:
                codes[index].append(np.fromiter(map(books[index].__getitem__, texts), np.int32, len(texts)))
        before += len(parts[0])
    if not values:
        raise CsvError(f"{path}: no rows under the header; nothing to compare")
    labels = {}
    for span, book, pieces in zip(spans, books, codes, strict=True):
        if pieces:
            row_code = np.concatenate(pieces)
            cells = [part.split(",") if isinstance(part, str) else part for part in book]
            for name, words in zip(header[span.start : span.stop], zip(*cells, strict=True), strict=True):
                column = Labels.encode([word.strip() for word in words])
                labels[name] = Labels(column.codes[row_code], column.words)
    return _samples(labels, np.concatenate(values), path)


def _plain(texts: Sequence[str | tuple[str, ...]]) -> list[str]:
    return ["".join(text) for text in texts]


def _spans(header: list[str]) -> list[range]:
    """Return spans of columns that are read as one text each.

    A million samples are twenty million cells, but all columns except `repetition` and `value` repeat in many rows.
    """
    starts = [i for i, name in enumerate(header) if i == 0 or {name, header[i - 1]} & {"repetition", "value"}]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(header)], strict=True)]


def _chunks(file: TextIO, header: list[str], path: Path) -> Iterator[list[Sequence[str | tuple[str, ...]]]]:
    """Yield some thousand rows at a time, as one list per span.

    An item is the text of a span, or its cells if quotes, blank lines or mistakes require the csv module.
    """
    spans, cell = _spans(header), r'[^,\n"]*+'
    line = re.compile(rf"^{','.join('(' + ','.join([cell] * len(span)) + ')' for span in spans)}$", re.MULTILINE)
    before = 0
    while lines := file.readlines(_CHUNK_CHARACTERS):
        text = "".join(lines).replace("\r\n", "\n")
        rows = line.findall(text)
        if len(rows) == len(lines):
            yield list(zip(*rows, strict=True))
            before += len(rows)
            continue
        reader = csv.reader(chain(lines, file), strict=True)
        while cells := list(islice(reader, _CHUNK)):
            whole = _full_rows(cells, len(header), path, before)
            before += len(whole)
            if whole:
                yield [[tuple(row[span.start : span.stop]) for row in whole] for span in spans]


def _samples(labels: dict[str, Labels], value: np.ndarray, path: Path) -> Samples:
    for name, default in DEFAULTS.items():
        if name in labels:
            labels[name] = Labels(labels[name].codes, tuple(word or default for word in labels[name].words))
        else:
            labels[name] = Labels.constant(default, len(value))
    for name, choices in _CHOICES.items():
        _check_words(labels[name], partial(_one_of, allowed=choices), name, path)
    for name in ("boot", "scenario", "metric"):
        _check_words(labels[name], _not_empty, name, path)
    for name in ("delta", "emulator_delta"):
        _check_words(labels[name], _delta, name, path)
    numbers = {name: _by_word(labels.pop(name), int, name, path, "a whole number") for name in WHOLE}
    truth = _by_word(labels.pop("warmup"), _is_true, "warmup", path, "0 or 1").astype(np.bool_)
    labels["scale"] = _default_scale(labels["scale"], labels["unit"])
    return Samples(**labels, **numbers, warmup=truth, value=value)  # type: ignore[arg-type]


def _default_scale(scale: Labels, unit: Labels) -> Labels:
    words = [*scale.words, Scale.RATIO.value, Scale.DIFFERENCE.value]
    shares = np.array([word.lower() in SHARE_UNITS for word in unit.words])[unit.codes]
    absent = np.array([word == "" for word in scale.words])[scale.codes]
    codes = np.where(absent, np.where(shares, len(words) - 1, len(words) - 2), scale.codes)
    return Labels.encode([words[code] for code in codes.tolist()]) if absent.any() else scale


# --- checks: each distinct word once; only a mistake costs a second look at the file ----------------------------


def _check_header(header: list[str], path: Path) -> None:
    if not header:
        raise CsvError(f"{path}: empty file; the first line names the columns: {','.join(REQUIRED)}")
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        hint = "; columns are separated by commas" if len(header) == 1 else ""
        raise CsvError(f"{path}:1: no column {', '.join(missing)}; needed are {','.join(REQUIRED)}{hint}")
    unknown = [name for name in header if name not in COLUMNS]
    if unknown:
        raise CsvError(f"{path}:1: unknown column {', '.join(map(repr, unknown))}; known are {','.join(COLUMNS)}")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise CsvError(f"{path}:1: column {', '.join(twice)} appears twice; keep one")


def _full_rows(chunk: list[list[str]], width: int, path: Path, before: int) -> list[list[str]]:
    rows = [row for row in chunk if row]
    for index, row in enumerate(rows):
        if len(row) != width:
            line = _line_of(path, before + index)
            raise CsvError(f"{path}:{line}: {len(row)} cells where the header has {width}; check commas and quotes")
    return rows


def _floats(texts: Sequence[str], path: Path, before: int) -> np.ndarray:
    try:
        array = np.array(list(map(float, texts)))
    except ValueError:
        array = np.array([np.nan])
    if np.isfinite(array).all():
        return array
    for index, text in enumerate(texts):
        if not _finite(text):
            line = _line_of(path, before + index)
            raise CsvError(
                f"{path}:{line}: column value: {text!r} is not a finite number; "
                "leave out the row of a repetition that was not measured"
            )
    raise AssertionError("one of the texts is not finite")


def _finite(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _by_word(column: Labels, parse: Callable[[str], T], name: str, path: Path, what: str) -> np.ndarray:
    parsed: list[T] = []
    for code, word in enumerate(column.words):
        try:
            parsed.append(parse(word))
        except (ValueError, KeyError):
            raise _at(column, code, name, path, f"{word!r} is not {what}") from None
    return np.array(parsed)[column.codes]


def _check_words(column: Labels, complaint: Callable[[str], str | None], name: str, path: Path) -> None:
    for code, word in enumerate(column.words):
        text = complaint(word)
        if text:
            raise _at(column, code, name, path, text)


def _is_true(word: str) -> bool:
    return _TRUTH[word.lower()]


def _one_of(word: str, allowed: frozenset[str]) -> str | None:
    return None if word in allowed else f"{word!r} is none of {', '.join(sorted(allowed - {''}))}"


def _not_empty(word: str) -> str | None:
    return None if word else "is empty; every row needs one"


def _delta(word: str) -> str | None:
    if word == "" or (_finite(word) and float(word) >= 0):
        return None
    return f"{word!r} is not a number from zero up; leave it empty for the default"


def _at(column: Labels, code: int, name: str, path: Path, text: str) -> CsvError:
    row = int(np.argmax(column.codes == code))
    return CsvError(f"{path}:{_line_of(path, row)}: column {name}: {text}")


def _line_of(path: Path, row: int) -> int:
    """Return the line of the file on which data row `row` (from 0, blank lines not counted) ends."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        next(reader)
        for index, _ in enumerate(cells for cells in reader if cells):
            if index == row:
                return reader.line_num
    raise AssertionError(f"{path} has changed while it was read")
