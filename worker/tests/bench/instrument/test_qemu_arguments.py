"""The command line of an instrumented device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_bench import confinement
from wqlab_bench.instrument import qemu_arguments
from wqlab_bench.instrument.qemu_arguments import Boot, Guest, Model
from wqlab_bench.qemu import Firmware
from wqlab_contracts.specs import Cluster, Topology

TWO_SOCKETS = Topology(sockets=2, l3_per_socket=2, cores_per_l3=1, threads_per_core=2, numa_nodes=2)
PLUGIN = Path("/cache/wqlab-instrument.so")
BOOT = Boot(
    Path("/k/kernel"), Path("/k/initramfs"), "console=ttyS0 quiet", 7, Path("/out/stream"), Path("/out/console")
)


def guest(topology: Topology, **sizes: int) -> Guest:
    return Guest("xeon", "x86_64", topology, "qemu64", 1024, **sizes)


def value(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_all_sources_of_chance_are_fixed(tmp_path: Path) -> None:
    command = qemu_arguments.arguments(guest(TWO_SOCKETS), BOOT, PLUGIN, Firmware(tmp_path))
    assert value(command, "-icount") == "shift=0,sleep=off,align=off"
    assert value(command, "-rtc") == "base=2026-01-01,clock=vm"
    assert value(command, "-seed") == "7"
    assert value(command, "-accel").startswith("tcg,thread=single,tb-size=")
    # A socket could delay the guest's console.
    assert value(command, "-chardev") == "file,id=console,path=/out/console"
    assert not {"-netdev", "-drive", "-mon", "-device"} & set(command)


def test_plugin_gets_the_place_of_each_cpu(tmp_path: Path) -> None:
    command = qemu_arguments.arguments(guest(TWO_SOCKETS, l3_kib=2048), BOOT, PLUGIN, Firmware(tmp_path))
    assert value(command, "-plugin") == (
        "/cache/wqlab-instrument.so,output=/out/stream,"
        "cpus=0:0:0/0:0:0/1:1:0/1:1:0/2:2:1/2:2:1/3:3:1/3:3:1,memory_mib=1024,l3_kib=2048"
    )


def test_plugin_gets_the_layout_of_the_kernel(tmp_path: Path) -> None:
    boot = replace(BOOT, layout=Path("/k/layout"))
    command = qemu_arguments.arguments(guest(TWO_SOCKETS), boot, PLUGIN, Firmware(tmp_path))
    assert value(command, "-plugin").endswith(",layout=/k/layout")


def test_instruction_takes_the_given_time(tmp_path: Path) -> None:
    slow = Guest("xeon", "x86_64", TWO_SOCKETS, "qemu64", 1024, instruction_ns=8)
    command = qemu_arguments.arguments(slow, BOOT, PLUGIN, Firmware(tmp_path))
    assert value(command, "-icount") == "shift=3,sleep=off,align=off"


MODEL = Model(Path("/cache/model-qemu/x/qemu-system-x86_64"), Path("/out/costs"))


def test_modelled_device_has_the_patched_program_and_its_costs(tmp_path: Path) -> None:
    plain = guest(TWO_SOCKETS)
    command = qemu_arguments.arguments(replace(plain, model=MODEL), BOOT, PLUGIN, Firmware(tmp_path))
    firmware = ["-L", "/usr/share/seabios", "-L", "/usr/share/qemu"]
    assert command[:5] == ["/cache/model-qemu/x/qemu-system-x86_64", *firmware]
    assert value(command, "-machine") == "q35,smm=off,i8042=off,hpet=off"
    assert value(command, "-icount") == "shift=0,sleep=off,align=off"
    assert value(command, "-cpu") == "qemu64,level=0x20,-hypervisor", "Linux queues for spinlocks"
    counted = qemu_arguments.arguments(plain, BOOT, PLUGIN, Firmware(tmp_path))
    assert value(command, "-plugin") == f"{value(counted, '-plugin')},costs=/out/costs,seed=7"
    assert value(command, "-accel") == value(counted, "-accel")


@pytest.mark.skipif(not confinement.is_available(), reason="this host allows no user namespaces")
def test_modelled_device_sees_its_program_and_costs(tmp_path: Path) -> None:
    command = qemu_arguments.command(replace(guest(TWO_SOCKETS), model=MODEL), BOOT, PLUGIN, Firmware(tmp_path))
    visible = [command[place + 1] for place, word in enumerate(command) if word == "--ro-bind"]
    assert {str(MODEL.program), str(MODEL.costs)} <= set(visible)


def test_boot_without_plugin_executes_the_same_machine(tmp_path: Path) -> None:
    with_plugin = qemu_arguments.arguments(guest(TWO_SOCKETS), BOOT, PLUGIN, Firmware(tmp_path))
    without = qemu_arguments.arguments(guest(TWO_SOCKETS), BOOT, None, Firmware(tmp_path))
    assert without == with_plugin[: with_plugin.index("-plugin")]


def test_cluster_without_l3_counts_as_l3_domain() -> None:
    clusters = [Cluster(cores=1, capacity=400), Cluster(cores=2, capacity=1024)]
    topology = Topology(sockets=1, l3_per_socket=0, threads_per_core=1, clusters=clusters)
    assert qemu_arguments.places(topology) == [(0, 0, 0), (1, 1, 0), (2, 1, 0)]


def test_guest_numbers_of_cpus_follow_the_declared_numbering() -> None:
    smt = Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=2)
    assert list(qemu_arguments.guest_cpus(smt)) == [0, 1, 2, 3]
    last = smt.model_copy(update={"numbering": "smt_last"})
    # QEMU's CPUs 0 and 1 share a core.
    assert list(qemu_arguments.guest_cpus(last)) == [0, 2, 1, 3]


@pytest.mark.skipif(not confinement.is_available(), reason="this host allows no user namespaces")
def test_qemu_can_write_only_its_output(tmp_path: Path) -> None:
    command = qemu_arguments.command(guest(TWO_SOCKETS), BOOT, PLUGIN, Firmware(tmp_path))
    bound = [(command[place], command[place + 1]) for place, word in enumerate(command) if word.endswith("bind")]
    assert [path for option, path in bound if option == "--bind"] == ["/out"]
    assert {"/k/kernel", "/k/initramfs", str(PLUGIN)} <= {path for option, path in bound if option == "--ro-bind"}
