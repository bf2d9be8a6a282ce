"""Script of plan nvme-tcp: target and connection, the module's parameter, the load, and its readings of traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Records

from .scripts import AWKS, call, plan, trace

NAME = "nvme-tcp"
UUID = "77716c61-6200-4e56-8d65-746370000001"
NQN = f"nqn.2014-08.org.nvmexpress:uuid:{UUID}"
TRACE = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
             fio-197     [001] d....   247.376070: workqueue_queue_work: work struct=00000000c1559fee function=nvme_tcp_io_work [nvme_tcp] workqueue=nvme_tcp_wq req_cpu=0 cpu=0
    kworker/0:1H-19      [000] .....   247.376090: workqueue_execute_start: work struct 00000000c1559fee: function nvme_tcp_io_work [nvme_tcp]
     kworker/0:1-18      [000] .....   247.376099: workqueue_execute_start: work struct 00000000c1550000: function vmstat_update
    kworker/0:1H-19      [000] d.s..   247.376190: workqueue_queue_work: work struct=00000000c15aaaaa function=nvmet_tcp_io_work [nvmet_tcp] workqueue=nvmet_tcp_wq req_cpu=0 cpu=0
    kworker/0:1H-19      [000] .....   247.376240: workqueue_execute_start: work struct 00000000c15aaaaa: function nvmet_tcp_io_work [nvmet_tcp]
    kworker/0:1H-19      [000] d.s..   247.376250: workqueue_queue_work: work struct=00000000c1559fee function=nvme_tcp_io_work [nvme_tcp] workqueue=nvme_tcp_wq req_cpu=8192 cpu=8192
    kworker/u8:3-77      [003] .....   247.377483: workqueue_execute_start: work struct 00000000c1559fee: function nvme_tcp_io_work [nvme_tcp]
    kworker/u8:3-77      [003] d....   247.377490: workqueue_queue_work: work struct=00000000c15bbbbb function=nvme_keep_alive_work [nvme_core] workqueue=nvme-wq req_cpu=8192 cpu=8192
    kworker/u8:2-76      [002] .....   247.377590: workqueue_execute_start: work struct 00000000c15bbbbb: function nvme_keep_alive_work [nvme_core]
    kworker/u8:3-77      [003] d.s..   247.377600: workqueue_queue_work: work struct=00000000c15aaaaa function=nvmet_tcp_io_work [nvmet_tcp] workqueue=nvmet_tcp_wq req_cpu=0 cpu=0
"""  # noqa: E501 - as the kernel prints them


def files(root: Path, content: dict[str, str]) -> str:
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    root.mkdir(exist_ok=True)
    return str(root)


# --- trace ---


@pytest.mark.parametrize("awk", AWKS)
def test_works_of_both_ends_are_told_apart(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE)
    found = call(NAME, f"AWK='{awk}'\nreduce_trace", tmp_path)
    assert sorted(found.frame("pairs host")) == ["0 3 1", "1 0 1"]
    assert found.frame("pairs target") == ["0 0 1"]
    assert sorted(found.frame("histogram host_queue_to_start_us")) == ["1230 1", "20 1"]
    assert found.frame("histogram target_queue_to_start_us") == ["50 1"]
    assert found.values == {"host_works_queued": 2, "host_works": 2, "target_works_queued": 2, "target_works": 1}


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("00000000c1559fee", "(____ptrval____)", "hides the work pointers"),
        ("nvme_tcp_io_work [nvme_tcp]", "0xffffffffc0001230", "does not name the functions"),
    ],
)
def test_trace_without_names_is_unsupported(tmp_path: Path, name: str, instead: str, reason: str) -> None:
    trace(tmp_path, TRACE.replace(name, instead))
    found = call(NAME, "reduce_trace", tmp_path)
    assert [metric for metric, _ in found.unsupported] == ["traced"]
    assert reason in found.unsupported[0][1]
    assert found.values == {}


def test_kernel_without_the_events_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "tracing/events").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "trace_start || record fact status $?", tmp_path, TRACE_KIB="64")
    assert found.unsupported == [("traced", "this kernel's workqueue_queue_work names no workqueue")]
    assert found.facts == {"status": "1"}


# --- the module's parameter ---

PARAMETER = "module/nvme_tcp/parameters/wq_unbound"
PER_CPU = "devices/virtual/workqueue/nvme_tcp_wq/per_cpu"


def load(folder: Path, setting: str, kernel: dict[str, str], meanwhile: str = ":") -> Records:
    """Load a module that makes these files in sysfs, then report the setting after `meanwhile`."""
    made = files(folder / "made", kernel)
    insmod = f'insmod() {{ record fact loaded "$*"; cp -r {made}/. "$SYS"; }}'
    command = f"{insmod}\ncd {folder}\n: >nvme_tcp.ko\nif load; then {meanwhile}; loaded_after; fi"
    return call(NAME, command, folder, SYS=files(folder / "sys", {}), SETTING_WQ_UNBOUND=setting)


