"""Names of counted addresses, with the golden kernel's vmlinux."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact, Kernel
from wqlab_worker.stacks.counted_code import CountedCode, Function

TEXT = 0xFFFFFFFF81000000


def code(vmlinux: Path | None) -> CountedCode:
    def artifact(kind: ArtifactKind) -> Artifact:
        return Artifact(sha256="0" * 64, size=1, kind=kind, name="x")

    kernel = Kernel(
        recipe="measure",
        build_id_gnu="ab" * 20,
        release="6",
        image=artifact(ArtifactKind.KERNEL),
        vmlinux=artifact(ArtifactKind.VMLINUX) if vmlinux else None,
    )
    return CountedCode(kernel, lambda _: vmlinux or Path("/none"))


def test_functions_of_modules_need_no_vmlinux() -> None:
    counted = code(None)
    symbols = (
        f"{TEXT:x} T _text\nffffffffc0000000 t load_work.isra.0\t[cmwq_load]\n"
        "ffffffffc0000100 d table\t[cmwq_load]\nnonsense\n"
    )
    counted.look_up(symbols, [0xFFFFFFFFC0000010, 0xFFFFFFFFC0000110, 0xFFFFFFFFC1000000, 0x401000], [], [])
    found = Function("load_work")
    assert counted.functions == {0xFFFFFFFFC0000010: found, 0xFFFFFFFFC0000110: found}
    assert "vmlinux" in counted.lacking


def test_boot_without_symbols_has_no_names() -> None:
    counted = code(None)
    counted.look_up("", [TEXT], [], [])
    assert counted.lacking == "the boot did not tell where its kernel is"


@pytest.mark.device
def test_functions_lines_and_data_of_the_golden_kernel() -> None:
    made = json.loads((Path(os.environ["WQLAB_STATE"]) / "golden.json").read_text())["x86_64"]
    folder = Path(made["kernel"]).parent
    lines = [line.split() for line in (folder / "System.map").read_text().splitlines()]
    system_map = {name: int(address, 16) for address, _, name in lines}
    moved = 0x2000000  # as with KASLR
    counted = code(folder / "vmlinux")
    place = system_map["flush_workqueue_prep_pwqs"] + moved
    data = system_map["jiffies_64"] + moved + 4
    counted.look_up(
        f"{system_map['_text'] + moved:x} T _text\n", [place, place + 1], [place], [data, 0xFFFF888000000000]
    )
    assert counted.functions[place] == counted.functions[place + 1]
    assert counted.functions[place] == Function("flush_workqueue_prep_pwqs", "kernel/workqueue.c")
    assert counted.lines[place].file == "kernel/workqueue.c"
    # What else is in the cache line depends on the kernel's layout.
    assert counted.data.keys() == {data}
    assert "jiffies_64" in counted.data[data] and counted.data[data].endswith(" + 0x4")
    assert not counted.lacking
