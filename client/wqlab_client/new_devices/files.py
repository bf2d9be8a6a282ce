"""Plan the files of a new machine, check them with the project's loaders, and write them.

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
from typing import TYPE_CHECKING, Any

from wqlab_contracts.addresses_file import FILE, read_addresses
from wqlab_contracts.loading import load_data
from wqlab_contracts.new_devices.power_commands import addresses
from wqlab_contracts.yamlfile import DataError

from . import conflicts, render

if TYPE_CHECKING:
    from wqlab_contracts.new_devices.description import NewDevice

_FOLDERS = ("kernels", "testplans", "intake")


class DeviceRefused(ValueError):
    """The machine cannot be added; nothing was written. Each reason says what to do."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = list(reasons)
        super().__init__("\n".join(reasons))


@dataclass(frozen=True)
class PlannedFile:
    """The new text of a file, and its present text."""

    path: Path
    text: str
    before: str | None
    """None if the file does not exist."""

    @property
    def changed(self) -> bool:
        return self.text != self.before


@dataclass(frozen=True)
class Folders:
    """Where the files of a lab are."""

    data: Path
    """The lab's data folder; device types are in its subfolder device-types/."""
    exporters: Path
    """Folder of the files that labgrid's exporter includes."""

    @property
    def device_types(self) -> Path:
        return self.data / "device-types"


@dataclass
class _Draft:
    """Files that are still being changed, by path, and the reasons why they cannot be written."""

    texts: dict[Path, str] = field(default_factory=dict)
    before: dict[Path, str | None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def read(self, path: Path) -> str | None:
        """Return the file's text; None without a file. Raises OSError, and DeviceRefused for another encoding."""
        try:
            self.before[path] = path.read_text(encoding="utf-8") if path.exists() else None
        except UnicodeDecodeError:
            raise DeviceRefused([f"{path} is not UTF-8: save it as UTF-8"]) from None
        return self.before[path]


def plan(device: NewDevice, folders: Folders, *, replace: bool = False) -> list[PlannedFile]:
    """Return the files that add the machine, also those that would not change.

    With `replace`, what an earlier call wrote for a machine of the same name is replaced. Raises DeviceRefused with
    every reason.
    """
    draft = _Draft(reasons=conflicts.find(device, folders.data))
    _plan_type(folders.device_types / f"{device.device_type}.yaml", device, draft, replace=replace)
    _plan_addresses(folders.device_types, device, draft, replace=replace)
    path, text = folders.exporters / f"{device.name}.yaml", render.exporter_text(device)
    if draft.read(path) not in {None, text} and not replace:
        draft.reasons.append(f"{path.name} in {path.parent} exists with other content; {_REPLACE}")
    draft.texts[path] = text
    if draft.reasons:
        raise DeviceRefused(draft.reasons)
    files = [PlannedFile(path, text, draft.before[path]) for path, text in draft.texts.items()]
    _validate(files, device, folders)
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


def _plan_type(path: Path, device: NewDevice, draft: _Draft, *, replace: bool) -> None:
    existing = draft.read(path)
    file = f"device-types/{path.name}"
    if existing is None:
        content = {**render.type_content(device), "units": []}
    elif (written := render.written_content(existing)) is not None:
        content = written
    else:
        lines = render.device_type_text({"units": [render.unit_content(device)]}).removeprefix(render.HEADER)
        draft.reasons.append(
            f"{file} was written or edited by a person, so it is left alone; choose another device type, or add to"
            f" its `units:`\n{lines.partition(chr(10))[2]}"
        )
        return
    for difference in _differences(device, content):
        draft.reasons.append(f"{device.name}: {difference}, unlike {file}; choose another device type for it")
    units: dict[str, dict[str, Any]] = {unit["name"]: unit for unit in content["units"]}
    unit = render.unit_content(device)
    if units.get(device.name, unit) != unit and not replace:
        draft.reasons.append(f"{file} has another unit {device.name}; {_REPLACE}")
    units[device.name] = unit
    draft.texts[path] = render.device_type_text({**content, "units": list(units.values())})


def _differences(device: NewDevice, content: Mapping[str, Any]) -> list[str]:
    """Return what the description says otherwise than the type. A field that it leaves out is the type's."""
    found = []
    if device.topology is not None:
        own = device.topology.model_dump(exclude_defaults=True)
        if own != content.get("topology"):
            found.append(f"topology {own}")
    for name in sorted(device.boot.model_fields_set):
        if (value := getattr(device.boot, name)) != content.get("boot", {}).get(name):
            found.append(f"{name} {value}")
    for name in sorted(device.model_fields_set & {"arch", "rehearsal"}):
        if (value := getattr(device, name)) != content.get(name):
            found.append(f"{name} {value}")
    return found


# --- addresses ----------------------------------------------------------------------------------------------------


def _plan_addresses(folder: Path, device: NewDevice, draft: _Draft, *, replace: bool) -> None:
    known, problems = read_addresses(folder)
    if problems:
        draft.reasons += [str(problem) for problem in problems]
        return
    path = folder / FILE
    values = addresses(device)
    taken = {name: known[name] for name, value in values.items() if known.get(name, value) != value}
    if taken and not replace:
        listed = ", ".join(f"{name}={value}" for name, value in taken.items())
        draft.reasons.append(f"{FILE} has other values for {device.name}: {listed}; {_REPLACE}")
        return
    changes = {name: shlex.quote(values[name]) for name in taken}
    missing = {name: value for name, value in values.items() if name not in known}
    lines = [f"# {device.name}"] if len(missing) == len(values) else []
    lines += [f"{name}={shlex.quote(value)}" for name, value in missing.items()]
    text = _ASSIGNMENT.sub(
        lambda line: f"{line[1]}={changes[line[1]]}" if line[1] in changes else line[0], draft.read(path) or ""
    )
    text += "\n" if lines and text and not text.endswith("\n") else ""
    draft.texts[path] = text + "".join(f"{line}\n" for line in lines)


# --- validation ---------------------------------------------------------------------------------------------------


def _validate(files: Sequence[PlannedFile], device: NewDevice, folders: Folders) -> None:
    """Load the data folder as it will be. Raises DeviceRefused with the loader's problems."""
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
            raise DeviceRefused([str(problem) for problem in error.problems]) from error
    if device.name not in {unit.name for unit in loaded.device_types[device.device_type].units}:
        raise DeviceRefused([f"{device.name} is not in the planned files"])
