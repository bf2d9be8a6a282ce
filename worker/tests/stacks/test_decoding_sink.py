"""Source lines in the events of a run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wqlab_contracts.consoles.detect import Detector, Report
from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, FindingKind, Outcome
from wqlab_contracts.messages import (
    Artifact,
    BlockDiscarded,
    BootFinished,
    BootKey,
    Failure,
    Finding,
    Progress,
    RunEvent,
    RunResult,
)
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.stacks.decoding_sink import DecodingSink

from .compiled import after_call, built, compiled_kernel, symbol

NOW = datetime(2026, 3, 14, tzinfo=UTC)
BOOT = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
OOPS = """\
[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   12.346500] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI
[   12.347000] RIP: 0010:flush_one+0x0/{one:#x}
[   12.347700] Call Trace:
[   12.347800]  <TASK>
[   12.347900]  flush_all+{call:#x}/{all:#x}
[   12.348300]  </TASK>
[   12.348800] ---[ end trace 0000000000000000 ]---
"""


class Recorder:
    def __init__(self) -> None:
        self.calls: list[RunEvent | bytes] = []

    def event(self, event: RunEvent) -> None:
        self.calls.append(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self.calls.append(data)

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self.calls.append(data)


def oops(vmlinux: Path) -> Report:
    call = after_call(vmlinux, "flush_all")
    text = OOPS.format(one=symbol(vmlinux, "flush_one").size, call=call, all=symbol(vmlinux, "flush_all").size)
    (report,) = Detector().feed(text.encode())
    assert isinstance(report, Report)
    return report


def events(report: Report) -> list[RunEvent]:
    finding = Finding(
        at=NOW,
        boot=BOOT,
        kind=report.kind,
        title=report.title,
        excerpt=report.excerpt,
        console_offset=0,
        fatal=True,
        stack=report.stack,
        defect=report.defect,
    )
    failed = failure(report)
    return [
        finding,
        BootFinished(at=NOW, boot=BOOT, outcome=Outcome.FAILED, failure=failed),
        BlockDiscarded(at=NOW, block=0, attempt=0, arm=Arm.CANDIDATE, failure=failed),
    ]


def failure(report: Report) -> Failure:
    return Failure(kind=ErrorKind.KERNEL, summary=report.title, excerpt=report.excerpt, defect=report.defect)


def test_findings_and_failures_show_the_same_source_lines(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    kernel, fetch = compiled_kernel(files)
    report, recorder = oops(files["/vmlinux"]), Recorder()
    sink = DecodingSink(recorder, {Arm.CANDIDATE: [kernel]}, fetch, Stop())
    for event in events(report):
        sink.event(event)
    result = sink.finish(RunResult(outcome=Outcome.FAILED, failure=failure(report)))
    finding, boot, block = recorder.calls
    assert isinstance(finding, Finding)
    assert "(kernel/flush.c:12)  return flush_one(where) + 2;\n" in finding.excerpt
    assert "(kernel/flush.c:3 kernel/flush.c:7)  *where = 7;" in finding.excerpt
    assert [(frame.function, frame.line) for frame in finding.stack] == [
        ("poke", 3),
        ("flush_one", 7),
        ("flush_all", 12),
    ]
    assert finding.defect.endswith(" in flush_one@kernel/flush.c:7 < flush_all@kernel/flush.c")
    for failed in (boot.failure, block.failure, result.failure):  # type: ignore[union-attr]
        assert (failed.excerpt, failed.stack, failed.defect) == (finding.excerpt, finding.stack, finding.defect)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"vmlinux": None}, "the server does not provide vmlinux"),
        ({"sources": None}, ""),
    ],
)
def test_missing_files_are_named(tmp_path: Path, change: dict[str, None], reason: str) -> None:
    files = built(tmp_path, "-g")
    kernel, fetch = compiled_kernel(files)
    report, recorder = oops(files["/vmlinux"]), Recorder()
    sink = DecodingSink(recorder, {Arm.CANDIDATE: [kernel.model_copy(update=change)]}, fetch, Stop())
    sink.event(events(report)[0])
    sink.close()
    (finding,) = recorder.calls
    assert isinstance(finding, Finding)
    if reason:
        assert finding.excerpt == f"{report.excerpt}\n[no line information: {reason}]"
        assert (finding.stack, finding.defect) == (report.stack, report.defect)
    else:
        assert "flush_all+" in finding.excerpt
        assert "(kernel/flush.c:12)\n" in finding.excerpt


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("no connection")])
def test_fetch_error_does_not_lose_the_report(tmp_path: Path, error: Exception) -> None:
    files = built(tmp_path, "-g")
    kernel, _ = compiled_kernel(files)
    report, recorder = oops(files["/vmlinux"]), Recorder()

    def refuse(artifact: Artifact) -> Path:
        raise error

    sink = DecodingSink(recorder, {Arm.CANDIDATE: [kernel]}, refuse, Stop())
    for event in events(report):
        sink.event(event)
    sink.close()
    assert len(recorder.calls) == 3
    assert "[no line information: vmlinux could not be fetched]" in recorder.calls[0].excerpt  # type: ignore[union-attr]


def test_boots_do_not_wait_and_order_is_kept(tmp_path: Path) -> None:
    import threading

    files = built(tmp_path, "-g")
    kernel, fetch = compiled_kernel(files)
    report, recorder = oops(files["/vmlinux"]), Recorder()
    arrived = threading.Event()

    def slow(artifact: Artifact) -> Path:
        assert arrived.wait()
        return fetch(artifact)

    sink = DecodingSink(recorder, {Arm.CANDIDATE: [kernel]}, slow, Stop())
    sink.event(events(report)[0])
    sink.console(BOOT, 0, b"more")
    sink.event(Progress(at=NOW, text="next boot"))
    arrived.set()
    sink.close()
    assert [type(call) for call in recorder.calls] == [Finding, bytes, Progress]


def test_canceled_run_decodes_nothing(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    kernel, _ = compiled_kernel(files)
    fetched: list[Artifact] = []
    fetch: Callable[[Artifact], Path] = lambda artifact: fetched.append(artifact) or tmp_path  # noqa: E731
    stop, recorder = Stop(), Recorder()
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="canceled"))
    sink = DecodingSink(recorder, {Arm.CANDIDATE: [kernel]}, fetch, stop)
    sink.event(events(oops(files["/vmlinux"]))[0])
    sink.close()
    assert (len(recorder.calls), fetched) == (1, [])
    assert FindingKind.OOPS is recorder.calls[0].kind  # type: ignore[union-attr]
