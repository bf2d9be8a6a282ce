"""Waits for spinlocks by lock and function."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench.instrument.stream import Pool, SpinWait, Window
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.instrument import SpinWaits
from wqlab_contracts.messages import Artifact, Kernel
from wqlab_worker.backends.instrumented import spin_waits as module
from wqlab_worker.stacks.counted_code import CountedCode, Function, SourcePlace

POOLS = [0xFFFF888000009000, 0xFFFF88800000A000]
QUEUE, TIMER, LOCK = 0xFFFFFFFF81000100, 0xFFFFFFFF81000200, 0xFFFFFFFF82000040


@pytest.fixture
def code() -> CountedCode:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="x")
    counted = CountedCode(
        Kernel(recipe="measure", build_id_gnu="ab" * 20, release="6", image=image), lambda _: Path("/none")
    )
    counted.functions = {QUEUE: Function("__queue_work"), QUEUE + 8: Function("__queue_work")}
    counted.lines = {QUEUE: SourcePlace("kernel/workqueue.c", 2310), QUEUE + 8: SourcePlace("kernel/workqueue.c", 2320)}
    counted.data = {LOCK: "tk_core + 0x40"}
    return counted


def test_waits_of_locks_with_one_name_and_of_calls_in_one_function_are_added(
    code: CountedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Window(
        1,
        pools=[Pool(address, 0x318, None, (0, 0, 0, 0)) for address in POOLS],
        spins=[
            SpinWait(POOLS[0], QUEUE, 2, 1_000_000),
            SpinWait(POOLS[1], QUEUE + 8, 3, 2_000_000),
            SpinWait(LOCK, TIMER, 1, 4_000_400),
        ],
    )
    longest = SpinWaits(lock="tk_core + 0x40", site="(unknown)", count=1, wait_ns=4000)
    queue = SpinWaits(
        lock="unbound worker_pool", site="__queue_work", site_line="kernel/workqueue.c:2320", count=5, wait_ns=3000
    )
    assert module.spin_waits(window, code, {}) == [longest, queue]
    monkeypatch.setattr(module, "SPIN_LIMIT", 1)
    assert module.spin_waits(window, code, {}) == [longest]
