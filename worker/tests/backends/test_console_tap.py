"""Kernel reports on a console become findings, up to a limit."""

from __future__ import annotations

from typing import Any

import pytest
from pexpect import TIMEOUT  # type: ignore[import-untyped]

from wqlab_contracts.enums import Arm, ArtifactKind, FindingKind
from wqlab_contracts.messages import BootKey, Finding
from wqlab_worker.backends.console_tap import FINDINGS_LIMIT, ConsoleTap, Wakeup

KEY = BootKey(block=0, position=0, arm=Arm.CANDIDATE, attempt=0)
WARNING = (
    "[    1.000000] WARNING: CPU: 0 PID: 1 at a.c:{0} f+0x1/0x2\n[    1.000000] ---[ end trace 0000000000000000 ]---\n"
)
STALL = "[    2.000000] INFO: task a:1 blocked for more than 10 seconds.\n[    2.000000]  </TASK>\n"
PANIC = "[    3.000000] Kernel panic - not syncing: x\n[    3.000000] ---[ end Kernel panic - not syncing: x ]---\n"


class RecordingSink:
    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def event(self, event: Any) -> None:
        self.findings.append(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        pass

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        pass


class Console:
    """Console driver that returns its bytes once."""

    def __init__(self) -> None:
        self.waiting = b""

    def _read(self, size: int, timeout: float) -> bytes:
        if not self.waiting:
            raise TIMEOUT("nothing")
        data, self.waiting = self.waiting[:size], self.waiting[size:]
        return data


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


def read(tap: ConsoleTap, console: Console, text: str, until: Any) -> None:
    wakeup = tap._wakeup
    console.waiting = text.encode()
    assert wakeup.wait_for(until, 3600)


def test_findings_of_a_boot_are_limited_except_fatal_ones(sink: RecordingSink) -> None:
    console = Console()
    tap = ConsoleTap(console, sink, Wakeup())
    tap.begin_boot(KEY)
    tap.begin_variant()
    tap.start()
    try:
        text = "".join(WARNING.format(line) for line in range(FINDINGS_LIMIT + 50)) + STALL * 2 + PANIC
        read(tap, console, text, lambda: tap.fatal is not None)
    finally:
        tap.stop()
    kinds = [finding.kind for finding in sink.findings]
    assert kinds.count(FindingKind.WARNING) == FINDINGS_LIMIT + 1
    assert f"{FINDINGS_LIMIT} findings in this boot" in sink.findings[FINDINGS_LIMIT].title
    assert kinds[FINDINGS_LIMIT + 1 :] == [FindingKind.HUNG_TASK, FindingKind.PANIC], "the first of a kind is kept"
    assert [report.kind for report in tap.reports] == [*kinds[:FINDINGS_LIMIT], *kinds[FINDINGS_LIMIT + 1 :]]

    tap.begin_boot(KEY.model_copy(update={"attempt": 1}))
    assert tap.reports == []
    tap.add_finding(FindingKind.HANG, "silent", "")
    assert tap.fatal is not None
