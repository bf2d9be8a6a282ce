"""What a lab needs before it can start: kernel tree, golden kernel, root filesystem. All of it is cached by content."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from .paths import DEFAULT_TREE, Layout


class PrepareError(Exception):
    """A preparation step failed; the text has its output."""


def prepare(layout: Layout, say: Callable[[str], None]) -> None:
    """Writes `golden.json`: the kernel image and root filesystem that the golden system of each architecture boots."""
    layout.create()
    environment = layout.environment()
    say(f"kernel tree {DEFAULT_TREE}")
    _step(["python", "-m", "wqlab_worker.build.prepare", "tree", DEFAULT_TREE], environment)
    golden = {arch: _golden(arch, environment, say) for arch in layout.architectures()}
    layout.golden.write_text(json.dumps(golden))


def _golden(arch: str, environment: dict[str, str], say: Callable[[str], None]) -> dict[str, str]:
    # The root filesystem downloads while the kernel compiles.
    rootfs = subprocess.Popen(
        ["wqlab-bench", "rootfs", "--arch", arch],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        say(f"golden kernel for {arch} (the recipe `measure`; about 10 minutes the first time, cached from then on)")
        kernel = json.loads(
            _step(
                [
                    "python", "-m", "wqlab_worker.build.prepare", "kernel", "--tree", DEFAULT_TREE,
                    "--recipe", "measure", "--arch", arch, "--emulated",
                ],
                environment,
            )
        )  # fmt: skip
        say(f"root filesystem for {arch}")
        path, errors = rootfs.communicate()
        if rootfs.returncode:
            raise PrepareError(f"wqlab-bench rootfs failed:\n{errors}")
    finally:
        if rootfs.poll() is None:
            rootfs.kill()
    return {"kernel": kernel["image"], "rootfs": path.strip(), "key": kernel["key"]}


def _step(command: list[str], environment: dict[str, str]) -> str:
    """Runs a step whose progress goes to the terminal and whose answer comes on standard output."""
    result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=sys.stderr, check=False)
    if result.returncode:
        raise PrepareError(f"{' '.join(command)} failed with status {result.returncode}")
    return result.stdout


if __name__ == "__main__":
    prepare(Layout.from_environment(), lambda text: print(f"prepare: {text}", flush=True))
