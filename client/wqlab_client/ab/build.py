"""Build the kernels of commits of the repository in the current folder."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import ArtifactKind, ErrorKind
from wqlab_contracts.messages import Artifact, BuildResult
from wqlab_worker.build.given_config import with_loaded_modules
from wqlab_worker.build.kept_builds import build_folder
from wqlab_worker.build.local_tree import LocalSource, local_source, makefile_lines
from wqlab_worker.build.prepare import kernel_job, prepare_kernel, progress_text
from wqlab_worker.failures import JobError
from wqlab_worker.workspace import Workspace

from ..errors import LabUnavailable, UsageError
from .kernels import GivenKernel
from .recipes import Recipe

REPORT_S = 15.0
"""Interval of progress lines in seconds."""


def build_commit(  # noqa: PLR0917 - what is built, and how
    data: DataFolder, revision: str, recipe: Recipe, cache: Path, say: Callable[[str], None], since: str = ""
) -> GivenKernel:
    """Return a built kernel of a commit, the working tree, or patches on a commit (see `local_source`).

    A kernel in the cache is not built again. With `since`, a commit that was built before, only the files that differ
    from that commit are compiled.

    Raises UsageError if the commit does not exist or does not compile, LabUnavailable if it cannot be built here.
    """
    workspace = Workspace(cache.absolute(), jobs=len(os.sched_getaffinity(0)))
    try:
        with workspace.session() as opened:
            found = local_source(Path.cwd(), revision, opened, since)
            source = found.source
            config = recipe.config
            if config is not None and recipe.loaded is not None:
                config = with_loaded_modules(config, recipe.loaded, makefile_lines(Path.cwd(), revision))
            job = kernel_job(
                data, source, recipe.name, "x86_64", recipe.emulated, fragments_of_plan=recipe.fragments, config=config
            )
            changed = " with changes" if found.changes else ""
            say(f"building {revision} ({found.commit[:12]}{changed}, {source.release or 'unknown release'})")
            result = prepare_kernel(job, opened, _Reporter(say))
            if result.reused:
                say(f"{revision}: built before")
            for each in result.unmet_options if config is not None else ():
                say(f"{revision}: Kconfig did not accept {each}")
            return _given(revision, found, job.recipe.name, result, build_folder(opened, job.key), opened)
    except JobError as error:
        failure = error.failure
        text = "\n".join(filter(None, (failure.summary, failure.excerpt[-2000:])))
        kind = UsageError if failure.kind is ErrorKind.USER else LabUnavailable
        raise kind(f"{revision}: {text}", failure.advice) from None


def _given(  # noqa: PLR0917 - the results of a build
    revision: str, source: LocalSource, recipe: str, result: BuildResult, folder: Path, workspace: Workspace
) -> GivenKernel:
    artifacts = {each.kind: each for each in result.artifacts}
    return GivenKernel(
        name=revision,
        image=workspace.path_of(artifacts[ArtifactKind.KERNEL]),
        release=result.release,
        build_id_gnu=result.build_id_gnu,
        modules=_modules(artifacts, result.release, workspace),
        config=folder / "config",
        commit=source.commit,
        changes=source.changes,
        recipe=recipe,
        reproducer=result.reproducer,
        compiler=result.compiler,
        built=tuple(
            (each, workspace.path_of(each))
            for each in result.artifacts
            if each.kind in {ArtifactKind.MODULE, ArtifactKind.WORKQUEUE_LAYOUT}
        ),
        failed_modules=result.failed_modules,
    )


def _modules(artifacts: Mapping[ArtifactKind, Artifact], release: str, workspace: Workspace) -> Path | None:
    """Return the folder of the kernel's own modules, unpacked in the cache; None if it has none."""
    if ArtifactKind.MODULES not in artifacts:
        return None
    archive = artifacts[ArtifactKind.MODULES]
    target = workspace.folder("modules") / archive.sha256
    with workspace.lock(f"modules-{archive.sha256}"), workspace.temporary("modules") as scratch:
        if not target.exists():
            # tar refuses absolute paths and `..`; Python's tarfile does so only since 3.11.4.
            (scratch / "new").mkdir()
            command = ["tar", "--extract", "--no-same-owner", f"--file={workspace.path_of(archive)}"]
            subprocess.run([*command, f"--directory={scratch / 'new'}"], check=True)
            (scratch / "new").rename(target)
    return target / "lib/modules" / release


class _Reporter:
    """Prints the progress of a build: a line when another phase begins, and every REPORT_S."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._phase = ""
        self._began = self._said = 0.0

    def __call__(self, text: str, done: int, total: int) -> None:
        now, phase = time.monotonic(), text.partition(" ")[0]
        if phase != self._phase:
            self._phase, self._began = phase, now
        elif now - self._said < REPORT_S:
            return
        self._said = now
        self._say(progress_text(text, done, total, now - self._began))