def test_reference_is_the_module_without_the_parameter() -> None:
    assert plan(NAME).reference_setting == "wq_unbound=default"
    assert [axis.values for axis in plan(NAME).axes] == [["default", "N", "Y"]]


@pytest.mark.parametrize(("setting", "per_cpu"), [("N", "1"), ("Y", "0")])
def test_parameter_is_given_and_read_back(tmp_path: Path, setting: str, per_cpu: str) -> None:
    found = load(tmp_path, setting, {PARAMETER: setting, PER_CPU: per_cpu})
    assert found.facts["loaded"] == f"./nvme_tcp.ko wq_unbound={setting}"
    assert found.settings == found.settings_after == {"wq_unbound": setting}
    assert found.unsupported == []


@pytest.mark.parametrize(
    ("kernel", "by_default"),
    [
        ({PARAMETER: "N", PER_CPU: "1"}, "N, nvme_tcp_wq is per-CPU"),
        ({PARAMETER: "Y", PER_CPU: "0"}, "Y, nvme_tcp_wq is unbound"),
        ({}, "none"),
    ],
)
def test_default_is_whatever_the_kernel_does(tmp_path: Path, kernel: dict[str, str], by_default: str) -> None:
    found = load(tmp_path, "default", kernel)
    assert found.facts == {"loaded": "./nvme_tcp.ko", "wq_unbound by default": by_default}
    assert found.settings == found.settings_after == {"wq_unbound": "default"}


@pytest.mark.parametrize(("setting", "before"), [("default", "N"), ("N", "N")])
def test_parameter_that_changes_meanwhile_is_reported(tmp_path: Path, setting: str, before: str) -> None:
    found = load(tmp_path, setting, {PARAMETER: before, PER_CPU: "1"}, 'echo Y >"$PARAMETER"')
    assert (found.settings, found.settings_after) == ({"wq_unbound": setting}, {"wq_unbound": "Y"})


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ({PER_CPU: "1"}, "has no parameter wq_unbound"),
        ({PARAMETER: "N", PER_CPU: "1"}, "has wq_unbound=N when Y is requested"),
        ({PARAMETER: "Y", PER_CPU: "1"}, "has wq_unbound=Y, and its nvme_tcp_wq is per-CPU"),
    ],
)
def test_kernel_that_does_otherwise_is_unsupported(tmp_path: Path, kernel: dict[str, str], reason: str) -> None:
    found = load(tmp_path, "Y", kernel)
    [(metric, text)] = found.unsupported
    assert (metric, found.settings) == ("*", {})
    assert text.endswith(reason)


def test_module_that_is_built_in_has_its_default_only(tmp_path: Path) -> None:
    tree = files(tmp_path / "sys", {PARAMETER: "N"})
    found = call(NAME, "if load; then loaded_after; fi", tmp_path, SYS=tree, SETTING_WQ_UNBOUND="default")
    assert found.settings == found.settings_after == {"wq_unbound": "default"}
    found = call(NAME, "load || record fact status $?", tmp_path, SYS=tree, SETTING_WQ_UNBOUND="Y")
    assert found.facts == {"status": "1"}
    assert "nvme_tcp is built into kernel" in dict(found.unsupported)["*"]


# --- target and connection ---


def test_target_is_made_and_dropped(tmp_path: Path) -> None:
    """A folder takes the place of configfs; it has the folders that nvmet makes by itself."""
    target = tmp_path / "nvmet"
    (target / "ports/4420/subsystems").mkdir(parents=True)
    call(NAME, "make_target /dev/nullb7", tmp_path, TARGET=str(target))
    subsystem, port = target / "subsystems" / NQN, target / "ports/4420"
    written = {
        path.relative_to(target).parts[-1]: path.read_text().strip() for path in target.rglob("*_*") if path.is_file()
    }
    assert written == {
        "attr_allow_any_host": "1",
        "device_path": "/dev/nullb7",
        "device_uuid": UUID,
        "addr_adrfam": "ipv4",
        "addr_trtype": "tcp",
        "addr_traddr": "127.0.0.1",
        "addr_trsvcid": "4420",
    }
    assert (subsystem / "namespaces/1/enable").read_text() == "1\n"
    assert (port / "subsystems" / NQN).resolve() == subsystem
    disabled = '[ ! -e "$1/enable" ] || record fact disabled "$(cat "$1/enable")"'
    found = call(NAME, f'rmdir() {{ {disabled}; rm -r "$1"; }}\ndrop_target\ndrop_target', tmp_path, TARGET=str(target))
    assert found.facts == {"disabled": "0"}
    assert [path.name for path in target.rglob("*")] in (["ports", "subsystems"], ["subsystems", "ports"])


