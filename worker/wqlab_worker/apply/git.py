"""Run git with fixed settings: no user or system configuration, no prompts, no hooks and no helpers."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..failures import InfrastructureError
from ..workspace import Workspace

QUICK_S = 120.0
_TICK_S = 1.0
_CHUNK = 1 << 20
_ERRORS_KEPT = 64 << 10
"""Bytes kept from the end of standard error, to which a server can send any amount of text."""
_LAB_MARKS = ("WQLAB_STATE", "WQLAB_DATA_DIR")
"""Environment variables by which `wqlab-lab stop` finds the processes of a lab; git has its own process group."""

_SETTINGS = """\
[user]
	name = wqlab
	email = wqlab@localhost
[core]
	hooksPath = /dev/null
	fsmonitor = false
	askPass = true
	compression = 1
	bigFileThreshold = 1g
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = false
[credential]
	helper =
[protocol]
	allow = never
[http]
	followRedirects = false
	lowSpeedLimit = 1000
	lowSpeedTime = 60
[fetch]
	recurseSubmodules = false
	unpackLimit = 1
	writeCommitGraph = false
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	detachedHead = false
[commit]
	gpgSign = false
[fsck]
	missingEmail = ignore
[fetch "fsck"]
	missingEmail = ignore
	zeroPaddedFilemode = ignore
	missingSpaceBeforeDate = ignore
	badDate = ignore
	badTimezone = ignore
[safe]
	directory = *
[log]
	showSignature = false
[diff]
	renames = false
[am]
	messageId = true
"""


class GitError(Exception):
    """git ended with an error; `output` is its standard error."""

    def __init__(self, command: Sequence[str], output: str) -> None:
        self.output = output.strip()
        super().__init__(f"git {command[0]}: {self.output}")


class GitTimeout(InfrastructureError):
    """git exceeded its timeout and was killed with all its helpers."""


@dataclass(frozen=True)
class Git:
    """A git repository. `directory` is its .git or bare folder."""

    workspace: Workspace
    directory: Path

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = QUICK_S,
        bounds: Sequence[str] = (),
        check: bool = True,
        on_tick: Callable[[], None] = lambda: None,
    ) -> str:
        """Run a git command and return its standard output.

        `bounds` are options of prlimit(1) for git and each of its helpers. `on_tick` is called about once a second; if
        it raises, git and its helpers are killed and the exception is propagated. Raises GitError if git fails and
        `check` is True, GitTimeout after `timeout_s` seconds.
        """
        # Without a preexec_fn: a fork of a process with gRPC threads (labgrid's) crashes before it executes git.
        # timeout(1) also kills git's helpers, even after this process has been killed.
        command = ["timeout", "--signal=KILL", f"{timeout_s}", *(["prlimit", *bounds] if bounds else [])]
        started = time.monotonic()
        with subprocess.Popen(
            [*command, "git", f"--git-dir={self.directory}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**git_environment(self.workspace), **(environment or {})},
            process_group=0,
        ) as process:
            output, errors = _read_output(process, on_tick)
        if process.returncode == -signal.SIGKILL and time.monotonic() - started >= timeout_s:
            raise GitTimeout(f"git {arguments[0]} took longer than {timeout_s:.0f} s")
        if check and process.returncode != 0:
            raise GitError(arguments, errors.decode(errors="replace"))
        return output.decode(errors="replace")

    def commit(self, name: str) -> str | None:
        """Return the commit id of `name`, or None if there is no such commit."""
        if name.startswith("-"):
            return None
        found = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False)
        return found.strip() or None

    def tree(self, commit: str) -> str:
        """Return the tree id of a commit. Raises GitError if there is no such commit."""
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def file(self, commit: str, path: str) -> str:
        """Return the text of a file in a commit. Raises GitError if there is no such file."""
        return self.run("cat-file", "blob", f"{commit}:{path}")


def _read_output(process: subprocess.Popen[bytes], on_tick: Callable[[], None]) -> tuple[bytes, bytes]:
    """Return all of standard output and the end of standard error.

    When this function returns or raises, all processes of the process group are dead.
    """
    output, errors = bytearray(), bytearray()
    ended = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ, None)
            selector.register(pipe(process.stdout), selectors.EVENT_READ, output)
            selector.register(pipe(process.stderr), selectors.EVENT_READ, errors)
            next_tick = time.monotonic() + _TICK_S
            while selector.get_map():
                for key, _ in selector.select(max(0.0, next_tick - time.monotonic())):
                    if key.data is None:
                        _kill_group(process)  # a remaining helper would keep the pipes open
                        selector.unregister(ended)
                    elif chunk := os.read(key.fd, _CHUNK):
                        key.data.extend(chunk)
                    else:
                        selector.unregister(key.fileobj)
                del errors[:-_ERRORS_KEPT]
                if time.monotonic() >= next_tick:
                    on_tick()
                    next_tick = time.monotonic() + _TICK_S
    finally:
        os.close(ended)
        _kill_group(process)
    return bytes(output), bytes(errors)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group. Call it before the leader is reaped, when no other group can have the number."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of `Popen(..., PIPE)`, which the type checker cannot know to be present."""
    if stream is None:
        raise ValueError("not a pipe")
    return stream


def git_environment(workspace: Workspace) -> dict[str, str]:
    """Return the whole environment for a git process, and write its configuration file if need be."""
    settings = workspace.cache / "gitconfig"
    if not settings.exists() or settings.read_text() != _SETTINGS:
        fresh = settings.with_suffix(f".{os.getpid()}")
        fresh.write_text(_SETTINGS)
        fresh.rename(settings)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        **{name: os.environ[name] for name in _LAB_MARKS if name in os.environ},
    }


def create_bare(workspace: Workspace, directory: Path, borrow_from: Sequence[Path] = ()) -> Git:
    """Create or open the bare repository at `directory`, which borrows the objects of `borrow_from`."""
    git = Git(workspace, directory)
    git.run("init", "--quiet", "--bare", "--template=", "--initial-branch=master")
    if borrow_from:
        alternates = directory / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text("".join(f"{path / 'objects'}\n" for path in borrow_from))
    return git


def borrowed_by(directory: Path) -> list[Path]:
    """Return the object folders from which the bare repository `directory`, and those that it borrows from, borrow."""
    return _alternates(directory / "objects")


def _alternates(objects: Path) -> list[Path]:
    try:
        lines = (objects / "info" / "alternates").read_text().splitlines()
    except FileNotFoundError:
        return []
    folders = [(objects / line).resolve() for line in lines if line and not line.startswith("#")]
    return [found for folder in folders for found in (folder, *_alternates(folder))]
