"""Git repository of a user, and the server that serves it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wqlab_lab.paths import free_port

if TYPE_CHECKING:
    from .conftest import Lab


class Topic:
    """Repository of a user, whose branch `topic` has one patch on top of the tree's head."""

    def __init__(self, lab: Lab, patch: Path, path: Path | None = None) -> None:
        """`path`: folder of the repository; None: the one that the lab may read."""
        self.path = path or Path(lab.environment["WQLAB_LOCAL_GIT_PATHS"])
        self.url = f"{lab.git_url}/{self.path.name}"
        mirror = Path(lab.environment["WQLAB_CACHE"]) / "mirrors/linux-6.12.git"
        subprocess.run(["git", "clone", "-q", "--bare", "--shared", mirror, self.path], check=True)
        self.base = self._git("rev-parse", "HEAD")
        self._git("read-tree", self.base)
        self._git("apply", "--cached", str(patch))
        title = "workqueue: The same again, by another way"
        commit = self._git("commit-tree", "-p", self.base, "-m", title, self._git("write-tree"))
        self._git("update-ref", "refs/heads/topic", commit)

    def _git(self, *arguments: str) -> str:
        author = {
            f"GIT_{who}_{what}": "user@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **author, "GIT_INDEX_FILE": str(self.path / "topic-index")}
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, env=environment, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()


@contextmanager
def git_daemon(folder: Path) -> Iterator[str]:
    """Serve the repositories of a folder; yield the URL."""
    port = free_port(0)
    program = subprocess.run(["git", "--exec-path"], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
    command = [
        *(f"{program}/git-daemon", "--verbose", "--export-all", "--listen=127.0.0.1", f"--port={port}"),
        *(f"--base-path={folder}", str(folder)),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr and any("Ready to rumble" in line for line in process.stderr)
            yield f"git://127.0.0.1:{port}"
        finally:
            process.terminate()
