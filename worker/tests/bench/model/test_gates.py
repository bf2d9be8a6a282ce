"""Virtual time of programs for which it is known in advance, on a modelled machine.

Each expected time follows from the cost profile; a gate is the largest deviation from it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import pytest

from wqlab_bench import cpio
from wqlab_bench.instrument import build_plugin, qemu_arguments
from wqlab_bench.instrument.build_plugin import InstrumentUnsupported
from wqlab_bench.instrument.qemu_arguments import Boot, Guest, Model
from wqlab_bench.model import build_qemu
from wqlab_bench.qemu import Firmware
from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import Topology
from wqlab_contracts.specs.cost_profile import CostProfile, write_costs
from wqlab_host import tool

pytestmark = [pytest.mark.device, pytest.mark.nightly]
ROOT = Path(__file__).resolve().parents[4]
SOURCE = Path(__file__).parent / "gates.c"
MARKS = Path(build_plugin.__file__).parents[1] / "guest"
BLOCKS = 2000
"""Blocks of 1000 no-operations: 0.25 ms where a simple instruction takes 125 ps."""


class Error(Exception):
    """The compiler failed."""


@dataclass(frozen=True)
class Machine:
    profile: CostProfile
    topology: Topology
    folder: Path

    @property
    def cpus(self) -> int:
        return self.topology.cpus

    def means(self, calls: list[str], name: str, *, quantum_percent: int = 100) -> dict[str, float]:
        """Boot once with TIMES calls of each of these. Return the mean figure of each."""
        figures, _ = self.run(*calls, times=TIMES, quantum_percent=quantum_percent, name=name)
        return {call: mean(figures[call]) for call in calls}

    def run(
        self, *calls: str, times: int = 1, quantum_percent: int = 100, name: str = "boot", shortcuts: bool = True
    ) -> tuple[dict[str, list[float]], bytes]:
        """Boot once with these calls of gates.c, several times. Return the figures of each, and the console.

        Without `shortcuts` the plugin looks up the page and the L1 cache for each access.
        """
        folder = self.folder / name
        folder.mkdir()
        model = Model(build_qemu.find_program(Path(os.environ["WQLAB_CACHE"]), "x86_64"), folder / "costs")
        write_costs(self.profile, model.costs, self.topology.l3_domains)
        if quantum_percent != 100:
            text = re.sub(r"quantum (\d+)", lambda match: f"quantum {int(match[1]) * quantum_percent // 100}",
                          model.costs.read_text())  # fmt: skip
            model.costs.write_text(text)
        image = folder / "initramfs"
        with image.open("wb") as output:
            entries = [cpio.directory("dev"), cpio.character_device("dev/console", 5, 1), cpio.directory("proc")]
            cpio.write_archive([*entries, cpio.file("init", self._program().read_bytes(), True)], output)
        golden = json.loads((Path(os.environ["WQLAB_STATE"]) / "golden.json").read_text())["x86_64"]
        kernel_words = "console=ttyS0 panic=-1 nokaslr norandmaps mitigations=off tsc=reliable "
        kernel_words += f"times={times} gates={','.join(calls)}"
        boot = Boot(Path(golden["kernel"]), image, kernel_words, 1, folder / "output", folder / "console")
        guest = Guest("gates", "x86_64", self.topology, "Skylake-Server", 1024, model=model)
        plugin = build_plugin.plugin(self.folder, "x86_64", model.program)
        if not shortcuts:
            sources = sorted((Path(build_plugin.__file__).parent / "plugin").glob("*.c"))
            plugin = folder / "without.so"
            words = [*build_plugin._FLAGS, "-DWQLAB_PLUGIN_API=1", "-DWQLAB_WITHOUT_NEAR", *map(str, sources)]
            tool.output(["gcc", *words, "-o", str(plugin)], Error)
        command = qemu_arguments.arguments(guest, boot, plugin, Firmware(folder))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        console = boot.console.read_bytes()
        assert done.returncode == 0, done.stderr[-2000:] + console[-2000:].decode(errors="replace")
        found = re.findall(r"^gate (\S+) ([0-9.]+)\r?$", console.decode(errors="replace"), re.MULTILINE)
        assert [call for call, _ in found] == list(calls) * times
        figures = defaultdict(list)
        for call, figure in found:
            figures[call].append(float(figure))
        return figures, console

    def _program(self) -> Path:
        program = self.folder / "gates"
        if not program.exists():
            words = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-I", str(MARKS), str(SOURCE)]
            tool.output([*words, "-o", str(program)], Error)
        return program


def machine(profile: str, topology: Topology, folder: Path) -> Machine:
    try:
        build_qemu.find_program(Path(os.environ["WQLAB_CACHE"]), "x86_64")
    except InstrumentUnsupported as error:
        pytest.skip(str(error))
    return Machine(load_data(ROOT).cost_profiles[profile], topology, folder)


def ns(profile: CostProfile, name: str) -> float:
    return profile.number(name) / 1000


FOUR_L3 = Topology(sockets=1, l3_per_socket=4, cores_per_l3=3, threads_per_core=1)
TWO_SOCKETS = Topology(sockets=2, l3_per_socket=1, cores_per_l3=8, threads_per_core=2, numa_nodes=2)


def test_cpus_run_in_parallel_and_lines_have_the_latency_of_the_profile(tmp_path: Path) -> None:
    lab = machine("ryzen-3900x", FOUR_L3, tmp_path)
    parallel = [f"spin:{threads}:0:1:{10 * BLOCKS}" for threads in (1, 2, 4, 8, 12)]
    twice, own = f"spin:24:0:1:{10 * BLOCKS}", [f"own:{threads}:0:1" for threads in (1, 2, 4, 8, 12)]
    near, far, four = "shared:2:0:1", "shared:2:0:3", "shared:4:0:3"
    copies = ["chase:256:4000", "chase:8192:40000", "chase:65536:100000"]
    # A window of 1 ms in which the kernel takes one of the CPUs for a while has other handovers: the median of several.
    handed_over = WINDOWS * [near, far, four]
    found, _ = lab.run(*parallel, twice, *own, *handed_over, *copies, "sleep:1000000", "idle:100000")
    figures = {call: median(each) for call, each in found.items()}
    spin_us = 10 * BLOCKS * ns(lab.profile, "simple")
    for call in parallel:
        assert figures[call] == pytest.approx(spin_us, rel=0.05), call
    assert figures[twice] == pytest.approx(2 * spin_us, rel=0.05)
    for call, threads in zip(own, (1, 2, 4, 8, 12), strict=True):
        assert figures[call] * threads == pytest.approx(figures[own[0]], rel=0.05), call
    assert figures[near] == pytest.approx(ns(lab.profile, "within_l3"), rel=0.05)
    assert figures[far] == pytest.approx(ns(lab.profile, "other_l3"), rel=0.05)
    assert figures[four] == pytest.approx(ns(lab.profile, "other_l3"), rel=0.05)
    loop = 5 * ns(lab.profile, "simple")
    for call, cost in zip(copies, ("l2_hit", "l3_hit", "dram"), strict=True):
        assert figures[call] == pytest.approx(ns(lab.profile, cost) + loop, rel=0.05), cost
    assert figures["sleep:1000000"] == pytest.approx(1_000_000, rel=0.001)
    assert figures["idle:100000"] < 100


def test_siblings_share_a_core_and_sockets_are_far(tmp_path: Path) -> None:
    lab = machine("xeon-2s", TWO_SOCKETS, tmp_path)
    # Siblings have neighbouring numbers, and CPU 16 is the first of the second socket.
    alone, siblings, cores = (f"spin:{call}:{10 * BLOCKS}" for call in ("1:0:0", "2:0:1", "2:0:2"))
    near, far, thread = "shared:2:0:2", "shared:2:0:16", "shared:2:0:1"
    found, _ = lab.run(alone, siblings, cores, *WINDOWS * [near, far, thread])
    figures = {call: median(each) for call, each in found.items()}
    assert figures[cores] == pytest.approx(figures[alone], rel=0.03)
    assert figures[siblings] / figures[alone] == pytest.approx(lab.profile.number("smt_percent") / 100, rel=0.05)
    assert figures[near] == pytest.approx(ns(lab.profile, "within_l3"), rel=0.05)
    assert figures[far] == pytest.approx(ns(lab.profile, "other_node"), rel=0.05)
    assert figures[thread] < figures[near]


LOCKS = ["ticket:1:0:1", "ticket:3:0:1", "ticket:4:0:3", "queued:1:0:1", "queued:3:0:1", "queued:4:0:3",
         "futex:3:0:1", "futex:4:0:3"]  # fmt: skip
SETTLED = ["ticket:1:0:1", "ticket:3:0:1", "ticket:4:0:3", "queued:1:0:1"]
TIMES = 30
WINDOWS = 5


def test_locks_are_slower_over_l3_domains_and_half_the_quantum_changes_little(tmp_path: Path) -> None:
    lab = machine("ryzen-3900x", FOUR_L3, tmp_path)
    figures = lab.means(LOCKS, "whole")
    for lock in ("ticket", "queued"):
        assert figures[f"{lock}:1:0:1"] < figures[f"{lock}:3:0:1"] < figures[f"{lock}:4:0:3"], lock
    # A handover of a fair lock moves at least one line.
    assert figures["queued:4:0:3"] >= ns(lab.profile, "other_l3")
    halved = lab.means(LOCKS, "halved", quantum_percent=50)
    assert {lock: halved[lock] for lock in SETTLED} == pytest.approx(
        {lock: figures[lock] for lock in SETTLED}, rel=0.03
    )
    # The others are handed over in one of several orders, which stays for a window, so that even a mean varies.
    assert halved == pytest.approx(figures, rel=0.15)


def test_half_the_quantum_changes_how_often_a_queued_lock_has_each_order_but_not_the_time_of_one(
    tmp_path: Path,
) -> None:
    lab, lock = machine("ryzen-3900x", FOUR_L3, tmp_path), "queued:3:0:1"
    whole, halved = (
        lab.run(lock, times=150, quantum_percent=percent, name=f"quantum-{percent}")[0][lock] for percent in (100, 50)
    )
    assert median(halved) == pytest.approx(median(whole), rel=0.03)
    # Each window has an order of its own, so a mean of 150 windows has a standard error of 0.7 %.
    assert mean(halved) == pytest.approx(mean(whole), rel=0.05)


@pytest.mark.parametrize(("cores_per_l3", "threads"), [(3, 1), (3, 2), (8, 1)])
def test_same_boot_twice_is_equal_byte_for_byte_also_without_shortcuts(
    tmp_path: Path, cores_per_l3: int, threads: int
) -> None:
    topology = Topology(sockets=1, l3_per_socket=4, cores_per_l3=cores_per_l3, threads_per_core=threads)
    lab = machine("ryzen-3900x", topology, tmp_path)
    calls = [f"spin:{2 * topology.cpus}:0:1:200", f"futex:{topology.cpus}:0:1", f"queued:{topology.cpus}:0:1"]
    _, first = lab.run(*calls, name="first")
    _, second = lab.run(*calls, name="second", shortcuts=False)
    assert first == second
    outputs = [(tmp_path / name / "output").read_bytes() for name in ("first", "second")]
    assert outputs[0] == outputs[1]
