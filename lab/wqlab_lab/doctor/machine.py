"""Checks of the machine: permissions, space, subordinate ids, limits on submitted code, golden systems."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..storage import size
from .checks import Check, State, Subject, Unchecked, run

PRIVATE = ("keys", "run", "postgres", "redis")
"""Folders of the state folder that hold secrets, or sockets without a password."""
WRITTEN = (*PRIVATE, "log", "artifacts", "bench", "labgrid")
SUBORDINATE_IDS = 65536
_FREE_INODES = 10_000
_RESERVE_BYTES = {"WQLAB_RESERVE_BYTES": 2 << 30, "WQLAB_CACHE_RESERVE_BYTES": 6 << 30}
"""Free bytes below which retention deletes before its time; the defaults of server and worker."""


def permissions(subject: Subject) -> Iterator[Check]:
    """Check that the lab's files belong to this user, are writable, and that secrets are private."""
    state = subject.paths.state
    problems = list(_permission_problems(state))
    if problems:
        seen = "; ".join(problem for problem, _ in problems[:5]) + (" ..." if len(problems) > 5 else "")
        action = " && ".join(dict.fromkeys(fix for _, fix in problems if fix))
        yield Check("permissions", State.FAILED, seen, action or "run this as the lab's user: lab/as-user.sh")
    else:
        yield Check("permissions", State.OK, f"{state} belongs to {_name(os.geteuid())}, and its secrets are private")


def _permission_problems(state: Path) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, the command that repairs it)."""
    for folder in (state / name for name in WRITTEN):
        if not folder.exists():
            yield f"{folder} is missing", f"mkdir -m 700 {shlex.quote(str(folder))}"
            continue
        yield from _file_problems(folder, 0o700, folder.name in PRIVATE)
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield f"{folder} is not writable", f"chmod u+rwx {shlex.quote(str(folder))}"
    secrets = [state / "run" / "supervisord.conf", state / "run" / "redis.conf"]
    with contextlib.suppress(OSError):  # reported above
        secrets += sorted((state / "keys").iterdir())
    for path in secrets:
        if path.suffix != ".pub" and path.is_file():
            yield from _file_problems(path, 0o600, True)
            if not os.access(path, os.R_OK):
                yield f"{path} is not readable", f"chmod 600 {shlex.quote(str(path))}"


def _file_problems(path: Path, mode: int, private: bool) -> Iterator[tuple[str, str]]:
    status, quoted = path.stat(), shlex.quote(str(path))
    if status.st_uid != os.geteuid():
        owner, user = _name(status.st_uid), _name(os.geteuid())
        yield f"{path} belongs to {owner}, this is {user}", f"sudo chown -R {user} {quoted}"
    if private and status.st_mode & 0o077:
        yield f"other users can use {path} (mode {status.st_mode & 0o777:o})", f"chmod {mode:o} {quoted}"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def space(subject: Subject) -> Iterator[Check]:
    """Check that each volume is writable and has enough free bytes and inodes."""
    paths = subject.paths
    volumes: dict[int, tuple[list[str], Path, int]] = {}
    for name, folder, variable in (
        ("state", paths.state, "WQLAB_RESERVE_BYTES"),
        ("artifacts", paths.state / "artifacts", "WQLAB_RESERVE_BYTES"),
        ("cache", paths.cache, "WQLAB_CACHE_RESERVE_BYTES"),
    ):
        try:
            device = folder.stat().st_dev
        except OSError as error:
            yield Check(f"disk {name}", State.FAILED, f"{folder}: {error.strerror}", f"create or mount {folder}")
            continue
        names, where, reserve = volumes.get(device, ([], folder, 0))
        wanted = int(os.environ.get(variable) or _RESERVE_BYTES[variable])
        volumes[device] = ([*names, name], where, max(reserve, wanted))
    for names, folder, reserve in volumes.values():
        yield _volume(f"disk {', '.join(names)}", folder, reserve)


def _volume(name: str, folder: Path, reserve: int) -> Check:
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    seen = f"{size(free)} free at {folder}, {size(reserve)} reserved"
    action = "`wqlab-lab storage` says what uses the space; unpin submissions, remove files, or add space"
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"x" * 65536)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Check(name, State.FAILED, f"{folder} cannot be written: {error.strerror}; {seen}", action)
    if status.f_files and status.f_favail < _FREE_INODES:
        return Check(name, State.WARNING, f"only {status.f_favail} files can be added at {folder}; {seen}", action)
    return Check(name, State.WARNING if free < reserve else State.OK, seen, action if free < reserve else "")


def subordinate_ids(subject: Subject) -> Iterator[Check]:
    """Check that the lab's user has ranges of subordinate ids, which LAVA's root folder and the tests need."""
    user, uid = _name(os.geteuid()), str(os.geteuid())
    for file in (Path("/etc/subuid"), Path("/etc/subgid")):
        lines = file.read_text().splitlines() if file.exists() else []
        fields = [line.split(":") for line in lines if line.count(":") == 2]
        count = sum(int(number) for name, _, number in fields if name in {user, uid})
        enough = count >= SUBORDINATE_IDS
        option = "--add-subuids" if file.name == "subuid" else "--add-subgids"
        yield Check(
            file.name,
            State.OK if enough else State.WARNING,
            f"{count} subordinate ids for {user} in {file}",
            "" if enough else f"needed for a LAVA server of your own: sudo usermod {option} 100000-165535 {user}",
        )


def sandbox(subject: Subject) -> Iterator[Check]:
    """Report which limits bound submitted code, with the environment of the running build worker if there is one."""
    environment = subject.environment_of("build") or subject.paths.environment()
    done = run(["wqlab-worker", "limits"], environment)
    lines = dict(line.partition(": ")[::2] for line in done.stdout.splitlines() if ": " in line)
    if not {"files", "memory", "system calls"} <= lines.keys():
        raise Unchecked(f"`wqlab-worker limits` failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    page = "docs/runbook.md, Limits on submitted code"
    files = lines["files"].partition(":")[0]
    state = {"kernel": State.OK, "watched": State.WARNING}.get(files, State.FAILED)
    action = {
        "kernel": "",
        "watched": "a hostile series can fill the disk: unset WQLAB_SANDBOX_WATCHED and run `make restart`",
    }.get(files, f"every build fails: allow unprivileged user namespaces ({page})")
    yield Check("sandbox files", state, lines["files"], action)
    yield Check("sandbox memory", State.OK, lines["memory"])
    filtered = lines["system calls"] == "filtered"
    yield Check(
        "sandbox system calls",
        State.OK if filtered else State.WARNING,
        lines["system calls"],
        "" if filtered else f"run build workers on amd64 ({page})",
    )


def golden_systems(subject: Subject) -> Iterable[Check]:
    """Check that kernel and root filesystem of each architecture's golden system exist."""
    paths = subject.paths
    try:
        systems = json.loads(paths.golden.read_text())
    except FileNotFoundError:
        systems = {}
    except ValueError as error:
        raise Unchecked(f"{paths.golden} is damaged ({error}): `make stop && make up` writes it again") from error
    for arch in paths.architectures():
        files = [Path(systems[arch][name]) for name in ("kernel", "rootfs")] if arch in systems else []
        missing = [str(path) for path in files if not path.is_file() or not path.stat().st_size]
        name = f"golden system {arch}"
        action = "`make stop && make up` builds it again" if arch == "x86_64" else f"`make {arch}` builds it"
        if not files or missing:
            seen = f"missing: {', '.join(missing)}" if missing else "not built"
            yield Check(name, State.FAILED, seen, action)
        else:
            yield Check(name, State.OK, ", ".join(path.name for path in files))
