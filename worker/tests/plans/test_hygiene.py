"""What each plan fixes before it measures: CPUs, nodes, page cache, and the CPU's own counters beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.measure.collect import Records

from .scripts import AWKS, NAMES, call, plan, script

XEON = {
    "devices/system/node/node0/cpulist": "0-1,4-5",
    "devices/system/node/node1/cpulist": "2-3,6-7",
    "devices/system/cpu/online": "0-7",
    **{f"devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 4},{n % 4 + 4}" for n in range(8)},
    **{f"devices/system/cpu/cpu{n}/cache/index3/shared_cpu_list": "0-1,4-5" for n in (0, 1, 4, 5)},
    **{f"devices/system/cpu/cpu{n}/cache/index3/shared_cpu_list": "2-3,6-7" for n in (2, 3, 6, 7)},
}
"""Two sockets of two cores with two threads; each socket is a node and has one L3."""
RYZEN = {
    "devices/system/node/node0/cpulist": "0-3",
    "devices/system/cpu/online": "0-3",
    **{f"devices/system/cpu/cpu{n}/topology/thread_siblings_list": str(n) for n in range(4)},
    **{f"devices/system/cpu/cpu{n}/cache/index3/shared_cpu_list": "0-1" if n < 2 else "2-3" for n in range(4)},
}
"""One node with two L3 caches of two cores."""
SINGLE = {"devices/system/cpu/online": "0"}
TWO_THREADS = {
    "devices/system/cpu/online": "0-1",
    **{f"devices/system/cpu/cpu{n}/topology/thread_siblings_list": "0-1" for n in range(2)},
    **{f"devices/system/cpu/cpu{n}/topology/package_cpus_list": "0-1" for n in range(2)},
}
OWN_CACHES = {
    "devices/system/cpu/online": "0-7",
    **{f"devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 4},{n % 4 + 4}" for n in range(8)},
    **{f"devices/system/cpu/cpu{n}/cache/index2/shared_cpu_list": f"{n % 4},{n % 4 + 4}" for n in range(8)},
}
"""Four cores with two threads; no core shares its last-level cache with another."""
ONE_PACKAGE = OWN_CACHES | {f"devices/system/cpu/cpu{n}/topology/package_cpus_list": "0-7" for n in range(8)}
FOUR_PACKAGES = OWN_CACHES | {
    f"devices/system/cpu/cpu{n}/topology/package_cpus_list": f"{n % 4},{n % 4 + 4}" for n in range(8)
}


def sysfs(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return str(folder / "sys")


@pytest.mark.parametrize(
    ("declared", "nodes"), [("spread", "0 1 0 1"), ("1", "1 1 1 1"), ("0", "0 0 0 0"), ("any", "")]
)
def test_memory_disks_are_placed_on_declared_nodes(tmp_path: Path, declared: str, nodes: str) -> None:
    command = 'record fact nodes "$(for i in 0 1 2 3; do disk_node $i; done | tr "\\n" " ")"'
    found = call("xfs-fsync", command, tmp_path, SYS=sysfs(tmp_path, XEON), DISK_NODES=declared)
    assert found.facts["nodes"] == nodes


def test_memory_disk_on_a_missing_node_is_unsupported(tmp_path: Path) -> None:
    command = "node=$(disk_node 0) || record fact status $?"
    found = call("xfs-fsync", command, tmp_path, SYS=sysfs(tmp_path, RYZEN), DISK_NODES="1")
    assert dict(found.unsupported)["*"] == "this device has no NUMA node 1 with CPUs for a memory disk"
    assert found.facts["status"] == "1"


def test_kernel_without_numa_has_node_0(tmp_path: Path) -> None:
    command = 'record fact node "$(disk_node 3) $(node_cpus 0)"'
    found = call("xfs-fsync", command, tmp_path, SYS=sysfs(tmp_path, SINGLE), DISK_NODES="spread")
    assert found.facts["node"] == "0 0"


@pytest.mark.parametrize(
    ("declared", "arguments"),
    [
        ("unbound", ""),
        ("all", "--cpus_allowed=0-7 --cpus_allowed_policy=shared"),
        ("node:1", "--cpus_allowed=2-3,6-7 --cpus_allowed_policy=shared"),
        ("0-1,4", "--cpus_allowed=0-1,4 --cpus_allowed_policy=shared"),
    ],
)
def test_fio_jobs_are_bound_to_declared_cpus(tmp_path: Path, declared: str, arguments: str) -> None:
    command = 'record fact arguments "$(job_cpus)"'
    found = call("xfs-fsync", command, tmp_path, SYS=sysfs(tmp_path, XEON), JOB_CPUS=declared)
    assert found.facts["arguments"] == arguments


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("xfs-fsync", "file_kib=1 jobs=1 mounts=1 BLOCK_KIB=4; (workload) || record fact status $?"),
        ("dm-crypt-affinity", "jobs=1 region_k=32 DEVICE=/dev/x VERIFY=crc32c; (workload 1) || record fact status $?"),
        ("xfs-fsync", "need() { :; }; (setup) || record fact status $?"),
        ("dm-crypt-affinity", "need() { :; }; (setup) || record fact status $?"),
    ],
)
def test_fio_does_not_run_on_other_cpus_than_declared(tmp_path: Path, name: str, command: str) -> None:
    command = f"run_fio() {{ record fact ran yes; }}\n{command}"
    found = call(name, command, tmp_path, SYS=sysfs(tmp_path, XEON), JOB_CPUS="node:7")
    assert dict(found.unsupported)["*"] == "this device has no CPUs for job_cpus=node:7"
    assert found.facts == {"status": "1"}


@pytest.mark.parametrize(
    ("files", "declared", "endpoints"),
    [
        (XEON, "unbound", "unbound ,"),
        (XEON, "same_l3", "same_l3 2,3"),
        (XEON, "other_node", "other_node 2,0"),
        (RYZEN, "same_l3", "same_l3 2,3"),
        (RYZEN, "other_l3", "other_l3 2,0"),
        (ONE_PACKAGE, "same_l3", "same package (no second core shares the last-level cache) 3,6"),
        (FOUR_PACKAGES, "same_l3", "any core (the package has no second one) 3,6"),
    ],
)
def test_endpoints_of_netperf_are_bound(tmp_path: Path, files: dict[str, str], declared: str, endpoints: str) -> None:
    command = 'find_endpoints\nrecord fact endpoints "$where $client,$server"'
    found = call("netperf-stream", command, tmp_path, SYS=sysfs(tmp_path, files), SETTING_ENDPOINTS=declared)
    assert found.facts["endpoints"] == endpoints


@pytest.mark.parametrize(
    ("files", "declared"),
    [
        *((XEON, "other_l3"), (RYZEN, "other_node"), (SINGLE, "other_l3")),
        *((SINGLE, "same_l3"), (TWO_THREADS, "same_l3")),
    ],
)
def test_endpoints_that_a_device_lacks_are_unsupported(tmp_path: Path, files: dict[str, str], declared: str) -> None:
    command = "choose_endpoints || record fact status $?"
    found = call("netperf-stream", command, tmp_path, SYS=sysfs(tmp_path, files), SETTING_ENDPOINTS=declared)
    assert dict(found.unsupported)["*"] == f"endpoints={declared}: this device has no second CPU there"
    assert (found.facts, found.settings) == ({"status": "1"}, {})


def test_netperf_runs_unbound_as_published_and_bound(tmp_path: Path) -> None:
    assert plan("netperf-stream").hardware.settings == ["", "endpoints=same_l3"]
    found = call("netperf-stream", "choose_endpoints", tmp_path, SYS=sysfs(tmp_path, XEON), SETTING_ENDPOINTS="unbound")
    assert (found.settings, found.settings_after, found.facts) == ({"endpoints": "unbound"},) * 2 + ({},)
    command = "check_endpoints() { :; }\nchoose_endpoints"
    found = call("netperf-stream", command, tmp_path, SYS=sysfs(tmp_path, XEON), SETTING_ENDPOINTS="same_l3")
    assert found.settings == found.settings_after == {"endpoints": "same_l3"}
    assert found.facts["endpoints"] == "same_l3: netperf on CPU 2, netserver on CPU 3, read back from both"


def test_page_cache_is_written_back_and_dropped(tmp_path: Path) -> None:
    """Write-back ends while the script waits for it."""
    (tmp_path / "vm").mkdir()
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemFree: 5 kB\nDirty:            4096 kB\nWriteback:       512 kB\n")
    written = f"printf 'Dirty: 8 kB\\n' >{meminfo}"
    command = f"sync() {{ record fact synced yes; }}\nsleep() {{ {written}; record fact waited $1; }}\nsettle"
    files = {"kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}
    vm = {"PROC_VM": str(tmp_path / "vm"), "MEMINFO": str(meminfo), "SYS": sysfs(tmp_path, files)}
    found = call("xfs-fsync", command, tmp_path, **vm)
    assert found.facts == {
        "synced": "yes",
        "waited": "0.5",
        "memory before each repetition": "page cache written back and dropped; transparent hugepages never, KSM not in"
        " this kernel",
    }
    assert (tmp_path / "vm/drop_caches").read_text() == "3\n"


def test_pages_that_stay_dirty_are_a_failure(tmp_path: Path) -> None:
    (tmp_path / "vm").mkdir()
    (tmp_path / "meminfo").write_text("Dirty: 4096 kB\n")
    command = "sync() { :; }\nsleep() { :; }\n(settle) || record fact status $?"
    found = call("xfs-fsync", command, tmp_path, PROC_VM=str(tmp_path / "vm"), MEMINFO=str(tmp_path / "meminfo"))
    assert found.failure is not None
    assert found.failure.summary == "4096 KiB are still dirty after 30 s of write-back"


def test_memory_that_changes_during_a_boot_is_a_failure(tmp_path: Path) -> None:
    """Something starts KSM between two repetitions."""
    (tmp_path / "vm").mkdir()
    (tmp_path / "meminfo").write_text("Dirty: 0 kB\n")
    tree = sysfs(tmp_path, {"kernel/mm/ksm/run": "0"})
    command = f"settle\nsettle\necho 1 >{tree}/kernel/mm/ksm/run\n(settle) || record fact status $?"
    found = call(
        "xfs-fsync", command, tmp_path, PROC_VM=str(tmp_path / "vm"), MEMINFO=str(tmp_path / "meminfo"), SYS=tree
    )
    assert found.facts["status"] == "1"
    assert found.failure is not None
    assert found.failure.kind == "infrastructure"
    assert "KSM 0, then transparent hugepages not in this kernel, KSM 1" in found.failure.summary


NODE = "Node {0} MemTotal: 2097152 kB\nNode {0} MemFree: {1} kB\nNode {0} MemUsed: {2} kB\n"


@pytest.mark.parametrize(
    ("grown", "failure"),
    [
        ((1, 64), None),
        ((20, 50), None),
        (
            (62, 2),
            "memory disk /dev/nullb0 of 64 MiB was to be on node 1, and its memory is elsewhere: 62 MiB on node 0,"
            " 2 MiB on node 1; is node 1 large enough?",
        ),
    ],
)
@pytest.mark.parametrize("awk", AWKS)
def test_a_disk_on_another_node_is_a_failure(
    tmp_path: Path, grown: tuple[int, int], failure: str | None, awk: str
) -> None:
    """The node's memory in use before the disk is written, and after."""
    meminfo = "devices/system/node/node{}/meminfo"
    tree = sysfs(tmp_path, {meminfo.format(n): NODE.format(n, 2000000, 97152) for n in (0, 1)})
    written = [
        f"printf '{NODE.format(n, 0, 97152 + mib * 1024)}' >{tree}/{meminfo.format(n)}".replace("\n", "\\n")
        for n, mib in enumerate(grown)
    ]
    commands = [f"AWK={awk!r}", "nodes_in_use >before", *written, "(check_node /dev/nullb0 1 64 before) || :"]
    found = call("xfs-fsync", "\n".join([f"cd {tmp_path}", *commands]), tmp_path, SYS=tree)
    assert (found.failure and found.failure.summary) == failure


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("0-1,4", None),
        ("0,1,4", None),
        ("0-7", "the binding was not obeyed: fio's jobs may run on CPU 0-7, and CPU 0-1,4 was declared"),
        ("", "the binding was not obeyed: fio's jobs may run on CPU none, and CPU 0-1,4 was declared"),
    ],
)
def test_jobs_that_are_not_bound_are_a_failure(tmp_path: Path, program: str, failure: str | None) -> None:
    """A fio whose job reports these CPUs."""
    answer = f'echo "Cpus_allowed_list: {program}" >"$WORK/bound"' if program else ': >"$WORK/bound"'
    command = f"fio() {{ {answer}; }}\n(check_jobs) || record fact status $?"
    found = call("xfs-fsync", command, tmp_path, SYS=sysfs(tmp_path, XEON), JOB_CPUS="0-1,4")
    assert (found.failure and found.failure.summary) == failure


