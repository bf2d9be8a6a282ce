"""A kernel tree that a test commits to and pushes, and that a lab knows by a name."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

FILE = "kernel/workqueue.c"
BUFFER = "/* buf for wq_update_unbound_pod_attrs(), protected by CPU hotplug exclusion */"
"""A comment: another text in the same line leaves the kernel as it is; a further line moves the lines of warnings."""
MUTEX = "static DEFINE_MUTEX(wq_pool_mutex);"


class Tree:
    """A repository with the lab's kernel, whose branch for-next the lab knows, as its maintainer pushes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        mirror = Path(os.environ["WQLAB_CACHE"]) / "mirrors/linux-6.12.git"
        subprocess.run(["git", "clone", "-q", "--bare", "--shared", mirror, path], check=True)
        self.git("read-tree", "HEAD")
        self.git("update-ref", "refs/heads/work", "HEAD")

    def git(self, *arguments: str) -> str:
        who = {
            f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {**os.environ, **who, "GIT_INDEX_FILE": str(self.path / "push-index")}
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, env=environment, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()

    def commit(self, subject: str, patch: Path, *options: str) -> str:
        """Apply a mailbox of patches on top of what is not pushed yet, as one commit; return the commit."""
        self.git("apply", "--cached", *options, str(patch))
        return self._commit(subject)

    def _commit(self, subject: str) -> str:
        made = self.git("commit-tree", "-p", "refs/heads/work", "-m", subject, self.git("write-tree"))
        self.git("update-ref", "refs/heads/work", made)
        return made

    def edit(self, subject: str, old: str, new: str) -> str:
        """Replace a text of kernel/workqueue.c, as one commit; return the commit."""
        text = self.git("show", f"refs/heads/work:{FILE}") + "\n"
        assert text.count(old) == 1, old
        changed = self.path / "changed"
        changed.write_text(text.replace(old, new))
        self.git("update-index", "--cacheinfo", f"100644,{self.git('hash-object', '-w', str(changed))},{FILE}")
        return self._commit(subject)

    def push(self) -> str:
        """Let for-next be what was committed; return the head."""
        self.git("update-ref", "refs/heads/for-next", "refs/heads/work")
        return self.git("rev-parse", "refs/heads/for-next")


@contextmanager
def known_to_lab(tree: Tree, name: str, url: str, data: Path) -> Iterator[None]:
    """Add the tree to a lab's data folder, and give the lab a copy of it, which it would otherwise download."""
    mirror = Path(os.environ["WQLAB_CACHE"]) / f"mirrors/{name}.git"
    shutil.rmtree(mirror, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--bare", "--shared", tree.path, mirror], check=True)
    trees = data / "kernels/trees.yaml"
    spec = yaml.safe_load(trees.read_text())
    spec["trees"].append({"name": name, "summary": "a test's tree", "url": url, "branch": "for-next"})
    trees.write_text(yaml.safe_dump(spec))
    try:
        yield
    finally:
        shutil.rmtree(mirror, ignore_errors=True)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait for what the lab does by itself: nothing outside tells of it."""
    began = time.monotonic()
    while not condition():
        time.sleep(2)
    print(f"{time.monotonic() - began:6.0f} s until {what}", flush=True)
