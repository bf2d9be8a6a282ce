"""The kernel sees the topology of each x86-64 device type, the same with every supported QEMU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_bench import cpio, topology
from wqlab_bench.device_types import load_device_types
from wqlab_bench.instrument import qemu_arguments
from wqlab_bench.instrument.qemu_arguments import Boot, Guest
from wqlab_bench.qemu import Firmware
from wqlab_contracts.specs import DeviceType

from . import boots
from .boots import INSTALLED, NEWER

pytestmark = pytest.mark.device
TYPES = {
    name: device_type
    for name, device_type in load_device_types(Path(__file__).resolve().parents[4]).items()
    if device_type.arch == "x86_64" and device_type.emulation is not None
}
RUN = """\
#!/bin/sh
cd /sys/devices/system
grep -s . cpu/cpu[0-9]*/topology/*_id cpu/cpu[0-9]*/topology/*_list cpu/cpu[0-9]*/cache/index*/level \
    cpu/cpu[0-9]*/cache/index*/shared_cpu_list node/node[0-9]*/cpulist | sort | wqmark send topology
poweroff -f
"""


@pytest.fixture(scope="module", params=[INSTALLED, pytest.param(NEWER, marks=pytest.mark.nightly)])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with boots.qemu_of(request.param, tmp_path_factory.mktemp("qemu")):
        yield request.param


def seen_by_kernel(device_type: DeviceType, folder: Path) -> dict[str, str]:
    """Boot a device of this type and return its files of /sys/devices/system: path -> content."""
    golden = json.loads((Path(os.environ["WQLAB_STATE"]) / "golden.json").read_text())["x86_64"]
    initramfs = folder / "initramfs"
    with initramfs.open("wb") as image:
        image.write(Path(golden["rootfs"]).read_bytes())
        image.write(b"\0" * (-image.tell() % 4))
        cpio.write_archive([cpio.directory("lab"), cpio.file("lab/run", RUN.encode(), executable=True)], image)
    emulation = device_type.emulation
    assert emulation is not None
    guest = Guest(
        device_type.name, "x86_64", device_type.topology, emulation.cpu_model, emulation.memory_mib, instruction_ns=16
    )
    words = f"console=ttyS0 panic=-1 {device_type.kernel_arguments}"
    boot = Boot(Path(golden["kernel"]), initramfs, words, 1, folder / "output", folder / "console")
    plugin = boots.build_plugin.plugin(folder)
    command = qemu_arguments.arguments(guest, boot, plugin, Firmware(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    frame, *_ = boots.stream.read(boot.output)  # the blocks follow
    assert isinstance(frame, boots.stream.Frame)
    return dict(line.split(":", 1) for line in frame.data.decode().splitlines())


def lists(seen: dict[str, str], ending: str) -> set[str]:
    return {content for path, content in seen.items() if path.endswith(ending)}


MANY_CPUS = 12
"""A device type with more CPUs takes up to a minute to boot, and is tested by night."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if TYPES[name].topology.cpus > MANY_CPUS else [])
        for name in sorted(TYPES)
    ],
)
def test_kernel_sees_topology(name: str, release: str, tmp_path: Path) -> None:
    device_type = TYPES[name]
    expected = device_type.topology
    seen = seen_by_kernel(device_type, tmp_path)
    third = {path.rpartition("/")[0] for path, level in seen.items() if path.endswith("/level") and level == "3"}
    assert len({seen[f"{folder}/shared_cpu_list"] for folder in third}) == expected.l3_domains
    assert len(third) == expected.cpus
    assert lists(seen, "topology/thread_siblings_list") == {
        ",".join(map(str, cpus)) if expected.numbering == "smt_last" and len(cpus) > 1 else _range(cpus)
        for cpus in topology.siblings(expected)
    }
    assert len(lists(seen, "topology/package_cpus_list")) == expected.sockets
    assert len(lists(seen, "topology/die_cpus_list")) == expected.l3_domains
    assert len(lists(seen, "cpulist")) == expected.numa_nodes
    if release == NEWER:
        with boots.qemu_of(INSTALLED, tmp_path):
            (tmp_path / INSTALLED).mkdir()
            assert seen_by_kernel(device_type, tmp_path / INSTALLED) == seen


def _range(cpus: list[int]) -> str:
    return str(cpus[0]) if len(cpus) == 1 else f"{cpus[0]}-{cpus[-1]}"