@pytest.mark.parametrize("name", [name for name in NAMES if name != "health-check"])
def test_every_plan_settles_before_each_repetition(name: str) -> None:
    body = script(name).read_text()
    measure = body[body.index("\nmeasure() {") :]
    assert "\n\tsettle\n" in measure[: measure.index("\n}\n")]
    assert "window begin" in body or "run_fio" in body, "counted by the common functions"


# --- the CPU's own counters -------------------------------------------------------------------------------------------

WQCOUNT = """\
#!/bin/sh
trap 'printf "cycles\\t2000\\ninstructions\\t3000\\ncache_misses\\t6\\nbranch_misses\\t3\\n" >"$1"; exit 0' TERM
echo counting
while :; do sleep 0.05; done
"""
NONE = '#!/bin/sh\necho "no PMU" >&2\nexit 1\n'


def counted(folder: Path, program: str | None, command: str, **environment: str) -> Records:
    programs = folder / "bin"
    programs.mkdir()
    if program is not None:
        (programs / "wqcount").write_text(program)
        (programs / "wqcount").chmod(0o755)
    return call("xfs-fsync", command, folder, PATH=f"{programs}:/usr/bin:/bin", **environment)


def test_counters_of_a_repetition_are_recorded(tmp_path: Path) -> None:
    command = "window begin; window end; record fact after yes"
    found = counted(tmp_path, WQCOUNT, command, SCENARIO="fsync", SETTING_SCOPE="cache", SETTING_STRICT="0")
    assert found.values == {"cycles": 2000, "instructions": 3000, "cache_misses": 6, "branch_misses": 3}
    assert found.facts["counters fsync scope=cache strict=0"].startswith("1.50 instructions per cycle; ")
    assert "2.00 cache misses per 1000 instructions" in found.facts["counters fsync scope=cache strict=0"]
    assert found.facts["after"] == "yes"


@pytest.mark.parametrize(("program", "reason"), [(NONE, "no PMU"), (None, "this device has no program wqcount")])
def test_missing_counters_are_told_once(tmp_path: Path, program: str | None, reason: str) -> None:
    command = "window begin; window end; window begin; window end"
    found = counted(tmp_path, program, command)
    assert found.facts == {"hardware counters": f"not available: {reason}"}
    assert found.values == {}


def test_traced_repetition_is_not_counted(tmp_path: Path) -> None:
    found = counted(tmp_path, WQCOUNT, "window begin; window end", TRACE="1")
    assert (found.values, found.facts) == ({}, {})
