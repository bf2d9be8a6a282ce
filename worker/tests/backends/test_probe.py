from __future__ import annotations

import struct

import pytest

from wqlab_contracts.specs import Cluster, Topology
from wqlab_worker.backends import probe
from wqlab_worker.backends.session_messages import holder_name, is_session_of

CPU = "/sys/devices/system/cpu"
BUILD_ID = bytes.fromhex("ab26ade435122cf1cf86ef7f0504a16a785bc5b1")


def note(name: bytes, kind: int, content: bytes) -> bytes:
    padded = name + b"\0" * (-len(name) % 4)
    return struct.pack("<III", len(name), len(content), kind) + padded + content + b"\0" * (-len(content) % 4)


NOTES = note(b"Xen\0", 6, b"linux") + note(b"Linux\0", 257, b"\x01") + note(b"GNU\0", 3, BUILD_ID)


def sysfs(cpus: int, sockets: int, l3: int, threads: int, numbering: str = "contiguous") -> dict[str, str]:
    """sysfs files of a machine, with CPUs numbered as by the kernel."""
    files = {f"{CPU}/online": f"0-{cpus - 1}"}
    cores = cpus // threads
    for cpu in range(cpus):
        core = cpu % cores if numbering == "smt_last" else cpu // threads
        siblings = [core, core + cores] if numbering == "smt_last" else [core * threads + t for t in range(threads)]
        of_l3 = core * l3 * sockets // cores
        of_socket = core * sockets // cores
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = ",".join(map(str, siblings))
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = str(of_socket)
        files[f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list"] = f"l3 of group {of_l3}"
    for node in range(sockets):
        members = [
            c
            for c in range(cpus)
            if (c % cores if numbering == "smt_last" else c // threads) * sockets // cores == node
        ]
        files[f"/sys/devices/system/node/node{node}/cpulist"] = ",".join(map(str, members))
    return files


def answer(files: dict[str, str]) -> bytes:
    known = {
        "/proc/cmdline": "console=ttyS0 mitigations=off wqlab.token=ab",
        "/proc/sys/kernel/random/boot_id": "2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1",
        "/proc/sys/kernel/osrelease": "6.12.117",
        "/sys/kernel/debug/sched/preempt": "none (voluntary) full",
        **files,
    }
    lines = [f"{name}:{text}" for name, text in known.items()]
    lines += ["CONFIG_HZ=250", "CONFIG_PREEMPT_VOLUNTARY=y"]
    lines += 2 * ["model name\t: Intel Xeon Processor (Skylake)"]
    return "\n".join(lines).encode() + b"\n==notes==\n" + NOTES


def test_all_record_types_are_read() -> None:
    seen = probe.parse(answer(sysfs(4, 1, 1, 2)))
    assert seen.boot_id == "2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1"
    assert (seen.release, seen.build_id_gnu) == ("6.12.117", BUILD_ID.hex())
    assert seen.topology.core == [0, 0, 1, 1]
    assert seen.environment["HZ"] == "250"
    assert seen.environment["preemption"] == "voluntary (dynamic)"
    assert seen.environment["mitigations"] == "off (command line)"
    assert seen.environment["cpu model"] == "Intel Xeon Processor (Skylake)"


def test_tunables_are_facts() -> None:
    """A series may change their defaults."""
    files = {
        "/proc/sys/vm/dirty_ratio": "20",
        "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps": "65536",
        "/sys/module/workqueue/parameters/power_efficient": "N",
        "/sys/module/workqueue/parameters/default_affinity_scope": "numa",
        "/sys/devices/virtual/workqueue/cpumask": "f",
        "/sys/devices/virtual/workqueue/cpumask_isolated": "",
        "/sys/kernel/debug/sched/features": "PLACE_LAG NO_HRTICK",
        "/sys/kernel/debug/sched/base_slice_ns": "3000000",
    }
    seen = probe.parse(answer({**sysfs(2, 1, 1, 1), **files})).environment
    assert {name: value for name, value in seen.items() if name.startswith(("sysctl", "workqueue", "scheduler"))} == {
        "sysctl vm.dirty_ratio": "20",
        "sysctl kernel.numa_balancing_promote_rate_limit_MBps": "65536",
        "workqueue parameter power_efficient": "N",
        "workqueue cpumask": "f",
        "scheduler features": "PLACE_LAG NO_HRTICK",
        "scheduler base_slice_ns": "3000000",
    }
    assert seen["default affinity scope"] == "numa"
    assert seen["preemption"] == "voluntary (dynamic)"


@pytest.mark.parametrize("cut", [0, 100, -1])
def test_truncated_probe_output_is_refused(cut: int) -> None:
    whole = answer(sysfs(2, 1, 1, 1))
    with pytest.raises(probe.ProbeError):
        probe.parse(whole[:cut] if cut >= 0 else whole[: whole.index(b"==notes==")])


def test_notes_without_a_build_id_are_refused() -> None:
    with pytest.raises(probe.ProbeError):
        probe.gnu_build_id(note(b"Linux\0", 257, b"\x01"))
    with pytest.raises(probe.ProbeError):
        probe.gnu_build_id(NOTES[:-30])


def test_cpu_list_is_expanded() -> None:
    assert probe.cpu_list("0-2,8,10-11") == [0, 1, 2, 8, 10, 11]
    assert probe.cpu_list("") == []


def declared(sockets: int, l3: int, cores: int, threads: int, numbering: str = "contiguous") -> Topology:
    return Topology(
        sockets=sockets,
        l3_per_socket=l3,
        cores_per_l3=cores,
        threads_per_core=threads,
        numa_nodes=sockets,
        numbering=numbering,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("cpus", "sockets", "l3", "threads", "numbering"),
    [(24, 1, 4, 2, "contiguous"), (32, 2, 1, 2, "contiguous"), (32, 2, 1, 2, "smt_last"), (2, 1, 1, 1, "contiguous")],
)
def test_emulated_topology_matches_its_declaration(
    cpus: int, sockets: int, l3: int, threads: int, numbering: str
) -> None:
    measured = probe.topology(sysfs(cpus, sockets, l3, threads, numbering))
    cores = cpus // (sockets * l3 * threads)
    assert probe.topology_differences(measured, declared(sockets, l3, cores, threads, numbering)) == []


def without_siblings(files: dict[str, str], threads: int = 2) -> dict[str, str]:
    """The same machine under nosmt: the sibling threads are offline and have no topology files."""
    cpus = range(0, sum(name.endswith("core_cpus_list") for name in files), threads)
    kept = {
        name: text
        for name, text in files.items()
        if not name.startswith(f"{CPU}/cpu") or any(name.startswith(f"{CPU}/cpu{cpu}/") for cpu in cpus)
    }
    kept |= {f"{CPU}/cpu{cpu}/topology/core_cpus_list": str(cpu) for cpu in cpus}
    return kept | {f"{CPU}/online": ",".join(map(str, cpus)), f"{CPU}/smt/control": "off"}


def test_under_nosmt_cpus_keep_their_numbers_and_the_declared_cores() -> None:
    measured = probe.topology(without_siblings(sysfs(16, 2, 2, 2)))
    assert measured.online == measured.numbers == [0, 2, 4, 6, 8, 10, 12, 14]
    assert (measured.cpus, measured.l3, measured.node) == (8, [0, 0, 1, 1, 2, 2, 3, 3], [0] * 4 + [1] * 4)
    assert probe.topology_differences(measured, declared(2, 2, 2, 1)) == []
    assert probe.topology_differences(measured, declared(2, 2, 2, 2)) == ["8 CPUs, declared 16"]


def test_contiguous_cpu_numbers_are_not_reported() -> None:
    measured = probe.topology(sysfs(4, 1, 1, 2))
    assert measured.online is None
    assert list(measured.numbers) == [0, 1, 2, 3]


def test_a_sibling_is_named_by_its_number() -> None:
    files = sysfs(8, 1, 1, 2)
    for cpu in (2, 3):
        files = {name: text for name, text in files.items() if not name.startswith(f"{CPU}/cpu{cpu}/")}
    files[f"{CPU}/online"] = "0-1,4-7"
    assert probe.topology_differences(probe.topology(files), declared(1, 1, 3, 2)) == []
    for cpu, siblings in ((0, "0,7"), (7, "0,7"), (1, "1,6"), (6, "1,6")):
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = siblings
    [difference] = probe.topology_differences(probe.topology(files), declared(1, 1, 3, 2))
    assert difference.startswith("CPU 0's sibling is CPU 7,")


def test_every_difference_is_named() -> None:
    measured = probe.topology(sysfs(24, 1, 4, 2))
    assert probe.topology_differences(measured, declared(1, 2, 6, 2)) == ["4 L3 domains, declared 2"]
    assert probe.topology_differences(measured, declared(1, 4, 4, 2))[0] == "24 CPUs, declared 32"
    other = probe.topology_differences(measured, declared(1, 4, 3, 2, "smt_last"))
    assert other == ["CPU 0's sibling is CPU 1, declared numbering is smt_last"]


def test_cluster_or_package_replaces_a_missing_l3() -> None:
    files = {name: text for name, text in sysfs(4, 1, 1, 1).items() if "index3" not in name}
    assert probe.topology(files).l3 == [0, 0, 0, 0]
    for cpu in range(4):
        files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = "0-1" if cpu < 2 else "2-3"
    assert probe.topology(files).l3 == [0, 0, 1, 1]


def arm64(clusters: list[str], cache: str = "") -> dict[str, str]:
    """sysfs files of a device whose only cache is `cache`, with the given clusters."""
    files = {f"{CPU}/online": f"0-{len(clusters) - 1}"}
    for cpu, cluster in enumerate(clusters):
        files[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = str(cpu)
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = "0"
        files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = cluster
        if cache:
            files[f"{CPU}/cpu{cpu}/cache/{cache}/shared_cpu_list"] = str(cpu // 2)
    return files


def test_cluster_of_one_core_is_not_a_domain() -> None:
    """Cluster id -1: the kernel reports each CPU as its own cluster; the package is one domain."""
    measured = probe.topology(arm64(["0", "1", "2", "3"]))
    assert (measured.l3, measured.last_level, measured.cluster) == ([0, 0, 0, 0], "package", None)
    assert probe.topology_differences(measured, declared(1, 1, 4, 1)) == []
    smt = {**arm64(["0-1", "0-1", "2-3", "2-3"])}
    for cpu in range(4):
        smt[f"{CPU}/cpu{cpu}/topology/core_cpus_list"] = smt[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"]
    assert probe.topology(smt).l3 == [0, 0, 0, 0]
    big_alone = probe.topology(arm64(["0-2", "0-2", "0-2", "3"]))
    assert (big_alone.l3, big_alone.last_level) == ([0, 0, 0, 1], "cluster"), (
        "a single core is a cluster if other clusters have several cores"
    )


@pytest.mark.parametrize(
    ("files", "difference"),
    [
        (arm64(["0-1", "0-1", "2-3", "2-3"]), "2 cluster domains, declared 1 L3 domains"),
        (arm64(["0", "1", "2", "3"], "index2"), "2 L2 domains, declared 1 L3 domains"),
        (arm64(["0", "1", "2", "3"], "index3"), "2 L3 domains, declared 1"),
    ],
)
def test_difference_names_the_measured_cache_level(files: dict[str, str], difference: str) -> None:
    assert probe.topology_differences(probe.topology(files), declared(1, 1, 4, 1)) == [difference]


def test_domain_sizes_are_described_for_the_measured_level() -> None:
    measured = probe.topology(arm64(["0-2", "0-2", "0-2", "3"]))
    two = Topology(sockets=1, l3_per_socket=0, threads_per_core=1, clusters=[Cluster(cores=2, capacity=1024)] * 2)
    assert probe.topology_differences(measured, two) == ["cluster domains of 3 1 CPUs, declared 2x2"]


def test_session_holders_are_recognized_by_name() -> None:
    name = holder_name("local", 12, 3)
    assert name.count("/") == 1
    assert is_session_of("local", name)
    assert not is_session_of("other", name)
    assert not is_session_of("loc", name)
    for person in ("host/anna", "host/run-12", "wqlab:local:h:reaper/4"):
        assert not is_session_of("local", person)


@pytest.mark.parametrize(
    "text", ["0-8192", "8192", "0-4294967295", "x", "-1", "0-", "3-1", "0-3,2", "1e3", "\u0661", "0-3 4", "9" * 5000]
)
def test_invalid_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(probe.ProbeError, match="list of CPUs"):
        probe.cpu_list(text)
    with pytest.raises(probe.ProbeError):
        probe.parse(answer({**sysfs(4, 1, 1, 1), f"{CPU}/online": text}))


def test_largest_cpu_list_is_expanded() -> None:
    assert probe.cpu_list("0-8191\n") == list(range(8192))
    assert probe.cpu_list(" 0-1,8 ") == [0, 1, 8]
    assert probe.cpu_list("") == []


def test_control_characters_of_a_probe_are_not_kept() -> None:
    seen = probe.parse(answer({**sysfs(4, 1, 1, 1), "/proc/sys/kernel/osrelease": "6.12\0\x1b[2J\x85"}))
    assert seen.release == "6.12\ufffd\ufffd[2J\ufffd"


def test_endless_probe_output_is_refused() -> None:
    with pytest.raises(probe.ProbeError, match="bytes long"):
        probe.parse(b"x" * (probe.ANSWER_LIMIT + 1))


def test_clusters_are_reported_if_neither_cores_nor_l3_domains() -> None:
    files = sysfs(8, 1, 1, 1)
    assert probe.topology(files).cluster is None, "the kernel reports no cluster"
    for cpu in range(8):
        files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = "0-3" if cpu < 4 else "4-7"
    assert probe.topology(files).cluster == [0, 0, 0, 0, 1, 1, 1, 1]
    for cpu in range(8):
        del files[f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list"]
    without_l3 = probe.topology(files)
    assert without_l3.l3 == [0, 0, 0, 0, 1, 1, 1, 1], "a cluster takes the place of the L3 domain"
    assert without_l3.cluster is None
    smt = sysfs(4, 1, 1, 2)
    for cpu in range(4):
        smt[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = "0-1" if cpu < 2 else "2-3"
    assert probe.topology(smt).cluster is None, "an L2 cache of one core"


def test_capacities_are_reported_if_every_cpu_has_one() -> None:
    files = sysfs(4, 1, 1, 1)
    assert probe.topology(files).capacity is None
    for cpu, capacity in enumerate((446, 446, 1024, 1024)):
        files[f"{CPU}/cpu{cpu}/cpu_capacity"] = str(capacity)
    assert probe.parse(answer(files)).topology.capacity == [446, 446, 1024, 1024]
    files[f"{CPU}/cpu3/cpu_capacity"] = "much"
    assert probe.topology(files).capacity is None


CHROMEBOOK = Topology(
    sockets=1,
    l3_per_socket=0,
    threads_per_core=1,
    clusters=[Cluster(cores=2, capacity=400), Cluster(cores=1, capacity=1024)],
)


def chromebook(capacities: list[int]) -> dict[str, str]:
    """Two LITTLE cores and a big one, each kind with an L2 cache of its own."""
    files = {f"{CPU}/online": "0-2"}
    for cpu, capacity in enumerate(capacities):
        files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"] = "2" if cpu == 2 else "0-1"
        files[f"{CPU}/cpu{cpu}/cache/index2/shared_cpu_list"] = "2" if cpu == 2 else "0-1"
        files[f"{CPU}/cpu{cpu}/cpu_capacity"] = str(capacity)
    return files


def test_big_little_is_verified_by_order_not_by_number() -> None:
    """The clock speeds of a real device scale its capacities."""
    for capacities in ([400, 400, 1024], [371, 368, 1024]):
        measured = probe.topology(chromebook(capacities))
        assert measured.last_level == "L2"
        assert probe.topology_differences(measured, CHROMEBOOK) == []


@pytest.mark.parametrize(("packages", "found"), [("001", []), ("000", []), ("011", ["2 packages, declared 1"])])
def test_clusters_reported_as_packages_are_accepted(packages: str, found: list[str]) -> None:
    """arm64 kernels before 6.0 do so."""
    files = chromebook([400, 400, 1024])
    for cpu, package in enumerate(packages):
        del files[f"{CPU}/cpu{cpu}/topology/cluster_cpus_list"]
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = package
    assert probe.topology_differences(probe.topology(files), CHROMEBOOK) == found


def test_capacity_differences_are_described() -> None:
    for capacities in ([1024, 1024, 1024], [1024, 1024, 400], [400, 1024, 1024]):
        [difference] = probe.topology_differences(probe.topology(chromebook(capacities)), CHROMEBOOK)
        assert difference.startswith("cpu_capacity ") and difference.endswith("declared 2x400 1024")
    silent = chromebook([400, 400, 1024])
    del silent[f"{CPU}/cpu1/cpu_capacity"]
    assert probe.topology_differences(probe.topology(silent), CHROMEBOOK) == [
        "the kernel reports no cpu_capacity, but CPUs of different capacity are declared"
    ]