def test_refused_attribute_is_named(tmp_path: Path) -> None:
    target = tmp_path / "nvmet"
    (target / f"subsystems/{NQN}/namespaces/1/device_path").mkdir(parents=True)  # writing to a folder fails
    found = call(NAME, "(make_target /dev/nullb7) || :", tmp_path, TARGET=str(target))
    assert found.failure is not None
    assert found.failure.summary == f"nvmet refuses /dev/nullb7 for subsystems/{NQN}/namespaces/1/device_path"


HOST = {
    "class/nvme/nvme0/subsysnqn": "nqn.of.another.disk",
    "class/nvme/nvme1/subsysnqn": NQN,
    "class/nvme/nvme1/queue_count": "3",
    "class/nvme/nvme1/sqsize": "127",
    "class/nvme/nvme1/state": "live",
    "block/nvme0n1/uuid": "11111111-1111-1111-1111-111111111111",
    "block/nvme1c1n1/uuid": UUID,
    "block/nvme1n1/uuid": UUID,
}
"""A device with a disk of its own; its kernel has multipath, so that the path `nvme1c1n1` has no device node."""


def connected(tmp_path: Path, command: str, **environment: str) -> Records:
    tree = files(tmp_path / "sys", HOST)
    nodes = files(tmp_path / "dev", {"nvme0n1": "", "nvme1n1": ""})
    fabrics = str(tmp_path / "dev/nvme-fabrics")
    return call(NAME, command, tmp_path, **{"SYS": tree, "DEV": nodes, "FABRICS": fabrics, **environment})


def test_host_connects_and_finds_its_namespace(tmp_path: Path) -> None:
    found = connected(tmp_path, 'nproc() { echo 2; }\nconnect\nrecord fact disk "$remote"\ncheck_connection')
    assert found.facts["disk"] == f"{tmp_path}/dev/nvme1n1"
    assert found.facts["queues"] == "3, one of them for administration; sqsize 127"
    options = (tmp_path / "dev/nvme-fabrics").read_text().strip().split(",")
    assert options[:5] == ["transport=tcp", "traddr=127.0.0.1", "trsvcid=4420", f"nqn={NQN}", "nr_io_queues=2"]


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        ("connect", "the host does not connect to the target (transport=tcp,"),
        ("FABRICS=/dev/null UUID=0; sleep() { :; }; connect", "30 s after it connected, the host has no namespace"),
        ("controller=$SYS/gone; check_connection", "after the workload the connection is gone"),
    ],
)
def test_connection_that_fails_is_the_kernels_failure(tmp_path: Path, command: str, summary: str) -> None:
    found = connected(tmp_path, f"dmesg() {{ echo '[1.0] nvme nvme1: reset'; }}\n({command}) || :", FABRICS="/dev/full")
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.KERNEL
    assert found.failure.summary.startswith(summary)
    assert found.failure.summary.endswith("[1.0] nvme nvme1: reset")


MEASURE = """\
load_module() { :; }
rmmod() { record fact unloaded "$1"; rm -r "$SYS/module/nvme_tcp"; }
load() { mkdir -p "$SYS/module/nvme_tcp"; }
settle() { :; }
nproc() { echo 2; }
: >nvme_tcp.ko
echo "$DEV/null 8" >"$WORK/disk"
"""


@pytest.mark.parametrize(
    ("during", "status"),
    [
        (":", "0"),
        ("fail infrastructure 'fio wrote no result'", "1"),
        ("sh -c 'kill -TERM $PPID'", "1"),
    ],
)
def test_each_repetition_disconnects_and_unloads_however_it_ends(tmp_path: Path, during: str, status: str) -> None:
    ends = f"workload() {{ {during}; }}\nloaded_after() {{ :; }}\n(measure)\nrecord fact status $?"
    found = connected(
        tmp_path, f"cd {tmp_path}\n{MEASURE}{ends}", RW="randread", TOTAL_IOS="10", SETTING_WQ_UNBOUND="default"
    )
    assert (found.facts["unloaded"], found.facts["status"]) == ("nvme_tcp", status)
    assert (tmp_path / "sys/class/nvme/nvme1/delete_controller").read_text() == "1\n"
    assert not (tmp_path / "sys/class/nvme/nvme0/delete_controller").exists(), "the device's own disk"


def test_module_that_stays_is_the_kernels_failure(tmp_path: Path) -> None:
    busy = "rmmod() { echo \"can't unload module 'nvme_tcp': Resource temporarily unavailable\" >&2; return 1; }"
    command = f'cd {tmp_path}\n: >nvme_tcp.ko\nmkdir -p "$SYS/module/nvme_tcp"\n{busy}\n(clean_up) || :'
    found = connected(tmp_path, command)
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.KERNEL
    assert found.failure.summary.endswith("can't unload module 'nvme_tcp': Resource temporarily unavailable")


