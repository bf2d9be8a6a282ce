"""What a LAVA job carries to its device: the overlay with kernels, plan and the scripts that measure without us;
and the archive of results that comes back."""

from __future__ import annotations

import base64
import hashlib
import io
import shlex
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import BootKey, RunJob

from ...measure.script_calls import Call, calls
from ...measure.text import decoded
from .. import conditions, probe

MEMBER_LIMIT = 64 << 20
"""Bytes of one file in an archive of results: what the plan's output may be is bounded by `collect.TEXT_LIMIT`."""
ARCHIVE_LIMIT = 512 << 20
"""Bytes of all of them: an archive of a few may unpack to any number."""


def boot_name(key: BootKey) -> str:
    return f"b{key.block}-{key.position}-{key.arm.value}-{key.attempt}"


def overlay(
    job: RunJob,
    images: Mapping[Arm, Path],
    modules: Mapping[Arm, Mapping[str, bytes]],
    blocks: Sequence[int],
    path: Path,
) -> None:
    """Writes the tar that is unpacked at /lab of the golden system, and so of the variants: they boot its image."""
    with tarfile.open(path, "w") as archive:

        def add(name: str, data: bytes, mode: int = 0o755) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))

        for name in ("jump", "measure"):
            add(name, (files(__package__) / "onboard" / name).read_bytes())
        add("probe", probe.COMMAND.encode())
        add("conditions", (conditions.apply_command(job.device.conditions) or "").encode())
        add("rootfs", job.device.boot.rootfs.encode())
        if job.device.lava and job.device.lava.mapping.off_after_boot:
            add("off-after-boot", b"")
        add("script", job.plan.script.encode())
        for block in blocks:
            add(f"calls/{block}", script_of(calls(job, block)).encode())
        for name, text in sorted(job.files.items()):
            add(f"plan/{name}", text.encode())
        for arm, kernel in job.kernels.items():
            archive.add(images[arm], f"kernels/{arm.value}", filter=_plain)
            add(f"kernels/{arm.value}.sha256", f"{kernel.image.sha256}  {arm.value}\n".encode())
            for name, data in modules.get(arm, {}).items():
                add(f"for/{arm.value}/{name}", data)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def script_of(planned: Iterable[Call]) -> str:
    """A boot's calls as `onboard/measure` reads them."""
    lines = []
    numbers: dict[str, int] = {}
    for number, call in enumerate(planned):
        cell = f"c{numbers.setdefault(str(call.cell), len(numbers))}" if call.cell else "-"
        words = [f"{number:04d}", f"{call.limit_s:.0f}", str(int(call.monitored)), cell, call.action]
        words += [f"{name}={value}" for name, value in call.environment.items()]
        lines.append("call " + " ".join(shlex.quote(word) for word in words))
    return "\n".join(lines) + "\n"


class ResultsUnreadable(ValueError):
    """The archive that came is not one that `onboard/measure` makes."""


def unpacked(text: str, digest: str) -> bytes:
    """The archive from the letters that it travels as. Raises ResultsUnreadable unless it is whole."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise ResultsUnreadable(f"its letters are damaged: {error}") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise ResultsUnreadable(f"{len(data)} bytes came, and they are not the whole")
    return data


@dataclass(frozen=True)
class Called:
    """What became of one call."""

    stdout: str
    stderr: str
    status: int
    seconds: float
    blocked: str
    """The kernel's list of blocked tasks, where the call was killed at its limit."""


@dataclass(frozen=True)
class Results:
    """A boot as its device told it."""

    probe: bytes
    probe_complaint: str
    conditions: str
    called: dict[int, Called] = field(default_factory=dict)
    """By number of the call; those that were left out are missing."""


def read_results(data: bytes) -> Results:
    """Raises ResultsUnreadable. Nothing is unpacked to disk, and nothing but plain files is looked at."""
    found: dict[str, bytes] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for entry in archive:
                if entry.isdir():
                    continue
                total += max(0, entry.size) + 512
                if not entry.isfile() or entry.size > MEMBER_LIMIT or total > ARCHIVE_LIMIT:
                    raise ResultsUnreadable(f"{entry.name[:80]!r} is no plain file of a sane size")
                file = archive.extractfile(entry)
                found[entry.name.removeprefix("./")] = file.read() if file else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ResultsUnreadable(f"not an archive of results: {error}") from error
    if "probe" not in found:
        raise ResultsUnreadable("the kernel's answer about itself is not among the results")
    called = {}
    for name, content in found.items():
        number, _, what = name.partition(".")
        if what != "status" or not number.isdecimal():
            continue
        try:
            status, started, ended = decoded(content).split()
            seconds = max(0.0, float(ended) - float(started))
            called[int(number)] = Called(
                decoded(found.get(f"{number}.out", b"")),
                decoded(found.get(f"{number}.err", b"")),
                int(status),
                seconds,
                decoded(found.get(f"{number}.blocked", b"")),
            )
        except ValueError as error:
            raise ResultsUnreadable(f"{name} is not a status: {content[:80]!r}") from error
    return Results(found["probe"], decoded(found.get("probe.err", b"")), decoded(found.get("conditions", b"")), called)
