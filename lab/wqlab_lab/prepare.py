"""Prepare a lab's web pages, kernel tree, golden kernel and root filesystem; all are cached by content.

`python -m wqlab_lab.prepare` prepares all but the pages, whose sources an installed package does not have.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from . import documentation, web
from .paths import LabPaths


class PrepareError(Exception):
    """A preparation step failed; the text has its output."""


def prepare_pages(paths: LabPaths) -> None:
    """Build the web pages and the documentation. Raises web.WebError and documentation.DocumentationError."""
    web.build(paths.cache)
    documentation.build(paths.cache)


class GoldenPreparation:
    """Preparation of the golden systems in a thread, so that the lab's server can start meanwhile.

    It writes `golden.json` with kernel image and root filesystem of each architecture's golden system. Use it as a
    context manager: an exception in its block also ends the preparation.
    """

    def __init__(self, paths: LabPaths, report: Callable[[str], None]) -> None:
        self._paths = paths
        self._report = report
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="golden systems")
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[str]] = set()
        self._canceled = False
        self._prepared: Future[None] | None = None

    def __enter__(self) -> GoldenPreparation:
        self._paths.create()
        self._prepared = self._thread.submit(self._prepare)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind:
            self._cancel()
        self._thread.shutdown()

    def wait(self) -> None:
        """Wait until the golden systems exist. Raises PrepareError if a step failed."""
        if self._prepared is None:
            raise RuntimeError("the preparation has not been started")
        self._prepared.result()

    # --- steps --------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._report("kernel tree of the golden kernel")
        self._output(self._start(["python", "-m", "wqlab_worker.build.prepare", "tree"]))
        golden = {arch: self._golden(arch) for arch in self._paths.architectures()}
        self._paths.golden.write_text(json.dumps(golden))

    def _golden(self, arch: str) -> dict[str, str]:
        # The root filesystem downloads while the kernel compiles.
        rootfs = self._start(["wqlab-bench", "rootfs", "--arch", arch], stderr=subprocess.PIPE)
        self._report(f"golden kernel for {arch} (recipe `measure`; the first build takes about 10 minutes)")
        kernel = json.loads(
            self._output(
                self._start(
                    [
                        "python", "-m", "wqlab_worker.build.prepare", "kernel",
                        "--recipe", "measure", "--arch", arch, "--emulated",
                    ]
                )
            )
        )  # fmt: skip
        self._report(f"root filesystem for {arch}")
        return {"kernel": kernel["image"], "rootfs": self._output(rootfs).strip(), "key": kernel["key"]}

    def _start(self, command: list[str], stderr: int | None = None) -> subprocess.Popen[str]:
        """Start a step; without `stderr` its progress goes to the terminal."""
        with self._lock:
            if self._canceled:
                raise PrepareError("the preparation was canceled")
            process = subprocess.Popen(
                command,
                env=self._paths.environment(),
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=sys.stderr if stderr is None else stderr,
            )
            self._processes.add(process)
        return process

    def _output(self, process: subprocess.Popen[str]) -> str:
        """Return the standard output of a step. Raises PrepareError, and ends the other steps, if it fails."""
        output, errors = process.communicate()
        with self._lock:
            self._processes.discard(process)
        if process.returncode:
            self._cancel()
            command = " ".join(map(str, process.args)) if isinstance(process.args, list) else str(process.args)
            raise PrepareError(f"{command} failed with status {process.returncode}\n{errors or ''}".strip())
        return output

    def _cancel(self) -> None:
        with self._lock:
            self._canceled = True
            for process in self._processes:
                process.terminate()


def prepare(paths: LabPaths, report: Callable[[str], None]) -> None:
    """Prepare pages, documentation and golden systems at the same time.

    Raises PrepareError, web.WebError or documentation.DocumentationError.
    """
    with GoldenPreparation(paths, report) as golden:
        prepare_pages(paths)
        golden.wait()


if __name__ == "__main__":
    with GoldenPreparation(LabPaths.from_environment(), lambda text: print(f"prepare: {text}", flush=True)) as prepared:
        prepared.wait()
