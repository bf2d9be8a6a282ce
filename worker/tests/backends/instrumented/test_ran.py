"""Changed lines that ran on an instrumented device: a series in executed and in dead code, on the golden kernel."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator

import pytest

from wqlab_contracts.enums import Arm, Outcome, Ran
from wqlab_contracts.messages import BootVerified, ChangedLines, Kernel
from wqlab_worker.backends.instrumented import InstrumentedBackend

from ..conftest import Golden, RecordingSink, lasting
from .conftest import job_of

pytestmark = pytest.mark.device
FILE = "fs/pipe.c"


@pytest.fixture(scope="session")
def source(golden: Golden) -> list[str]:
    with zipfile.ZipFile(golden.kernel.parent / "sources.zip") as archive:
        return archive.read(FILE).decode().split("\n")


def body(source: list[str], head: str) -> tuple[int, int]:
    """Return the first and last line of a function, numbered from 1."""
    first = next(number for number, line in enumerate(source, start=1) if line.startswith(head))
    return first, next(number for number, line in enumerate(source[first:], start=first + 1) if line == "}")


def lines_of(found: BootVerified, function: str) -> Iterator[tuple[int, Ran]]:
    for each in found.ran:
        if each.function == function:
            yield from ((line, each.ran) for line in each.lines)


def test_boot_reports_which_changed_lines_ran(
    backend: Callable[[], InstrumentedBackend], kernel: Kernel, source: list[str]
) -> None:
    def changed(function: str, first: int, last: int, file: str = FILE) -> ChangedLines:
        return ChangedLines(file=file, function=function, arm=Arm.CANDIDATE, first=first, last=last)

    write, dead = body(source, "pipe_write("), body(source, "static long pipe_set_size(")
    at_boot = body(source, "static int __init init_pipe_fs(")
    error = next(n for n in range(*write) if "send_sig(SIGPIPE" in source[n - 1])
    job = job_of(kernel, [[Arm.CANDIDATE]]).model_copy(
        update={
            "changed": [
                changed("pipe_write", *write),
                changed("pipe_set_size", *dead),
                changed("init_pipe_fs", *at_boot),
                changed("other", 1, 3, "fs/nowhere.c"),
            ]
        }
    )
    sink = RecordingSink()
    result = backend().execute(job, job.blocks, sink, lasting())
    assert result.outcome is Outcome.PASSED, result.failure
    (found,) = sink.of(BootVerified)
    of_write = dict(lines_of(found, "pipe_write"))
    assert of_write[error] is Ran.NEVER, "the error path of a function that ran"
    assert sum(ran is Ran.MEASURED for ran in of_write.values()) > len(of_write) / 3
    assert {ran for _, ran in lines_of(found, "pipe_set_size")} == {Ran.NEVER}
    assert {ran for _, ran in lines_of(found, "init_pipe_fs")} >= {Ran.OUTSIDE}
    assert not {ran for _, ran in lines_of(found, "init_pipe_fs")} & {Ran.MEASURED}
    assert list(lines_of(found, "other")) == [(number, Ran.UNKNOWN) for number in (1, 2, 3)]
