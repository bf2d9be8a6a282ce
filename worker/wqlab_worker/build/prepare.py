"""Prepare trees and kernels without a server: `python -m wqlab_worker.build.prepare tree|kernel ...`.

Builds use the same function and the same key as those of submissions, so either finds what the other has built. The
result goes to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import structlog

from wqlab_contracts.enums import ErrorKind, ExitCode, Outcome
from wqlab_contracts.keys import build_key, fragment_names
from wqlab_contracts.layouts import MOST_LAYOUTS
from wqlab_contracts.loading import DataError, DataFolder, load_data
from wqlab_contracts.messages import BuildJob, BuildResult, Failure, Source
from wqlab_contracts.specs import CpuArch

from ..apply.mirror import source_at, update_mirror
from ..failures import JobError, UserError
from ..workspace import Progress, Workspace, no_progress
from . import given_config
from .build_kernel import build
from .kept_builds import build_folder
from .toolchain import toolchain_identity

_TERMINAL_INTERVAL_S = 0.5
_LOG_INTERVAL_S = 15.0


def prepare_tree(data: DataFolder, tree: str, workspace: Workspace, progress: Progress = no_progress) -> Source:
    """Update the tree's mirror and return the commit of its branch. Raises JobError."""
    if tree not in data.trees:
        raise UserError(f"no tree {tree!r}", advice=f"Choose one of: {', '.join(data.trees)}")
    mirror = update_mirror(data.trees[tree], workspace, progress)
    return source_at(data.trees[tree], mirror.git, mirror.head)


def kernel_job(  # noqa: PLR0917 - the inputs of a build
    data: DataFolder,
    source: Source,
    recipe: str,
    arch: CpuArch,
    emulated: bool,
    layouts: int = 1,
    fragments_of_plan: Sequence[str] = (),
    config: str | None = None,
) -> BuildJob:
    """Return the job for building `source`, with the same key as the server's. `config` replaces the configuration of
    the recipe. Raises JobError."""
    if recipe not in data.recipes:
        raise UserError(f"no recipe {recipe!r}", advice=f"Choose one of: {', '.join(data.recipes)}")
    chosen = data.recipes[recipe].with_fragments(fragments_of_plan)
    texts = dict(data.fragments)
    if config is not None:
        chosen = given_config.recipe_with(data.recipes[recipe], fragments_of_plan)
        texts[given_config.NAME] = config
    fragments = {name: texts[name] for name in fragment_names(chosen, arch, emulated)}
    modules = data.modules_of(chosen)
    toolchain = toolchain_identity(chosen.toolchain)
    return BuildJob(
        build_id=0,
        key=build_key(source.tree_oid, chosen, arch, fragments, toolchain, modules, layouts),
        source=source,
        trusted=True,
        recipe=chosen,
        arch=arch,
        emulated=emulated,
        fragments=fragments,
        modules=modules,
        toolchain=toolchain,
        layouts=layouts,
    )


def prepare_kernel(job: BuildJob, workspace: Workspace, progress: Progress = no_progress) -> BuildResult:
    """Build the kernel unless this machine has it. Raises JobError if it cannot be built."""
    result = build(job, workspace, progress)
    if result.outcome is not Outcome.PASSED:
        raise _to_error(result.failure)
    return result


def _to_error(failure: Failure | None) -> JobError:
    if failure is None:
        return JobError("the build failed without a reason")
    kind = UserError if failure.kind is ErrorKind.USER else JobError
    return kind(failure.summary, excerpt=failure.excerpt, advice=failure.advice)


class ProgressLine:
    """Show progress: one line that is rewritten on a terminal, else a new line every 15 seconds."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.started = time.monotonic()
        self.shown = 0.0
        self.phase = ""

    def __call__(self, text: str, done: int, total: int) -> None:
        now = time.monotonic()
        phase = text.split(" ", 1)[0]
        if phase != self.phase:
            self.phase, self.started = phase, now
        elif now - self.shown < (_TERMINAL_INTERVAL_S if self.terminal else _LOG_INTERVAL_S):
            return
        self.shown = now
        line = progress_text(text, done, total, now - self.started)
        self.stream.write(f"\r\033[K{line[:110]}" if self.terminal else f"{line}\n")
        self.stream.flush()

    def close(self) -> None:
        if self.terminal:
            self.stream.write("\r\033[K")


def progress_text(text: str, done: int, total: int, elapsed_s: float) -> str:
    """Return for example `compiling fs/xfs/xfs_log.o  41%, about 3 min left`; the estimate needs at least 2 %."""
    if total <= 0:
        return text
    share = min(done / total, 1.0)
    if share < 0.02:
        return f"{text}  {share:.0%}"
    left_s = elapsed_s * (1 - share) / share
    left = f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {left_s:.0f} s left"
    return f"{text}  {share:.0%}, {left}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="wqlab_worker.build.prepare", description="Prepare kernel trees and kernels.")
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path(os.environ.get("WQLAB_DATA_DIR", ".")),
        help="folder with device-types, kernels and testplans (default: $WQLAB_DATA_DIR, or else the current folder)",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    tree = commands.add_parser("tree", help="update the mirror of a tree and print its commit")
    tree.add_argument("name", nargs="?", help="default: the tree of the golden kernel in trees.yaml")
    kernel = commands.add_parser("kernel", help="build the kernel of a tree's branch and print its description as JSON")
    kernel.add_argument("--tree", help="default: the tree of the golden kernel in trees.yaml")
    kernel.add_argument("--recipe", default="measure")
    kernel.add_argument("--arch", choices=["x86_64", "arm64"], default="x86_64")
    kernel.add_argument("--emulated", action="store_true", help="build for emulated devices")
    kernel.add_argument(
        "--layouts", type=int, choices=range(1, MOST_LAYOUTS + 1), default=1, help="link it in so many layouts"
    )
    chosen = parser.parse_args(arguments)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    progress = ProgressLine(sys.stderr)
    try:
        data = load_data(chosen.data_dir)
        with Workspace.from_environment().session() as workspace:
            if chosen.command == "tree":
                print(prepare_tree(data, chosen.name or data.golden_tree, workspace, progress).commit)
            else:
                source = prepare_tree(data, chosen.tree or data.golden_tree, workspace, progress)
                job = kernel_job(data, source, chosen.recipe, chosen.arch, chosen.emulated, chosen.layouts)
                print(json.dumps(_describe(job, prepare_kernel(job, workspace, progress), workspace)))
    except DataError as error:
        print(error, file=sys.stderr)
        return ExitCode.USAGE
    except JobError as error:
        failure = error.failure
        print("\n".join(part for part in (failure.summary, failure.excerpt, failure.advice) if part), file=sys.stderr)
        return ExitCode.USAGE if isinstance(error, UserError) else ExitCode.INFRASTRUCTURE
    finally:
        progress.close()
    return ExitCode.DONE


def _describe(job: BuildJob, result: BuildResult, workspace: Workspace) -> dict[str, object]:
    folder = build_folder(workspace, job.key)
    return {
        "key": job.key,
        "dir": str(folder),
        "build_id_gnu": result.build_id_gnu,
        "image": str(folder / "kernel"),
        "release": result.release,
        "base_commit": job.source.base_commit,
        "reused": result.reused,
        "duration_s": result.duration_s,
        "layouts": [each.model_dump(mode="json", exclude={"artifacts"}) for each in result.layouts],
        "ccache": result.ccache,
        "unmet_options": result.unmet_options,
    }


if __name__ == "__main__":
    sys.exit(main())
