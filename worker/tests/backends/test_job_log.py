"""Progress and log of a LAVA job, from a fake LAVA server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wqlab_contracts.messages import RunJob
from wqlab_worker.backends.lava.job_log import JobTracker
from wqlab_worker.backends.lava.lava_client import LavaJob, LogLine

from .lava_jobs import BOOTS, defined


class ScriptedLava:
    """Fake LAVA server with one finished job, whose log has the given lines."""

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        began = datetime(2026, 11, 1, tzinfo=UTC)
        self.lines = [
            LogLine(dt=began + timedelta(seconds=n), lvl=level, msg=text) for n, (level, text) in enumerate(lines)
        ]

    def job(self, number: int) -> LavaJob:
        return LavaJob(id=number, state="Finished", health="Complete")

    def log(self, number: int, start: int = 0) -> list[LogLine]:
        return self.lines[start:]


def test_log_is_split_into_the_consoles_of_its_boots(job: RunJob) -> None:
    definition, _ = defined(job)
    lines = [
        ("info", "start: 0 validate"), ("info", "start: 1 deployimages (timeout 00:10:00) [common]"),
        ("info", "start: 2 boot-image-retry (timeout 00:04:00) [common]"), ("target", "golden 0"),
        ("info", "start: 3 kexec-boot (timeout 00:04:00) [common]"), ("target", "root@golden# /lab/jump -e"),
        ("target", "[    9.1] kexec_core: Starting new kernel"), ("target", "variant 0"), ("debug", "no console"),
        ("info", "start: 4 lava-test-retry (timeout 00:04:00) [common]"), ("target", "measured 0"),
        ("info", "start: 5 boot-image-retry (timeout 00:04:00) [common]"), ("target", "golden 1"),
        ("info", "start: 6 kexec-boot (timeout 00:04:00) [common]"),
        ("target", "wqlab-jump: refused: kexec did not load /lab/kernels/candidate"), ("error", "kexec timed out"),
        ("info", "start: 8 finalize (timeout 00:04:00) [common]"), ("target", "nobody's"),
    ]  # fmt: skip
    tracker = JobTracker(ScriptedLava(lines), 1, BOOTS, definition)  # type: ignore[arg-type]
    assert not tracker.ended
    tracker.follow()
    first, second = tracker.logs
    assert b"".join(first.golden).splitlines() == [
        b"golden 0", b"root@golden# /lab/jump -e", b"[    9.1] kexec_core: Starting new kernel"
    ]  # fmt: skip
    assert first.variant == [b"variant 0\n", b"measured 0\n"]
    assert (first.seconds("golden", "kexec"), first.seconds("kexec", "test")) == (2.0, 5.0)
    assert first.jumped
    assert not second.jumped
    assert second.refused.startswith("kexec did not load")
    assert not second.variant
    assert tracker.errors == ["kexec timed out"]
    assert tracker.is_complete(1)
    assert not tracker.ended, "its log may have more"
    tracker.follow()
    assert tracker.ended
