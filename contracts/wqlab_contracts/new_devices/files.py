"""Plan the files of new machines, check them with the project's loaders, and write them.

Nothing is written unless all of it is valid. A file that a person has edited is never changed: the plan says what to
add to it.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..addresses_file import FILE, read_addresses
from ..loading import load_data
from ..yamlfile import DataError
from . import conflicts, render
from .description import NewDevice

_FOLDERS = ("kernels", "testplans", "intake")


@dataclass(frozen=True)
class Refusal:
    """Why a machine is not added, and what to do."""

    device: str
    """Name of the machine; empty if it concerns the folder."""
    field: str
    """Field of the description; empty if it concerns the whole of it."""
    message: str


class DevicesRefused(ValueError):
    """Machines cannot be added; nothing was written."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = list(refusals)
        super().__init__("\n".join(f"{each.device}: {each.message}".removeprefix(": ") for each in refusals))


@dataclass(frozen=True)
class PlannedFile:
    """A file to write, and its text before."""

    path: Path
    text: str
    before: str | None
    """None if the file does not exist."""

    @property
    def changed(self) -> bool:
        return self.text != self.before

    @property
    def added(self) -> str:
        """Return the lines that the file gets; all of a new file."""
        before = set((self.before or "").split("\n"))
        return (
            self.text
            if self.before is None
            else "\n".join(line for line in self.text.split("\n") if line not in before)
        )


@dataclass(frozen=True)
class Folders:
    """Where the files of a lab are."""

    data: Path
    """Data folder, with device-types/."""
    exporters: Path
    """Folder of the files that labgrid's exporter includes."""

    @property
    def device_types(self) -> Path:
        return self.data / "device-types"


@dataclass
class _Draft:
    """Files in the making, by path, and what is wrong."""

    texts: dict[Path, str] = field(default_factory=dict)
    before: dict[Path, str | None] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def read(self, path: Path) -> str | None:
        """Return the file's text; None without a file. Raises OSError, and DevicesRefused for another encoding."""
        if path not in self.before:
            try:
                self.before[path] = path.read_text(encoding="utf-8") if path.exists() else None
            except UnicodeDecodeError:
                raise DevicesRefused([Refusal("", "", f"{path} is not UTF-8: save it as UTF-8")]) from None
        return self.texts.get(path, self.before[path])

    def refuse(self, device: NewDevice, where: str, message: str) -> None:
        self.refusals.append(Refusal(device.name, where, message))


def plan(devices: Sequence[NewDevice], folders: Folders, *, replace: bool = False) -> list[PlannedFile]:
    """Return the files that add the machines, also those that would not change.

    With `replace`, what an earlier call wrote for a machine of the same name is replaced. Raises DevicesRefused with
    every reason.
    """
    draft = _Draft()
    for conflict in conflicts.find(devices, folders.data):
        draft.refuse(conflict.device, conflict.field, conflict.message)
    by_type: dict[str, list[NewDevice]] = {}
    for device in devices:
        by_type.setdefault(device.device_type, []).append(device)
    for name, group in by_type.items():
        _plan_type(folders.device_types / f"{name}.yaml", group, draft, replace=replace)
    _plan_addresses(folders.device_types, devices, draft, replace=replace)
    for device in devices:
        path, text = folders.exporters / f"{device.name}.yaml", render.exporter_text(device)
        existing = draft.read(path)
        if existing not in {None, text} and not replace:
            draft.refuse(device, "name", f"{path.name} in {path.parent} exists with other content; {_REPLACE}")
        draft.texts[path] = text
    if draft.refusals:
        raise DevicesRefused(draft.refusals)
    files = [PlannedFile(path, text, draft.before[path]) for path, text in draft.texts.items()]
    _validate(files, devices, folders)
    return files


def write(files: Sequence[PlannedFile]) -> list[Path]:
    """Write what has changed, each file at once; return the paths. Raises OSError."""
    written = []
    for file in files:
        if not file.changed:
            continue
        file.path.parent.mkdir(parents=True, exist_ok=True)
        staged = file.path.with_name(f".{file.path.name}.{os.getpid()}")
        staged.write_text(file.text, encoding="utf-8")
        if file.path.exists():
            staged.chmod(file.path.stat().st_mode & 0o777)
        staged.replace(file.path)
        written.append(file.path)
    return written


_ASSIGNMENT = re.compile(r"(?m)^[ \t]*([A-Z][A-Z0-9_]*)=.*$")
_REPLACE = "choose another name, or replace it with --replace"


# --- device types -------------------------------------------------------------------------------------------------


