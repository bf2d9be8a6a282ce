"""Prepare a lab's kernel tree, golden kernel and root filesystem; all are cached by content."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from .paths import DEFAULT_TREE, LabPaths


class PrepareError(Exception):
    """A preparation step failed; the text has its output."""


def prepare(paths: LabPaths, report: Callable[[str], None]) -> None:
    """Write `golden.json` with kernel image and root filesystem of each architecture's golden system.

    Raises PrepareError if a step fails.
    """
    paths.create()
    environment = paths.environment()
    report(f"kernel tree {DEFAULT_TREE}")
    _step(["python", "-m", "wqlab_worker.build.prepare", "tree", DEFAULT_TREE], environment)
    golden = {arch: _golden(arch, environment, report) for arch in paths.architectures()}
    paths.golden.write_text(json.dumps(golden))


def _golden(arch: str, environment: dict[str, str], report: Callable[[str], None]) -> dict[str, str]:
    # The root filesystem downloads while the kernel compiles.
    rootfs = subprocess.Popen(
        ["wqlab-bench", "rootfs", "--arch", arch],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        report(f"golden kernel for {arch} (recipe `measure`; the first build takes about 10 minutes)")
        kernel = json.loads(
            _step(
                [
                    "python", "-m", "wqlab_worker.build.prepare", "kernel", "--tree", DEFAULT_TREE,
                    "--recipe", "measure", "--arch", arch, "--emulated",
                ],
                environment,
            )
        )  # fmt: skip
        report(f"root filesystem for {arch}")
        path, errors = rootfs.communicate()
        if rootfs.returncode:
            raise PrepareError(f"wqlab-bench rootfs failed:\n{errors}")
    finally:
        if rootfs.poll() is None:
            rootfs.kill()
    return {"kernel": kernel["image"], "rootfs": path.strip(), "key": kernel["key"]}


def _step(command: list[str], environment: dict[str, str]) -> str:
    """Run a step with its progress on the terminal, and return its standard output."""
    result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=sys.stderr, check=False)
    if result.returncode:
        raise PrepareError(f"{' '.join(command)} failed with status {result.returncode}")
    return result.stdout


if __name__ == "__main__":
    prepare(LabPaths.from_environment(), lambda text: print(f"prepare: {text}", flush=True))
