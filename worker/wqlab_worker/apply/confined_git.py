"""Run git on submitted objects inside the sandbox: without network, with bounded time, memory, disk and output.

A few kilobytes of objects can describe gigabytes of files: a compressed or delta-encoded blob, a thousand copies of a
file, nested trees that name each other. So no git process outside the sandbox reads a submitted object. The exception
is `git fetch`, which needs the network and has limits of its own (see `fetch`).
"""

from __future__ import annotations

import io
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..failures import UserError
from ..limits import GIB, MIB, Limits, Stop
from ..sandbox import Finished, Sandbox, limit_error
from ..workspace import Workspace, open_regular
from .git import QUICK_S, Git, GitError, borrowed_by, create_bare, git_environment

LIMITS = Limits(wall_s=600.0, disk_bytes=2 * GIB, file_bytes=GIB, memory_bytes=2 * GIB, processes=64)
OUTPUT_BYTES = 8 * MIB
"""Default limit on what one command prints."""
_ERRORS = ".git-errors"
_ERRORS_KEPT = 64 << 10
# Mapped packs of a large mirror would count as memory of the command.
_SETTINGS = ("-c", "core.packedGitLimit=1g")


class ConfinedGitError(GitError):
    """git failed on submitted objects; the series is at fault."""


@dataclass(frozen=True)
class ConfinedGit(Git):
    """A repository with submitted objects. Paths inside the sandbox are those outside."""

    folder: Path
    """Folder of the job; commands can write only there."""
    visible: tuple[Path, ...] = ()
    """Files and folders that commands can read, such as mirrors whose objects the repository borrows."""

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = QUICK_S,
        bounds: Sequence[str] = (),
        check: bool = True,
        on_tick: Callable[[], None] = lambda: None,
    ) -> str:
        """Run a git command in the sandbox and return its standard output, of at most OUTPUT_BYTES.

        As `Git.run`, but raises ConfinedGitError if git fails, and UserError, which names the limit, if it exceeds one.
        """
        return self.pipeline(
            ["git", *arguments], environment=environment, check=check, on_tick=on_tick, timeout_s=timeout_s
        )

    def pipeline(
        self,
        *commands: Sequence[str],
        output_bytes: int = OUTPUT_BYTES,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
        on_tick: Callable[[], None] = lambda: None,
        on_line: Callable[[str], None] = lambda line: None,
        timeout_s: float = LIMITS.wall_s,
        shared: Sequence[Path] = (),
    ) -> str:
        """Run commands, each of which reads the output of the one before, and return the output of the last.

        A command that begins with `git` works on this repository. `on_line` is called with each line of the output; if
        it raises, the commands are killed. `shared` are further folders that the commands can write, whose size does
        not count. Raises as `run` does.
        """
        name = " ".join(commands[0][:2])
        outside = git_environment(self.workspace)
        git = ["git", f"--git-dir={self.directory}", *_SETTINGS]
        piped = " | ".join(shlex.join([*git, *rest] if tool == "git" else [tool, *rest]) for tool, *rest in commands)
        output = _Output(name, output_bytes)
        sandbox = Sandbox(
            read_only={str(path): path for path in (Path(outside["GIT_CONFIG_GLOBAL"]), *self.visible)},
            writable={str(self.folder): self.folder},
            shared={str(path): path for path in shared},
            environment={
                **{key: value for key, value in outside.items() if key.startswith("GIT_")},
                **(environment or {}),
            },
            limits=replace(LIMITS, wall_s=min(timeout_s, LIMITS.wall_s), log_bytes=output_bytes + 1),
        )
        errors = self.folder / _ERRORS
        errors.unlink(missing_ok=True)
        finished = sandbox.run(
            [
                "prlimit",
                f"--data={LIMITS.memory_bytes}",
                "bash",
                "-o",
                "pipefail",
                "-c",
                f'{{ {piped}; }} 2>"$0"',
                str(errors),
            ],
            log=output,
            working_directory=str(self.folder),
            on_tick=on_tick,
            on_line=on_line,
        )
        if finished.stopped is Stop.MACHINE:
            raise limit_error(finished.stopped, name, self._errors())
        if reason := exceeded_limit(finished, sandbox.limits):
            raise UserError(f"{name} exceeded the limit of {reason} on the series", excerpt=self._errors())
        if check and finished.exit_code != 0:
            raise ConfinedGitError(commands[0][1:], self._errors())
        return output.getvalue().decode(errors="replace")

    def fetching(self) -> Git:
        """Return the same repository for `fetch`, outside the sandbox."""
        return Git(self.workspace, self.directory)

    def _errors(self) -> str:
        """Return the end of the last command's standard error."""
        with suppress(OSError), os.fdopen(open_regular(self.folder, _ERRORS), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _ERRORS_KEPT))
            return file.read(_ERRORS_KEPT).decode(errors="replace")
        return ""


