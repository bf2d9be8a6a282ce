"""Archives of a LAVA job: the overlay that carries kernels, plan and scripts to the device, and the results archive."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from wqlab_contracts.enums import Arm
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import BootKey, RunJob

from ...tar_reader import TarReader
from ..unattended.boot_files import Results, ResultsUnreadable, boot_files, results_of

MEMBER_LIMIT = 64 << 20
"""Largest file in a results archive, in bytes; equal to `collect.TEXT_LIMIT`."""
ARCHIVE_LIMIT = 512 << 20
"""Largest total of a results archive when unpacked, in bytes."""
MEMBERS = 20_000
"""Most headers in a results archive; a call has five files."""
_PIECE = LinearPattern(r"\.piece\.(\d{1,9})\.([A-Za-z0-9_-]+)$")


def boot_name(key: BootKey) -> str:
    """Return the name of a boot in LAVA's results."""
    return f"b{key.block}-{key.position}-{key.arm.value}-{key.attempt}"


def overlay(
    job: RunJob,
    images: Mapping[Arm, Path],
    modules: Mapping[Arm, Mapping[str, bytes]],
    blocks: Sequence[int],
    path: Path,
) -> None:
    """Write the tar archive that LAVA unpacks at /lab of the golden system's image, which the variants boot too."""
    with tarfile.open(path, "w") as archive:

        def add(name: str, data: bytes, mode: int = 0o755) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))

        for name in ("jump", "measure"):
            add(name, (files(__package__) / "onboard" / name).read_bytes())
        for name, data in boot_files(job, blocks).items():
            add(name, data)
        add("rootfs", job.device.boot.rootfs.encode())
        if job.device.lava and job.device.lava.mapping.off_after_boot:
            add("off-after-boot", b"")
        for arm, kernel in job.kernels.items():
            archive.add(images[arm], f"kernels/{arm.value}", filter=_anonymous)
            add(f"kernels/{arm.value}.sha256", f"{kernel.image.sha256}  {arm.value}\n".encode())
            for name, data in modules.get(arm, {}).items():
                add(f"for/{arm.value}/{name}", data)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def decode_archive(text: str, digest: str) -> bytes:
    """Decode a results archive from URL-safe base64. Raises ResultsUnreadable unless its SHA-256 is `digest`."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise ResultsUnreadable(f"its base64 encoding is damaged: {error}") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise ResultsUnreadable(f"{len(data)} bytes arrived, but their SHA-256 does not match")
    return data


def archive_from_pieces(name: str, cases: Sequence[str]) -> bytes | None:
    """Assemble the results archive of boot `name` from LAVA's test cases, whose names carry its base64 text in pieces.

    Returns None if no name carries a piece. Raises ResultsUnreadable if the pieces do not decode to an archive with the
    uploaded SHA-256.
    """
    pieces = {int(match[1]): match[2] for case in cases if (match := _PIECE.search(case))}
    if not pieces:
        return None
    text = "".join(pieces[number] for number in sorted(pieces))
    digest = next((case.rpartition(".")[2] for case in cases if case.startswith(f"{name}.uploaded.")), "")
    return decode_archive(text, digest)


def read_results(data: bytes) -> Results:
    """Read a results archive in memory; only plain files are accepted. Raises ResultsUnreadable."""
    found: dict[str, bytes] = {}
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as archive:
            reader = TarReader(archive, total_bytes=ARCHIVE_LIMIT, members=MEMBERS)
            for entry in reader:
                if not entry.isreg():
                    raise ResultsUnreadable(f"{entry.name[:80]!r} is not a plain file")
                found[entry.name.removeprefix("./")] = reader.read(MEMBER_LIMIT)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ResultsUnreadable(f"not an archive of results: {error}") from error
    return results_of(found)
