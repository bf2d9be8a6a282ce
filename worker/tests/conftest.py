"""A toy kernel tree with real make targets in a git repository, and a separate cache for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from wqlab_contracts.keys import build_key, fragment_names
from wqlab_contracts.messages import BuildJob, Source
from wqlab_contracts.specs import KernelRecipe, Tree
from wqlab_worker.build.toolchain import toolchain_identity
from wqlab_worker.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parent))

TOY = Path(__file__).parent / "fakekernel"
RECIPE = KernelRecipe(name="measure", summary="toy", fragments=["base"], emulated_fragments=["emulated"])
FRAGMENTS = {
    "base": "CONFIG_SMP=y\nCONFIG_MODULES=y\nCONFIG_NR_CPUS=8\n",
    "emulated": "CONFIG_NR_CPUS=64\nCONFIG_ABSENT=y\n",
}


@dataclass
class Repository:
    """A developer's clone of the toy kernel."""

    path: Path

    def git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.path),
            **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _AUTHOR.items()},
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        self.write({name: text.replace(old, new)})

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def mbox(self, *arguments: str) -> str:
        return self.git("format-patch", "--stdout", *arguments)


_AUTHOR = {"NAME": "Ada Tester", "EMAIL": "ada@example.org", "DATE": "2026-01-02T03:04:05Z"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    shutil.copytree(TOY, tmp_path / "linux")
    repository = Repository(tmp_path / "linux")
    repository.git("init", "--quiet", "--initial-branch=master")
    repository.commit("toy: start")
    return repository


@pytest.fixture
def tree(repository: Repository) -> Tree:
    return Tree(name="toy", summary="a toy kernel", url=str(repository.path))


@pytest.fixture
def workspace(tmp_path: Path, repository: Repository) -> Workspace:
    return Workspace(tmp_path / "cache", local_git_paths=(repository.path,), jobs=2)


@dataclass
class JobMaker:
    """Make build jobs for the toy kernel, with the key of their content."""

    tree: Tree

    def __call__(
        self,
        source: Source,
        *,
        trusted: bool = True,
        fragments: Mapping[str, str] = FRAGMENTS,
        modules: Mapping[str, dict[str, str]] = MappingProxyType({}),
    ) -> BuildJob:
        recipe = RECIPE.model_copy(update={"modules": list(modules)})
        chosen = {name: fragments[name] for name in fragment_names(RECIPE, "x86_64", True)}
        toolchain = toolchain_identity()
        return BuildJob(
            build_id=1,
            key=build_key(source.tree_oid, recipe, "x86_64", chosen, toolchain, modules),
            source=source,
            trusted=trusted,
            recipe=recipe,
            arch="x86_64",
            emulated=True,
            fragments=chosen,
            modules=dict(modules),
            toolchain=toolchain,
        )


@pytest.fixture
def build_job(tree: Tree) -> JobMaker:
    return JobMaker(tree)