def _plan_type(path: Path, group: Sequence[NewDevice], draft: _Draft, *, replace: bool) -> None:
    existing = draft.read(path)
    content = None if existing is None else render.written_content(existing)
    file = f"device-types/{path.name}"
    if existing is not None and content is None:
        for device in group:
            lines = render.device_type_text({"units": [render.unit_content(device)]}).removeprefix(render.HEADER)
            draft.refuse(
                device,
                "device_type",
                f"{file} was written or edited by a person, so it is left alone; choose another device type, or add to"
                f" its `units:`\n{lines.partition(chr(10))[2]}",
            )
        return
    if content is None:
        first = next((device for device in group if device.topology is not None), None)
        if first is None:
            draft.refuse(
                group[0], "topology", f"there is no {file} yet, so {group[0].name} needs a topology: give sockets etc."
            )
            return
        content = {**render.type_content(first), "units": []}
    units: dict[str, dict[str, Any]] = {unit["name"]: unit for unit in content["units"]}
    for device in group:
        for where, message in _differences(device, content):
            draft.refuse(device, where, f"{device.name}: {message}, unlike {file}; choose another device type for it")
        unit = render.unit_content(device)
        if units.get(device.name, unit) != unit and not replace:
            draft.refuse(device, "name", f"{file} has another unit {device.name}; {_REPLACE}")
        units[device.name] = unit
    draft.texts[path] = render.device_type_text({**content, "units": list(units.values())})


def _differences(device: NewDevice, content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return field and words for what the description says otherwise than the type. A field that it leaves out is the
    type's."""
    found = []
    given = device.model_fields_set
    if device.topology is not None:
        own = device.topology.model_dump(exclude_defaults=True)
        if own != content.get("topology"):
            found.append(("topology", f"topology {own}"))
    for name in sorted(device.boot.model_fields_set):
        if (value := getattr(device.boot, name)) != content.get("boot", {}).get(name):
            found.append((f"boot.{name}", f"{name} {value}"))
    for name in sorted(given & {"arch", "recipe", "rehearsal"}):
        if (value := getattr(device, name)) != content.get(name):
            found.append((name, f"{name} {value}"))
    return found


# --- addresses ----------------------------------------------------------------------------------------------------


def _plan_addresses(folder: Path, devices: Sequence[NewDevice], draft: _Draft, *, replace: bool) -> None:
    known, problems = read_addresses(folder)
    if problems:
        draft.refusals += [Refusal("", "", str(problem)) for problem in problems]
        return
    path = folder / FILE
    changes: dict[str, str] = {}
    lines: list[str] = []
    for device in devices:
        values = render.addresses(device)
        taken = {name: known[name] for name, value in values.items() if known.get(name, value) != value}
        if taken and not replace:
            listed = ", ".join(f"{name}={value}" for name, value in taken.items())
            draft.refuse(device, "name", f"{FILE} has other values for {device.name}: {listed}; {_REPLACE}")
            continue
        changes |= {name: shlex.quote(values[name]) for name in taken}
        missing = {name: value for name, value in values.items() if name not in known}
        lines += [f"# {device.name}"] * (len(missing) == len(values))
        lines += [f"{name}={shlex.quote(value)}" for name, value in missing.items()]
    text = _ASSIGNMENT.sub(
        lambda line: f"{line[1]}={changes[line[1]]}" if line[1] in changes else line[0], draft.read(path) or ""
    )
    text += "\n" if lines and text and not text.endswith("\n") else ""
    draft.texts[path] = text + "".join(f"{line}\n" for line in lines)


# --- validation ---------------------------------------------------------------------------------------------------


def _validate(files: Sequence[PlannedFile], devices: Sequence[NewDevice], folders: Folders) -> None:
    """Load the data folder as it will be. Raises DevicesRefused with the loader's problems."""
    with tempfile.TemporaryDirectory(prefix="wqlab-add-") as name:
        staged = Path(name)
        for folder in _FOLDERS:
            if (folders.data / folder).exists():
                (staged / folder).symlink_to((folders.data / folder).resolve())
        types = staged / "device-types"
        types.mkdir()
        for path in folders.device_types.iterdir():
            (types / path.name).symlink_to(path.resolve())
        for file in files:
            if file.path.parent == folders.device_types:
                (types / file.path.name).unlink(missing_ok=True)
                (types / file.path.name).write_text(file.text, encoding="utf-8")
        try:
            loaded = load_data(staged)
        except DataError as error:
            by_file = {f"device-types/{device.device_type}.yaml": device.name for device in devices}
            raise DevicesRefused(
                [Refusal(by_file.get(each.file, ""), "", str(each)) for each in error.problems]
            ) from error
    known = loaded.device_types
    missing = [each for each in devices if each.name not in {unit.name for unit in known[each.device_type].units}]
    if missing:
        raise DevicesRefused([Refusal(each.name, "", f"{each.name} is not in the planned files") for each in missing])
