"""Back up a lab into one file, and restore it: `wqlab-lab backup FILE`, `wqlab-lab restore FILE`.

The file is a tar archive: `manifest.json` first, then the database (pg_dump's custom format), the lab's keys, and the
artifacts, each named by its SHA-256. Everything in it is verified by hash before the restored lab is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from .lifecycle import Lab, LabError
from .paths import LabPaths
from .services import POSTGRES_BIN

FORMAT = 1
MANIFEST, DATABASE = "manifest.json", "database.dump"
_CHUNK = 1 << 20
_MANIFEST_BYTES = 256 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class BackupError(LabError):
    """The lab could not be backed up or restored; the text names the file and the reason."""


# --- back up ----------------------------------------------------------------------------------------------------


def backup(lab: Lab, file: Path, report: Callable[[str], None]) -> str:
    """Write the lab's database, keys and artifacts to a new file with mode 600; return a summary.

    The lab may run meanwhile. Artifacts are linked before and after the database's snapshot: retention may delete one
    of them afterwards, and an upload that the snapshot knows was complete before. Raises BackupError.
    """
    paths = lab.paths
    if file.exists():
        raise BackupError(f"{file} exists already: choose another name")
    if not (paths.state / "postgres" / "PG_VERSION").exists():
        raise BackupError(f"{paths.state} holds no lab: set WQLAB_STATE to the lab's folder")
    partial = file.with_name(f".{file.name}.partial-{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="backup-", dir=paths.state) as folder, _database(lab):
            links, dump = Path(folder) / "artifacts", Path(folder) / DATABASE
            links.mkdir()
            _link_artifacts(paths, links)
            report("database")
            lab.run_program([str(POSTGRES_BIN / "pg_dump"), "-h", str(paths.run), "-Fc", "-f", str(dump), "wqlab"])
            known = _query(lab, "SELECT sha256 FROM artifacts WHERE deleted_at IS NULL AND stored")
            _link_artifacts(paths, links)
            manifest: dict[str, Any] = {
                "format": FORMAT,
                "wqlab": version("wqlab-lab"),
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "schema": _query(lab, "SELECT version_num FROM alembic_version"),
                "database": _describe(dump),
                "keys": {path.name: _describe(path) for path in sorted(paths.keys.iterdir()) if path.is_file()},
                "artifacts": {path.name: path.stat().st_size for path in sorted(links.iterdir())},
                "bucket": os.environ.get("WQLAB_ARTIFACT_URL", ""),
            }
            report(f"{len(manifest['artifacts'])} artifacts")
            _write(partial, manifest, dump, paths.keys, links)
        os.link(partial, file)  # fails if the file was made meanwhile
    except OSError as error:
        raise BackupError(f"{file} could not be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    missing = [] if manifest["bucket"] else sorted(set(known) - set(manifest["artifacts"]))
    lines = [
        f"{file}: {file.stat().st_size >> 20} MiB, schema {', '.join(manifest['schema'])}, "
        f"{len(manifest['artifacts'])} artifacts",
        "It holds the lab's keys, tokens and password hashes. Its mode is 600: keep it secret.",
    ]
    if manifest["bucket"]:
        lines.append(f"The artifacts in {manifest['bucket']} are not part of it: back up the bucket.")
    if missing:
        lines.append(f"{len(missing)} artifacts are missing in the store, the first is {missing[0]}.")
    return "\n".join(lines)


def _link_artifacts(paths: LabPaths, links: Path) -> None:
    """Make a hard link of every stored artifact, so that its bytes stay while they are copied."""
    for path in (paths.state / "artifacts").glob("??/*"):
        if _SHA256.fullmatch(path.name):
            try:
                os.link(path, links / path.name)
            except (FileExistsError, FileNotFoundError):
                continue  # linked before the snapshot, or deleted by retention


def _write(file: Path, manifest: dict[str, Any], dump: Path, keys: Path, artifacts: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as output, tarfile.open(fileobj=output, mode="w|") as archive:
        content = json.dumps(manifest).encode()
        described = tarfile.TarInfo(MANIFEST)
        described.size = len(content)
        archive.addfile(described, io.BytesIO(content))
        _add(archive, dump, DATABASE)
        for name in manifest["keys"]:
            _add(archive, keys / name, f"keys/{name}")
        for name in manifest["artifacts"]:
            _add(archive, artifacts / name, f"artifacts/{name}")
        archive.close()
        output.flush()
        os.fsync(output.fileno())


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    with path.open("rb") as file:
        described = tarfile.TarInfo(name)
        described.size, described.mode = os.fstat(file.fileno()).st_size, 0o600
        archive.addfile(described, file)


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "size": path.stat().st_size, "mode": path.stat().st_mode & 0o777}


# --- restore ----------------------------------------------------------------------------------------------------


def restore(lab: Lab, file: Path, report: Callable[[str], None]) -> str:
    """Restore a backup into the lab's empty state folder and migrate its database; return a summary.

    Nothing is left in the folder if the file is damaged or of a newer version. Raises BackupError.
    """
    state = lab.paths.state
    if state.exists() and any(path.is_file() or path.is_symlink() for path in state.rglob("*")):
        raise BackupError(f"{state} is not empty: restore into a new folder (WQLAB_STATE), or remove the lab first")
    try:
        archive = tarfile.open(file, mode="r|")  # noqa: SIM115 - closed below
    except (OSError, tarfile.TarError) as error:
        raise BackupError(f"{file} is not a backup: {error}") from error
    try:
        with archive:
            members = iter(archive)
            manifest = _read_manifest(archive, members, file)
            lab.paths.create()
            _check_version(lab, manifest, file)
            report(f"files of {manifest['created_at']}")
            _extract(archive, members, manifest, lab.paths)
        report("database")
        _restore_database(lab)
    except (tarfile.TarError, EOFError, _Damaged) as error:
        _empty(state)
        raise BackupError(f"{file} is damaged: {error}") from error
    except BaseException:
        _empty(state)
        raise
    (state / DATABASE).unlink()
    return (
        f"restored the lab of {manifest['created_at']} (wqlab {manifest['wqlab']}) into {state}; `make up` starts it\n"
        "Users, passwords and tokens are those of the backup. Jobs that ran then are tried again."
    )


class _Damaged(Exception):
    """The archive does not have the content that its manifest describes."""


def _read_manifest(archive: tarfile.TarFile, members: Iterator[tarfile.TarInfo], file: Path) -> dict[str, Any]:
    first = next(members, None)
    content = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
    if first is None or content is None or first.size > _MANIFEST_BYTES:
        raise BackupError(f"{file} is not a backup: it does not begin with {MANIFEST}")
    try:
        manifest: dict[str, Any] = json.loads(content.read())
        if manifest["format"] != FORMAT:
            raise BackupError(f"{file} has format {manifest['format']}, this version reads {FORMAT}: use a newer wqlab")
    except (ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"{MANIFEST}: {error!r}") from error
    return manifest


def _check_version(lab: Lab, manifest: dict[str, Any], file: Path) -> None:
    known = lab.run_program(["wqlab-server", "revisions"]).split()
    unknown = [revision for revision in manifest["schema"] if revision not in known]
    if unknown or not manifest["schema"]:
        raise BackupError(
            f"{file} was made by wqlab {manifest['wqlab']} with schema {', '.join(unknown) or 'none'}, which wqlab "
            f"{version('wqlab-lab')} does not know: restore it with that version or a newer one"
        )


def _extract(
    archive: tarfile.TarFile, members: Iterator[tarfile.TarInfo], manifest: dict[str, Any], paths: LabPaths
) -> None:
    """Write the members to their places, and verify that all are there, each with its hash."""
    expected = {DATABASE: (manifest["database"]["sha256"], paths.state / DATABASE)}
    for name, key in manifest["keys"].items():
        if not _KEY_NAME.fullmatch(name):
            raise _Damaged(f"{name!r} is not the name of a key")
        expected[f"keys/{name}"] = (key["sha256"], paths.keys / name)
    for name in manifest["artifacts"]:
        if not _SHA256.fullmatch(name):
            raise _Damaged(f"{name!r} is not the name of an artifact")
        expected[f"artifacts/{name}"] = (name, paths.state / "artifacts" / name[:2] / name)
    for member in members:
        if member.name not in expected or not member.isreg():
            raise _Damaged(f"unexpected member {member.name!r}")
        sha256, target = expected.pop(member.name)
        content = archive.extractfile(member)
        if content is None or _copy(content, target) != sha256:
            raise _Damaged(f"{member.name} has another SHA-256")
    if expected:
        raise _Damaged(f"{len(expected)} members are missing, the first is {next(iter(expected))}")
    for name, key in manifest["keys"].items():
        (paths.keys / name).chmod(key["mode"] & 0o777)


def _copy(source: IO[bytes], target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _restore_database(lab: Lab) -> None:
    lab.make_database()
    with _database(lab):
        run = str(lab.paths.run)
        lab.run_program([str(POSTGRES_BIN / "createdb"), "-h", run, "wqlab"])
        lab.run_program(
            [
                str(POSTGRES_BIN / "pg_restore"), "-h", run, "-d", "wqlab", "--no-owner", "--exit-on-error",
                "--single-transaction", str(lab.paths.state / DATABASE),
            ]
        )  # fmt: skip
        lab.run_program(["wqlab-server", "migrate"])


def _empty(folder: Path) -> None:
    for path in folder.iterdir() if folder.is_dir() else []:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


# --- the database -----------------------------------------------------------------------------------------------


@contextmanager
def _database(lab: Lab) -> Iterator[None]:
    """Run PostgreSQL for the block, unless the lab runs it already."""
    if lab.running():
        yield
        return
    paths = lab.paths
    control = [str(POSTGRES_BIN / "pg_ctl"), "-D", str(paths.state / "postgres"), "-w"]
    # Its output must not keep our pipe open: the server inherits it.
    started = subprocess.run(
        [*control, "-o", f"-k '{paths.run}' -h ''", "-l", str(paths.log / "postgres.log"), "start"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if started.returncode:
        raise BackupError(f"PostgreSQL does not start: see {paths.log / 'postgres.log'}")
    try:
        yield
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], stdout=subprocess.DEVNULL, check=False)


def _query(lab: Lab, statement: str) -> list[str]:
    command = [str(POSTGRES_BIN / "psql"), "-h", str(lab.paths.run), "-d", "wqlab", "-XAtc", statement]
    return lab.run_program(command).split()