@dataclass(frozen=True)
class ConfinedMirror(Git):
    """The mirror of a URL that a user gave. It is fetched by `Git`, and read by this, in the sandbox only."""

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = QUICK_S,
        bounds: Sequence[str] = (),
        check: bool = True,
        on_tick: Callable[[], None] = lambda: None,
    ) -> str:
        """Run a git command that writes nothing; as `ConfinedGit.run`."""
        with self.reader() as git:
            return git.run(
                *arguments, environment=environment, timeout_s=timeout_s, bounds=bounds, check=check, on_tick=on_tick
            )

    @contextmanager
    def reader(self) -> Iterator[ConfinedGit]:
        """Yield the mirror for several commands, which can write to a temporary folder only."""
        with self.workspace.temporary("mirror") as folder:
            yield ConfinedGit(self.workspace, self.directory, folder, (self.directory,))


def limits_text() -> str:
    """Return the limits of one command, for the advice of a failure."""
    disk, memory = size_text(LIMITS.disk_bytes), size_text(LIMITS.memory_bytes)
    return f"git ran on the series with at most {memory} of memory, {disk} of disk and {LIMITS.wall_s:.0f} s."


class _Output(io.BytesIO):
    """Output of a command. `write` raises UserError, which ends the command, once it is longer than the limit."""

    def __init__(self, command: str, limit: int) -> None:
        super().__init__()
        self._command, self._limit = command, limit

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self._limit:
            raise UserError(f"{self._command} printed more than {size_text(self._limit)} about the series")
        return super().write(data)


def create_confined(
    workspace: Workspace, folder: Path, name: str, visible: Sequence[Path], mirror: Path
) -> ConfinedGit:
    """Create the bare repository `folder`/`name`, which borrows the objects of `mirror`.

    Attributes in the series have no effect: they can convert files to other, larger encodings.
    """
    create_bare(workspace, folder / name, [mirror])
    ignore_attributes(folder / name)
    return ConfinedGit(workspace, folder / name, folder, (mirror, *borrowed_by(mirror), *visible))


def ignore_attributes(repository: Path) -> None:
    """Let no `.gitattributes` in the commits of a repository convert files."""
    info = repository / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("* -text -eol -ident -filter -working-tree-encoding\n")


def exceeded_limit(finished: Finished, limits: Limits) -> str:
    """Return the limit that ended a command, such as `2048 MiB of disk`; empty if none did."""
    if finished.stopped is not None:
        named = {
            Stop.TIME: f"{limits.wall_s:.0f} s",
            Stop.DISK: f"{size_text(limits.disk_bytes)} of disk",
            Stop.MEMORY: f"{size_text(limits.memory_bytes)} of memory",
            Stop.PROCESSES: f"{limits.processes} processes",
        }
        return named.get(finished.stopped, finished.stopped.value)
    return f"{size_text(limits.file_bytes)} in one file" if finished.exit_code == 128 + signal.SIGXFSZ else ""


def size_text(size: int) -> str:
    """Return a number of bytes in MiB, such as `64 MiB`."""
    return f"{size >> 20} MiB"