# --- load ---

DISK = {"class/block/nullb0/stat": "       1        0      100        0        2        0       50        0"}
MOVE = """\
disk=/dev/nullb0 remote=/dev/nvme1n1 DISK_MIB=8 JOBS=3 IODEPTH=16
run_fio() { record command "fio $*"; echo "4 0 %d 0 5 0 %d 0" >"$SYS/class/block/nullb0/stat"; }
"""


@pytest.mark.parametrize(
    ("way", "amount", "expected"),
    [
        ("randread", "600", "--verify=crc32c --number_ios=200"),
        ("randwrite", "600", "--verify=crc32c --do_verify=0 --number_ios=200"),
        ("randread", "9000", "--verify=crc32c --number_ios=682"),
        ("randread", "0", "--verify=crc32c --runtime=15 --time_based"),
    ],
)
@pytest.mark.parametrize("awk", AWKS)
def test_load_is_verified_and_counted_at_the_disk(
    tmp_path: Path, way: str, amount: str, expected: str, awk: str
) -> None:
    """8 MiB are 682 blocks for each of three jobs. The disk's counters are sectors of 512 bytes."""
    command = f"AWK='{awk}'\n{MOVE % (300, 90)}RUNTIME_S=15 RW={way}; workload {amount}"
    found = call(NAME, command, tmp_path, SYS=files(tmp_path / "sys", DISK))
    assert found.values == {"target_read_bytes": 200 * 512, "target_written_bytes": 40 * 512}
    assert found.command is not None
    assert found.command.endswith(f"--size=2728k --offset_increment=2728k --group_reporting {expected}")


def read_back(tmp_path: Path, fio: str) -> Records:
    return call(NAME, f"{fio}\nremote=/dev/nvme1n1 DISK_MIB=8; (read_back) || :", tmp_path)


@pytest.mark.parametrize("awk", AWKS)
def test_whole_namespace_is_read_back(tmp_path: Path, awk: str) -> None:
    result = '{ printf \'{ "jobs" : [ { "read" : {\\n  "io_bytes" : 8388608,\\n  "io_kbytes" : 8192\\n} } ] }\\n\'; }'
    found = read_back(tmp_path, f"AWK='{awk}'\nfio() {result} >\"$WORK/read-back\"")
    assert found.values == {"disk_bytes": 8388608, "read_back_bytes": 8388608}


@pytest.mark.parametrize(
    ("message", "error", "kind", "summary"),
    [
        (
            "verify: bad header offset 40960, wanted 20480 at file /dev/nvme1n1 offset 20480, length 4096",
            84,
            ErrorKind.KERNEL,
            "data that was written over NVMe/TCP is not what is read back: verify: bad header offset 40960,",
        ),
        (
            "crc32c: verify failed at file /dev/nvme1n1 offset 4997120, length 4096\n       Expected CRC: 4fc5a3f2",
            84,
            ErrorKind.KERNEL,
            "data that was written over NVMe/TCP is not what is read back: crc32c: verify failed at file /dev/nvme1n1",
        ),
        (
            "fio: io_u error on file /dev/nvme1n1: Input/output error",
            5,
            ErrorKind.INFRASTRUCTURE,
            "cannot read the namespace back: fio: io_u error on file /dev/nvme1n1: Input/output error",
        ),
    ],
)
def test_wrong_data_is_the_kernels_failure(
    tmp_path: Path, message: str, error: int, kind: ErrorKind, summary: str
) -> None:
    fio = f'fio() {{ echo \'      "error" : {error},\' >"$WORK/read-back"; echo "{message}" >&2; return 1; }}'
    found = read_back(tmp_path, fio)
    assert found.failure is not None
    assert found.failure.kind is kind
    assert found.failure.summary.startswith(summary)
    assert found.values == {}


def test_disk_is_scaled_to_memory(tmp_path: Path) -> None:
    command = 'memory_available_mib() { echo "$memory"; }\nmemory=3000; size_disk; record fact disk "$DISK_MIB$scaled"'
    found = call(NAME, command, tmp_path, DISK_MIB="2048", JOBS="4")
    assert found.facts["disk"] == "1500 (scaled to this device's memory; the plan asks for 2048 MiB)"
    found = call(NAME, command.replace("3000", "4096"), tmp_path, DISK_MIB="2048", JOBS="4")
    assert found.facts["disk"] == "2048"
    found = call(NAME, f"({command.replace('3000', '6')}) || :", tmp_path, DISK_MIB="2048", JOBS="4")
    assert "not enough memory: a disk of 3 MiB has no region" in dict(found.unsupported)["*"]
