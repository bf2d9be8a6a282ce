"""Read an inventory: a CSV file with one machine a row.

Its first line names columns of `COLUMNS`, in any order. An empty cell is the same as a missing column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from ..yamlfile import suggest_name
from .description import NewDevice, PowerKind

ROW_LIMIT = 10_000

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "name": ("name",),
    "device_type": ("device_type",),
    "lab": ("lab",),
    "summary": ("summary",),
    "arch": ("arch",),
    "sockets": ("topology", "sockets"),
    "l3_per_socket": ("topology", "l3_per_socket"),
    "cores_per_l3": ("topology", "cores_per_l3"),
    "threads_per_core": ("topology", "threads_per_core"),
    "numa_nodes": ("topology", "numa_nodes"),
    "numbering": ("topology", "numbering"),
    "power": ("power", "kind"),
    "bmc": ("power", "host"),
    "bmc_port": ("power", "port"),
    "bmc_user": ("power", "user"),
    "bmc_password_file": ("power", "password_file"),
    "bmc_cipher": ("power", "cipher"),
    "bmc_certificate": ("power", "certificate"),
    "bmc_system": ("power", "system"),
    "pdu": ("power", "host"),
    "pdu_port": ("power", "port"),
    "pdu_model": ("power", "model"),
    "pdu_outlet": ("power", "outlet"),
    "servo_port": ("power", "port"),
    "console_host": ("console", "host"),
    "console_port": ("console", "port"),
    "console_protocol": ("console", "protocol"),
    "netconsole": ("netconsole",),
    "console_device": ("boot", "console_device"),
    "console_speed": ("boot", "console_speed"),
    "ssh_host": ("ssh", "host"),
    "ssh_port": ("ssh", "port"),
    "choose_golden": ("choose_golden",),
    "golden_timeout_s": ("boot", "golden_timeout_s"),
    "variant_timeout_s": ("boot", "variant_timeout_s"),
    "power_off_s": ("boot", "power_off_s"),
    "scratch": ("scratch",),
    "recipe": ("recipe",),
    "rehearsal": ("rehearsal",),
}
"""Column -> path of its value in the description. `scratch` has names separated by blanks."""
_NUMBERS = {"console_speed"}
_SHOWN = 80
"""Characters of a wrong cell in a message."""
KINDS: tuple[str, ...] = get_args(PowerKind)
_BMC, _PDU = ("ipmi", "redfish"), ("pdu",)
KINDS_OF_COLUMN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("bmc", "bmc_port", "bmc_user", "bmc_password_file"), _BMC),
    "bmc_cipher": ("ipmi",),
    **dict.fromkeys(("bmc_certificate", "bmc_system"), ("redfish",)),
    **dict.fromkeys(("pdu", "pdu_port", "pdu_model", "pdu_outlet"), _PDU),
    "servo_port": ("debug_cable",),
}
"""Kinds of power that a column describes; columns of no kind describe the machine."""


@dataclass(frozen=True, order=True)
class RowProblem:
    """One mistake in an inventory."""

    line: int
    column: str
    """Empty if it concerns the whole row."""
    message: str

    def text(self, file: str) -> str:
        place = f"{file}:{self.line}" if self.line else file
        return f"{place}: {self.column}: {self.message}" if self.column else f"{place}: {self.message}"


class InventoryError(ValueError):
    """An inventory has mistakes: all of them, in the order of lines."""

    def __init__(self, problems: Sequence[RowProblem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(each.text("") for each in self.problems))


@dataclass(frozen=True)
class Row:
    """One machine and the line of the file that describes it."""

    line: int
    device: NewDevice


def read(data: bytes) -> list[Row]:
    """Return the machines of an inventory. Raises InventoryError with every mistake."""
    problems: list[RowProblem] = []
    rows: list[Row] = []
    for line, cells in _cells(data):
        found = parse(cells, line)
        if isinstance(found, NewDevice):
            rows.append(Row(line, found))
        else:
            problems += found
    problems += _repeated(rows)
    if problems:
        raise InventoryError(problems)
    return rows


def read_cells(data: bytes) -> list[dict[str, str]]:
    """Return the cells of each row by column, without looking at their values. Raises InventoryError."""
    return [cells for _, cells in _cells(data)]


def _cells(data: bytes) -> list[tuple[int, dict[str, str]]]:
    """Return line and cells of each row that is neither empty nor a comment. Raises InventoryError."""
    try:
        text = data.decode("utf-8-sig")  # spreadsheets begin the file with a byte order mark
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InventoryError([RowProblem(line, "", "is not UTF-8: save the file as CSV UTF-8")]) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    problems: list[RowProblem] = []
    rows: list[tuple[int, dict[str, str]]] = []
    end = 0
    try:
        header: list[str] = []
        while not header and (first := next(reader, None)) is not None:
            line, end = end + 1, reader.line_num
            if not _is_ignored(first):
                header = [cell.strip() for cell in first]
        if problems := _header_problems(header, line if header else 1, text):
            raise InventoryError(problems)
        for cells in reader:
            line, end = end + 1, reader.line_num
            if _is_ignored(cells):
                continue
            if len(cells) > len(header):
                message = f"has {len(cells)} cells for {len(header)} columns: quote cells with a comma"
                problems.append(RowProblem(line, "", message))
            rows.append((line, {name: cell.strip() for name, cell in zip(header, cells, strict=False)}))
    except csv.Error as error:
        problems.append(RowProblem(end + 1, "", f"is not CSV: {error}; quote cells with a comma or a quote"))
    if len(rows) > ROW_LIMIT:
        problems.append(RowProblem(0, "", f"has more than {ROW_LIMIT} machines: split the file"))
    if not rows and not problems:
        problems.append(RowProblem(0, "", "has no machine: write one a row below the line with the columns"))
    if problems:
        raise InventoryError(problems)
    return rows


def _is_ignored(cells: Sequence[str]) -> bool:
    """Return True for an empty line or a comment."""
    return not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#")


def column_of(where: str, kind: str) -> str:
    """Return the column of a field of the description, such as `topology.sockets`; `kind` is that of the power."""
    path = tuple(where.split("."))
    for column, known in COLUMNS.items():
        if known[: len(path)] == path and kind in KINDS_OF_COLUMN.get(column, (kind,)):
            return column
    return ""


def _header_problems(header: Sequence[str], line: int, text: str) -> list[RowProblem]:
    if not text.strip() or not header:
        return [RowProblem(0, "", "is empty: its first line names the columns, such as name,device_type,power")]
    problems = []
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        return [RowProblem(line, "", "is not separated by commas: save the file as CSV with commas")]
    for index, name in enumerate(header):
        if name not in COLUMNS:
            message = f"no such column; {suggest_name(name, COLUMNS)}" if name else f"column {index + 1} has no name"
            problems.append(RowProblem(line, name, message))
        elif name in header[:index]:
            problems.append(RowProblem(line, name, "is there twice: remove one of the columns"))
    needed = ("name", "device_type", "power", "console_host", "console_port", "ssh_host")
    problems += [RowProblem(line, name, "the column is missing: add it") for name in needed if name not in header]
    return problems


def parse(cells: Mapping[str, str], line: int = 0) -> NewDevice | list[RowProblem]:
    """Return the machine that the cells describe, by column, or every mistake. An empty cell counts as missing."""
    values = {name: text for name, cell in cells.items() if (text := cell.strip())}
    kind = values.get("power", "")
    if kind not in KINDS:
        said = f"{kind!r} is not known" if kind else "is empty"
        return [RowProblem(line, "power", f"{said}: write {', '.join(KINDS[:-1])} or {KINDS[-1]}")]
    problems = []
    given: dict[str, Any] = {}
    for column, text in values.items():
        if kind not in KINDS_OF_COLUMN.get(column, KINDS):
            problems.append(RowProblem(line, column, f"is set, but power is {kind}: leave it empty"))
            continue
        path, value = COLUMNS[column], _value(column, text)
        target = given
        for step in path[:-1]:
            target = target.setdefault(step, {})
        target[path[-1]] = value
    topology = given.get("topology")
    if topology is not None:
        topology.setdefault("threads_per_core", "1")
    try:
        device = NewDevice.model_validate(given)
    except ValidationError as error:
        return problems + [_explain(violation, kind, line, values) for violation in error.errors()]
    return problems or device


def cells_of(values: Mapping[str, str]) -> str:
    """Return an inventory of one machine, as `read` takes it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    kept = {column: values[column] for column in COLUMNS if values.get(column)}
    writer.writerow(kept.keys())
    writer.writerow(kept.values())
    return out.getvalue()


def _value(column: str, text: str) -> Any:
    if column == "scratch":
        return [word.removeprefix("/dev/disk/by-id/") for word in text.split()]
    if column in _NUMBERS and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return text


def _explain(violation: Any, kind: str, line: int, values: Mapping[str, str]) -> RowProblem:
    location = [str(step) for step in violation["loc"] if not isinstance(step, int) and step not in KINDS]
    column = column_of(".".join(location), kind) if location else ""
    if violation["type"] == "missing":
        return RowProblem(line, column, "is empty: write a value")
    message = violation["msg"].removeprefix("Value error, ")
    said = f"{_shorten(values[column])!r}: " if column in values else ""
    return RowProblem(line, column, f"{said}{message[:1].lower()}{message[1:]}")


def _shorten(cell: str) -> str:
    return cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}..."


def _repeated(rows: Sequence[Row]) -> list[RowProblem]:
    first: dict[str, int] = {}
    return [
        RowProblem(row.line, "name", f"{row.device.name} is also in line {first[row.device.name]}: remove one of them")
        for row in rows
        if first.setdefault(row.device.name, row.line) != row.line
    ]
