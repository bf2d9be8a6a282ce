"""Sums of a window by function, file and subsystem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_bench.instrument.stream import Moved, Window
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.instrument import OTHER, USER_SPACE
from wqlab_contracts.messages import Artifact, Kernel
from wqlab_worker.backends.instrumented import function_sums as module
from wqlab_worker.stacks.counted_code import CountedCode, Function

KERNEL = 0xFFFFFFFF81000000
FILES = ["fs/xfs/xfs_log.c", "kernel/workqueue.c", "fs/xfs/libxfs/xfs_bmap.c", "kernel/sched/core.c"]


@pytest.fixture
def code() -> CountedCode:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="x")
    counted = CountedCode(
        Kernel(recipe="measure", build_id_gnu="ab" * 20, release="6", image=image), lambda _: Path("/none")
    )
    counted.functions = {KERNEL + n: Function(f"f{n}", FILES[n % len(FILES)]) for n in range(40)}
    return counted


WINDOW = Window(
    1,
    code={KERNEL + n: 1000 - n for n in range(41)} | {0x401000: 7},
    moved=[Moved("l3", "load", KERNEL + 39, 0, 3)],
    locked_code={KERNEL + 1: 5},
)


def test_subsystem_is_the_folder_or_the_file_in_kernel() -> None:
    names = [module.subsystem(Function("x", file)) for file in [*FILES, "mm/slub.c", "", "init/main.c"]]
    assert names == ["fs/xfs", "kernel/workqueue.c", "fs/xfs", "kernel/sched", "mm", "", "init"]


def test_subsystems_are_the_whole_window_whatever_the_limits(
    code: CountedCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FUNCTION_LIMIT", 5)
    found = {each.name: each for each in module.subsystems_of(WINDOW, code)}
    assert set(found) == {"fs/xfs", "kernel/workqueue.c", "kernel/sched", USER_SPACE, ""}
    assert sum(each.instructions for each in found.values()) == sum(WINDOW.code.values())
    assert found["fs/xfs"].instructions == sum(1000 - n for n in range(0, 40, 2))
    assert found["kernel/workqueue.c"].locked == 5
    assert found["kernel/sched"].transfers.l3 == 3
    monkeypatch.setattr(module, "SUBSYSTEM_LIMIT", 3)
    user, largest, rest = module.subsystems_of(WINDOW, code)
    assert (user.name, user.instructions) == (USER_SPACE, 7), "however small it is"
    assert (largest.name, rest.name) == ("fs/xfs", OTHER)
    assert user.instructions + largest.instructions + rest.instructions == sum(WINDOW.code.values())


def test_virtual_time_is_summed_by_function(code: CountedCode, monkeypatch: pytest.MonkeyPatch) -> None:
    window = replace(WINDOW, times={KERNEL + n: 3_000 for n in range(40)} | {0x401000: 500_000, KERNEL + 60: 9_000})
    found = {each.name: each.virtual_ns for each in module.functions_of(window, code, set())}
    assert (found["f7"], found[module.PROGRAMS.name], found[module.UNKNOWN.name]) == (3, 500, 9)
    monkeypatch.setattr(module, "FUNCTION_LIMIT", 5)
    assert sum(each.virtual_ns for each in module.functions_of(window, code, set())) == 40 * 3 + 509
    assert {each.virtual_ns for each in module.functions_of(WINDOW, code, set())} == {0}


def test_functions_without_an_entry_are_summed_by_file(code: CountedCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FUNCTION_LIMIT", 5)
    found = module.functions_of(WINDOW, code, {"f38"})
    assert found[0].name == "f38" and found[0].touched
    rest = [each for each in found if each.name == OTHER]
    assert {each.file for each in rest} == {*FILES, ""}
    assert sum(each.instructions for each in found) == sum(WINDOW.code.values())
    monkeypatch.setattr(module, "FILE_LIMIT", 2)
    found = module.functions_of(WINDOW, code, set())
    assert [each.file for each in found if each.name == OTHER][-1] == ""
    assert sum(each.instructions for each in found) == sum(WINDOW.code.values())
