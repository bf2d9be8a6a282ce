"""The plans and their scripts: what they promise, and the reduction that happens on the board."""

from __future__ import annotations

import functools
import importlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from wqlab_contracts.enums import DeviceStep, StepOutcome, TraceMode
from wqlab_contracts.specs import Profile, TestPlan
from wqlab_contracts.yamlfile import Document
from wqlab_worker.collect import Records, read_records
from wqlab_worker.parsers.histogram import read_histogram
from wqlab_worker.parsers.pairs import read_pairs

PLANS = Path(__file__).parents[3] / "testplans"
NAMES = [
    "aio-migration",
    "cmwq-load",
    "dm-crypt-affinity",
    "fan-out",
    "health-check",
    "netperf-stream",
    "test-workqueue",
    "xfs-fsync",
]
SHELL = shutil.which("dash") or "/bin/sh"
AWKS = ["/usr/bin/mawk", "busybox awk"]


@functools.cache
def plan(name: str) -> TestPlan:
    document = Document.read(PLANS / name / "plan.yaml", name)
    found = document.validate_as(TestPlan)
    assert found is not None, document.problems
    return found


def script(name: str) -> Path:
    return PLANS / (plan(name).files_of or name) / plan(name).script


@pytest.mark.parametrize("name", NAMES)
def test_the_parser_gives_the_metrics_of_the_plan(name: str) -> None:
    module = importlib.import_module(f"wqlab_worker.parsers.{plan(name).parser}")
    for mode, names in ((TraceMode.TRACED, module.TRACED), (TraceMode.UNTRACED, module.UNTRACED)):
        assert [m.name for m in plan(name).metrics if m.taken_from is mode] == [
            n for n in (m.name for m in plan(name).metrics) if n in names
        ]
        assert {m.name for m in plan(name).metrics if m.taken_from is mode} == set(names)


@pytest.mark.parametrize("name", NAMES)
def test_both_profiles_give_the_script_the_same_parameters(name: str) -> None:
    assert plan(name).hardware.parameters.keys() == plan(name).emulated.parameters.keys()


def test_plans_without_a_workqueue_series_are_those_that_the_documentation_names() -> None:
    def watched(profile: Profile) -> bool:
        return bool(profile.repetitions.warmup or profile.repetitions.traced)

    measured = [name for name in NAMES if name != "health-check"]
    assert all(watched(plan(name).hardware) for name in measured)
    without = [name for name in measured if not watched(plan(name).emulated)]
    assert f"{' and '.join(without)} have none" in " ".join((PLANS.parent / "docs/plans.md").read_text().split())


@pytest.mark.parametrize("name", NAMES)
def test_the_script_is_posix_shell(name: str) -> None:
    subprocess.run([SHELL, "-n", script(name)], check=True)


def test_dm_crypt_can_select_every_scope_with_and_without_strictness() -> None:
    axes = {axis.name: axis.values for axis in plan("dm-crypt-affinity").axes}
    assert axes == {
        "scope": ["cpu", "smt", "cache", "cache_shard", "numa", "system"],
        "strict": ["0", "1"],
        "local": ["0", "1"],
    }
    assert plan("dm-crypt-affinity").knobs("scope=cache,strict=1") == {"scope": "cache", "strict": "1", "local": "0"}


def test_hardware_measures_the_five_published_configurations_and_emulated_boards_those_that_kernels_have() -> None:
    chosen = plan("dm-crypt-affinity")
    published = {reference.setting for reference in chosen.references}
    assert set(chosen.hardware.settings) == published
    assert len(published) == 5
    assert (chosen.hardware.parameters["runtime_s"], chosen.hardware.repetitions.untraced) == (60, 5)
    assert {chosen.knobs(setting)["local"] for setting in chosen.emulated.settings} == {"0"}


def test_the_xfs_study_is_whole_on_hardware() -> None:
    hardware = plan("xfs-fsync").hardware
    assert [hardware.parameters[name] for name in ("jobs", "mounts", "file_kib")] == [64, 4, 128 << 10]
    assert hardware.repetitions.untraced == 5


def test_published_figures_are_those_of_the_study() -> None:
    found = {(r.scenario, r.setting, r.metric): (r.mean, r.stddev) for r in plan("dm-crypt-affinity").references}
    assert found["LOW", "scope=cache,strict=1", "bandwidth"] == (828.20, 4.49)
    assert found["MED", "scope=cache,strict=0", "cpu_utilisation"] == (96.15, 0.09)
    assert found["LOW", "local=1,scope=system,strict=0", "bandwidth"] == (884.20, 18.39)
    assert len(found) == 3 * 5 * 2


# --- functions of the scripts, without a board ------------------------------------------------------------------------


def call(name: str, command: str, tmp_path: Path, **environment: str) -> Records:
    """Runs `command` with the functions of a plan's script; the tracer is a folder with recorded text."""
    folder = tmp_path / "plan"
    folder.mkdir(exist_ok=True)
    shutil.copy(PLANS / "common" / "board.sh", folder)
    body, dispatch = script(name).read_text().split("\ncase ${1:-} in\n")
    assert "setup|measure|teardown" in dispatch
    (folder / "functions.sh").write_text(f"{body}\n{command}\n")
    result = subprocess.run(
        [SHELL, folder / "functions.sh"],
        env={
            "PATH": "/usr/sbin:/usr/bin:/bin",
            "TRACING": str(tmp_path / "tracing"),
            "WORK": str(tmp_path / "work"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return read_records(result.stdout)


@pytest.mark.parametrize(
    ("cpus", "fraction", "jobs"),
    [(24, "1/1", 24), (24, "1/3", 8), (24, "1/6", 4), (64, "1/3", 21), (2, "1/1", 2), (2, "1/3", 1), (2, "1/6", 1)],
)
def test_issuers(tmp_path: Path, cpus: int, fraction: str, jobs: int) -> None:
    command = f"nproc() {{ echo {cpus}; }}\nrecord value issuers $(issuers)"
    assert call("dm-crypt-affinity", command, tmp_path, ISSUERS_PER_CPU=fraction).values == {"issuers": jobs}


@pytest.mark.parametrize(
    ("cpus", "issuers"),
    [(24, [1, 3, 8, 24, 48, 96]), (8, [1, 2, 4, 8, 16, 32]), (64, [1, 4, 16, 64, 128, 256]), (2, [1, 1, 2, 2, 4, 8])],
)
def test_the_fan_out_goes_from_one_issuer_to_four_for_each_cpu(tmp_path: Path, cpus: int, issuers: list[int]) -> None:
    command = f"nproc() {{ echo {cpus}; }}\nrecord value issuers $(issuers)"
    found = []
    for scenario in plan("fan-out").scenarios:
        environment = {name.upper(): str(value) for name, value in scenario.parameters.items()}
        found.append(call("fan-out", command, tmp_path, **environment).values["issuers"])
    assert found == issuers


def test_points_of_the_fan_out_have_a_place_on_kernels_that_cannot_be_traced() -> None:
    chosen = plan("fan-out")
    assert chosen.curve is not None
    assert chosen.metric(chosen.curve.over).taken_from is TraceMode.UNTRACED


@pytest.mark.parametrize("name", [name for name in NAMES if name != "health-check"])
def test_a_missing_program_is_named_and_fails_nothing(tmp_path: Path, name: str) -> None:
    found = call(name, "(need sh no-such-program) || record fact status $?", tmp_path)
    assert found.unsupported == [("*", "this board has no program no-such-program")]
    assert (found.failure, found.facts) == (None, {"status": "1"})


def test_a_board_without_a_program_is_not_fit(tmp_path: Path) -> None:
    found = call("health-check", "(need no-such-program) || :", tmp_path)
    assert found.failure and "no-such-program" in found.failure.summary


def cpus_in(folder: Path, control: str, online: dict[int, bool]) -> None:
    """What sysfs says of CPUs: one that is offline has no topology, and CPU 0 no switch."""
    root = folder / "devices/system/cpu"
    for cpu, on in online.items():
        (root / f"cpu{cpu}").mkdir(parents=True)
        if cpu:
            (root / f"cpu{cpu}/online").write_text(f"{int(on)}\n")
        if on:
            (root / f"cpu{cpu}/topology").mkdir()
            for name in ("core_id", "physical_package_id", "thread_siblings_list"):
                (root / f"cpu{cpu}/topology/{name}").write_text("0\n")
    (root / "present").write_text(f"0-{max(online)}\n")
    on = [cpu for cpu in online if online[cpu]]
    (root / "online").write_text((f"0-{max(online)}" if len(on) == len(online) else ",".join(map(str, on))) + "\n")
    (root / "smt").mkdir()
    (root / "smt/control").write_text(f"{control}\n")


NOSMT = {0: True, 1: False, 2: True, 3: False}


@pytest.mark.parametrize("control", ["off", "forceoff"])
def test_siblings_that_nosmt_leaves_offline_are_no_fault(tmp_path: Path, control: str) -> None:
    cpus_in(tmp_path, control, NOSMT)
    found = call("health-check", "check_topology", tmp_path, SYS=str(tmp_path))
    assert found.failure is None
    assert found.steps[DeviceStep.TOPOLOGY] == (
        StepOutcome.OK,
        "SMT is off, so of CPUs 0-3 only 0,2 are online: each reports its core, package and siblings",
    )


@pytest.mark.parametrize("control", ["on", "notsupported", "notimplemented"])
def test_a_cpu_that_is_offline_for_another_reason_is_a_fault(tmp_path: Path, control: str) -> None:
    cpus_in(tmp_path, control, NOSMT)
    found = call("health-check", "(check_topology) || :", tmp_path, SYS=str(tmp_path))
    assert found.failure and found.failure.summary == "CPUs 0-3 are present, only 0,2 online"


@pytest.mark.parametrize(("control", "online"), [("off", NOSMT), ("on", dict.fromkeys(range(3), True))])
@pytest.mark.parametrize("cpu", [0, 2])
def test_each_online_cpu_reports_its_topology(tmp_path: Path, control: str, online: dict[int, bool], cpu: int) -> None:
    cpus_in(tmp_path, control, online)
    (tmp_path / f"devices/system/cpu/cpu{cpu}/topology/core_id").unlink()
    found = call("health-check", "(check_topology) || :", tmp_path, SYS=str(tmp_path))
    assert found.failure and found.failure.summary == f"cpu{cpu} reports no topology/core_id"


def test_localization_is_unsupported_where_no_kernel_has_it_and_read_back_where_one_has(tmp_path: Path) -> None:
    folder = tmp_path / "kcryptd"
    folder.mkdir()
    command = f"localize {folder} || record fact left yes"
    assert call("dm-crypt-affinity", command, tmp_path).unsupported == []
    found = call("dm-crypt-affinity", command, tmp_path, SETTING_LOCAL="1")
    assert dict(found.unsupported)["*"].startswith("localization was never merged: kernel ")
    assert found.facts == {"left": "yes"}
    (folder / "localize").write_text("0\n")
    for value in ("1", "0"):
        found = call("dm-crypt-affinity", command, tmp_path, SETTING_LOCAL=value)
        assert (found.settings, found.unsupported) == ({"local": value}, [])


def workers(folder: Path, *lists: str, name: str = "kworker/u98:{}-kcryptd-253:0-1") -> None:
    for cpus in lists:
        pid = len(list(folder.iterdir())) + 1
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "status").write_text(
            f"Name:\t{name.format(pid)}\nState:\tI (idle)\nCpus_allowed:\tffffff\nCpus_allowed_list:\t{cpus}\n"
        )


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(
    ("lists", "pods"),
    [
        (["18-23", "0-5", "12-17", "6-11", "0-5"], "0-5 6-11 12-17 18-23"),
        (["0-23", "0-5", "0-23", "6-11", "12-17", "18-23"], "0-5 6-11 12-17 18-23"),
        (["0-23", "12-17"], "12-17"),
        (["0-23", "0-23"], "0-23"),
        (["0-23", "0,12", "11,23", "1,13"], "0,12 1,13 11,23"),
        (["0-3,8-11", "4-7,12-15", "0-15"], "0-3,8-11 4-7,12-15"),
        (["0-7", "3", "2"], "2 3"),
        ([], ""),
    ],
)
def test_pods_are_those_of_the_strict_scope_and_of_no_former_one(
    tmp_path: Path, awk: str, lists: list[str], pods: str
) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    workers(proc, *lists)
    workers(proc, "0", name="kworker/u97:{}-events_unbound")
    workers(proc, "0", name="kworker/R-kcryptd-253:0-1")
    workers(proc, "0", name="kworker/u97:{}-kcryptd_io-253:0-1")
    found = call("dm-crypt-affinity", f"AWK='{awk}'\nrecord fact pods \"$(pods)\"", tmp_path, PROC=str(proc))
    assert found.facts == {"pods": pods}


def test_a_kernel_that_does_not_show_kcryptd_in_sysfs_has_no_scope_to_choose(tmp_path: Path) -> None:
    """6.1, for one."""
    device = next(path for path in Path("/dev").iterdir() if path.is_block_device())
    command = f"DEVICE={device}\nknob_folder() {{ return 1; }}\nmeasure"
    found = call("dm-crypt-affinity", command, tmp_path)
    assert dict(found.unsupported)["*"].endswith("has no affinity_scope for kcryptd: that workqueue is not in sysfs")
    assert found.values == {}
    with pytest.raises(AssertionError, match=r"the dm-crypt device .* is not there"):
        call("dm-crypt-affinity", f"DEVICE={tmp_path}/none\nmeasure", tmp_path)


CRYPT_SETUP = """\
nproc() { echo %d; }
memory_available_mib() { echo %d; }
need() { :; }
memory_disk() { echo "made of $2 MiB"; }
dd() { record fact written "$*"; }
blockdev() { echo 2048; }
dmsetup() { :; }
DEVICE=%s
(setup) || record fact status $?
"""


def crypt_setup(tmp_path: Path, name: str, cpus: int, memory_mib: int, *, emulated: bool) -> Records:
    """Setup on a board without a scratch device; nothing is made."""
    profile = plan(name).emulated if emulated else plan(name).hardware
    device = next(path for path in Path("/dev").iterdir() if path.is_block_device())
    environment = {key.upper(): str(value) for key, value in profile.parameters.items()}
    return call(name, CRYPT_SETUP % (cpus, memory_mib, device), tmp_path, **environment)


@pytest.mark.parametrize("name", ["dm-crypt-affinity", "fan-out"])
@pytest.mark.parametrize(
    ("memory_mib", "emulated", "mib"),
    [(65536, False, 8192), (16384, False, 8192), (3700, False, 1850), (900, True, 128), (200, True, 100)],
)
def test_the_memory_disk_of_dm_crypt_takes_no_more_than_half_of_the_memory(
    tmp_path: Path, name: str, memory_mib: int, emulated: bool, mib: int
) -> None:
    asked = 128 if emulated else 8192
    facts = crypt_setup(tmp_path, name, 8, memory_mib, emulated=emulated).facts
    assert facts["written"].endswith(f"of=made of {mib} MiB bs=1M count={mib}")
    scaled = f" (scaled to this board's memory; the plan asks for {asked} MiB)" if mib < asked else ""
    assert facts["disk"] == f"null_blk memory_backed, {mib} MiB, 8 queues, prewritten{scaled}"


@pytest.mark.parametrize(("memory_mib", "mib", "why"), [(8192, 256, "1 MiB for each of 256"), (400, 200, "scaled to")])
def test_the_memory_disk_has_a_region_for_each_issuer_of_the_largest_scenario(
    tmp_path: Path, memory_mib: int, mib: int, why: str
) -> None:
    disk = crypt_setup(tmp_path, "fan-out", 64, memory_mib, emulated=True).facts["disk"]
    assert disk.startswith(f"null_blk memory_backed, {mib} MiB, 64 queues, prewritten ({why}")
    assert disk.endswith("the plan asks for 128 MiB)")


@pytest.mark.parametrize("name", ["dm-crypt-affinity", "fan-out"])
def test_setup_knows_the_most_issuers_of_any_scenario(tmp_path: Path, name: str) -> None:
    def issuers(parameters: Mapping[str, object]) -> float:
        environment = {key.upper(): str(value) for key, value in parameters.items()}
        return call(name, "nproc() { echo 24; }\nrecord value issuers $(issuers)", tmp_path, **environment).values[
            "issuers"
        ]

    for profile in (plan(name).hardware, plan(name).emulated):
        each = [issuers({**profile.parameters, **scenario.parameters}) for scenario in plan(name).scenarios]
        assert issuers(profile.parameters) == max(each)


@pytest.mark.parametrize("traced", ["0", "1"])
@pytest.mark.parametrize(("mib", "region_k"), [(128, "1024k"), (95, None)])
def test_a_disk_without_a_region_for_each_issuer_makes_that_point_unsupported(
    tmp_path: Path, mib: int, region_k: str | None, traced: str
) -> None:
    folder = tmp_path / "kcryptd"
    folder.mkdir()
    for knob in ("affinity_scope", "affinity_strict"):
        (folder / knob).touch()
    device = next(path for path in Path("/dev").iterdir() if path.is_block_device())
    stand_ins = (
        f"DEVICE={device}\nnproc() {{ echo 24; }}\n"
        f"knob_folder() {{ echo {folder}; }}\nblockdev() {{ echo {mib << 20}; }}\n"
        'run_fio() { record fact fio "$*"; }\ntrace_start() { record fact traced yes; return 1; }\n'
    )
    environment = {key.upper(): str(value) for key, value in plan("fan-out").emulated.parameters.items()}
    environment |= {"SETTING_SCOPE": "system", "SETTING_STRICT": "0", "TRACE": traced}
    found = call("fan-out", f"{stand_ins}measure", tmp_path, **environment)
    assert found.failure is None
    if region_k is None:
        said = "a disk of 95 MiB is too small for a region of 1 MiB for each of 96 issuers"
        assert (found.unsupported, found.facts.get("fio"), found.facts.get("traced")) == ([("*", said)], None, None)
    elif traced == "1":
        assert (found.unsupported, found.facts["traced"]) == ([], "yes")
    else:
        assert f"--numjobs=96 --size={region_k} --offset_increment={region_k}" in found.facts["fio"]


def test_a_board_without_the_memory_for_a_region_for_each_cpu_cannot_run_dm_crypt(tmp_path: Path) -> None:
    found = crypt_setup(tmp_path, "dm-crypt-affinity", 64, 120, emulated=False)
    said = "not enough memory: a memory disk of 60 MiB has no region of 1 MiB for each of 64 CPUs"
    assert (found.unsupported, found.failure, found.facts) == ([("*", said)], None, {"status": "1"})


@pytest.mark.parametrize(
    ("memory_mib", "jobs", "file_kib", "expected", "scaled"),
    [
        (65536, 64, 131072, "64 jobs on 4 mounts, 131072 KiB each", False),
        (1800, 16, 320, "16 jobs on 4 mounts, 320 KiB each", False),
        (8192, 64, 131072, "64 jobs on 4 mounts, 30720 KiB each", True),
        (400, 16, 320, "16 jobs on 1 mounts, 320 KiB each", True),
        (140, 64, 512, "8 jobs on 1 mounts, 384 KiB each", True),
    ],
)
def test_scale(tmp_path: Path, memory_mib: int, jobs: int, file_kib: int, expected: str, scaled: bool) -> None:
    command = f"echo {memory_mib} >$WORK/memory_mib\nscale {file_kib}"
    found = call("xfs-fsync", command, tmp_path, MOUNTS="4", JOBS=str(jobs)).facts["scale"]
    assert found.startswith(expected)
    assert ("scaled to this board's memory" in found) == scaled


@pytest.mark.parametrize("caller", ["", "[    T1]", "[  C12]"])
def test_of_a_benchmark_that_ran_twice_the_last_run_counts(tmp_path: Path, caller: str) -> None:
    """The log is that of lib/test_workqueue.c of Linux 7.1, built against 6.12.117 and loaded by busybox; some kernels
    name the caller of each message (CONFIG_PRINTK_CALLER)."""
    log = tmp_path / "dmesg"
    text = (Path(__file__).parent / "test_workqueue_twice.dmesg").read_text()
    log.write_text(re.sub(r"^(\[[ 0-9.]+\])", rf"\1{caller}", text, flags=re.MULTILINE))
    stand_ins = f'dmesg() {{ [ "${{1:-}}" = -c ] || cat {log}; }}\ninsmod() {{ return 1; }}'
    command = f"{stand_ins}\nbenchmark >$WORK/benchmark\nframe benchmark <$WORK/benchmark"
    lines = call("test-workqueue", command, tmp_path, ITEMS="200").frame("benchmark")
    assert len(lines) == 7
    assert lines[0] == "test_workqueue: running 2 threads, 200 items/thread"
    assert lines[1].split() == ["test_workqueue:", "cpu", "3052", "items/sec", "p50=2847", "p90=3780", "p95=5224", "ns"]


def trace(tmp_path: Path, text: str, cpu_files: dict[int, str] | None = None) -> None:
    folder = tmp_path / "tracing"
    folder.mkdir()
    (folder / "trace").write_text(text)
    for cpu, lines in (cpu_files or {}).items():
        (folder / "per_cpu" / f"cpu{cpu}").mkdir(parents=True)
        (folder / "per_cpu" / f"cpu{cpu}" / "trace").write_text(lines)


EVENTS = """\
# tracer: nop
           fio-742     [016] d....   309.100000: workqueue_queue_work: work struct=00000000aa function=kcryptd_crypt workqueue=kcryptd-253:0-1 req_cpu=512 cpu=-1
           fio-742     [008] d....   309.100100: workqueue_queue_work: work struct=00000000bb function=kcryptd_crypt workqueue=kcryptd-253:0-1 req_cpu=512 cpu=-1
   kworker/8:1H-46     [009] .....   309.100200: workqueue_execute_start: work struct 00000000cc: function blk_mq_run_work_fn
   kworker/u98:3-460   [009] .....   309.100300: workqueue_execute_start: work struct 00000000aa: function kcryptd_crypt
 odd name [003] x-77   [011] .....   309.100350: workqueue_execute_start: work struct 00000000bb: function kcryptd_crypt
   kworker/u98:3-460   [009] .....   309.100800: workqueue_execute_end: work struct 00000000aa: function kcryptd_crypt
           fio-742     [016] d....   309.100900: workqueue_queue_work: work struct=00000000aa function=kcryptd_crypt workqueue=kcryptd-253:0-1 req_cpu=512 cpu=-1
           fio-742     [016] d....   309.100950: sched_migrate_task: comm=fio pid=1 prio=120 orig_cpu=1 dest_cpu=2
"""  # noqa: E501 - as the kernel prints them


@pytest.mark.parametrize("awk", AWKS)
def test_work_items_are_followed_by_their_pointer(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, EVENTS)
    records = call("dm-crypt-affinity", f"AWK='{awk}'\nMIGRATIONS=1\nreduce_trace", tmp_path)
    pairs = {(p.queued_on, p.ran_on): (p.items, p.exec_ns) for p in read_pairs(records, range(24))}
    assert pairs.keys() == {(16, 9), (8, 11)}
    assert pairs[16, 9][0] == 1
    assert pairs[16, 9][1] == pytest.approx(500_000, rel=1e-3)
    assert pairs[8, 11] == (1, 0)
    assert dict(read_histogram(records, "queue_to_start_us")) in ({300: 1, 250: 1}, {299: 1, 250: 1}, {299: 1, 249: 1})
    assert records.values == {"items": 2, "migrations": 1}
    assert records.facts["items_queued_not_started"] == "1"


def test_hidden_pointers_are_not_matched(tmp_path: Path) -> None:
    trace(tmp_path, EVENTS.replace("00000000aa", "(____ptrval____)"))
    records = call("dm-crypt-affinity", "reduce_trace", tmp_path)
    assert dict(records.unsupported).keys() == {"traced"}


def graph(pid: int, cpu: int, start: float, lines: str, task: str = "fio") -> str:
    """Lines as the function_graph tracer prints them, a microsecond apart."""
    return "".join(
        f"  {start + number / 1e6:.6f} |  {cpu:2})    {task}-{pid}     | {line}\n"
        for number, line in enumerate(lines.strip().splitlines())
    )


LOCK = "_raw_spin_lock_irq();"
END = "} /* __flush_workqueue */"
RETURNS = f"__flush_workqueue() {{\n  mutex_lock();\n  {LOCK}\n  {LOCK}\n  _raw_spin_lock_irqsave();\n{END}"


def histogram(records: Records, name: str) -> dict[int, int]:
    return dict(read_histogram(records, name))


def counts(tmp_path: Path, *per_cpu: str) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    trace(tmp_path, "", dict(enumerate(per_cpu)))
    names = ("locks_until_wait_returned", "locks_until_wait_waited", "locks_whole_flush")
    by_awk = []
    for awk in AWKS:
        records = call("xfs-fsync", f"AWK='{awk}'\nreduce_trace", tmp_path)
        by_awk.append([histogram(records, name) for name in names])
    assert by_awk[0] == by_awk[1]
    returned, waited, whole = by_awk[0]
    return returned, waited, whole


def test_locks_of_a_flush_that_returns_at_once(tmp_path: Path) -> None:
    assert counts(tmp_path, "# tracer: function_graph\n" + graph(7, 0, 10.0, RETURNS)) == ({3: 1}, {}, {3: 1})


def test_a_helper_and_other_variants_count_as_well(tmp_path: Path) -> None:
    body = RETURNS.replace(LOCK, "take() {\n _raw_spin_lock();\n _raw_spin_trylock() {\n}\n_raw_write_lock_bh();\n}", 1)
    assert counts(tmp_path, graph(7, 0, 10.0, body))[2] == {5: 1}


def test_a_flush_that_waits_and_goes_on_on_another_cpu(tmp_path: Path) -> None:
    before = f"__flush_workqueue() {{\n  {LOCK}\n  {LOCK}\n  schedule() {{\n    _raw_spin_lock();"
    after = f"  }} /* schedule */\n  {LOCK}\n}} /* __flush_workqueue */"
    found = counts(tmp_path, graph(7, 0, 20.0, after) + graph(8, 0, 21.0, RETURNS), graph(7, 1, 10.0, before))
    assert found == ({3: 1}, {2: 1}, {4: 1, 3: 1})


def test_softirqs_are_not_the_tasks_and_a_contended_mutex_is_not_the_flushs(tmp_path: Path) -> None:
    mutex = (
        "mutex_lock() {\n _raw_spin_lock();\n schedule() {\n _raw_spin_lock();\n } /* schedule */\n } /* mutex_lock */"
    )
    softirq = "handle_softirqs() {\n _raw_spin_lock();\n schedule();\n } /* handle_softirqs */"
    body = RETURNS.replace("mutex_lock();", f"{mutex}\n{softirq}")
    assert counts(tmp_path, graph(7, 0, 10.0, body)) == ({3: 1}, {}, {5: 1})


def test_other_tasks_and_flushes_seen_in_part_are_left_out(tmp_path: Path) -> None:
    cut = f"{LOCK}\n{LOCK}\n}} /* __flush_workqueue */"
    unfinished = f"__flush_workqueue() {{\n {LOCK}"
    lines = graph(7, 0, 10.0, cut) + graph(9, 0, 11.0, RETURNS, task="kworker/u8:1") + graph(8, 0, 12.0, unfinished)
    assert counts(tmp_path, lines) == ({}, {}, {})


# --- netperf-stream ---------------------------------------------------------------------------------------------------


def test_netperf_has_the_published_sizes_on_both_networks_and_few_of_them_on_emulated_boards() -> None:
    chosen = plan("netperf-stream")
    sizes = (64, 128, 256, 1024, 2048, 3312, 4096, 8192, 16384)
    names = [f"{kind}-{network}-{size}" for kind in ("udp", "tcp") for network in ("lo", "netns") for size in sizes]
    assert [scenario.name for scenario in chosen.measured(None, emulated=False).scenarios] == names
    for scenario in chosen.scenarios:
        test, network, size = scenario.parameters["test"], scenario.parameters["network"], scenario.parameters["size"]
        assert scenario.name == f"{str(test)[:3].lower()}-{network}-{size}"
    emulated = [scenario.name for scenario in chosen.measured(None, emulated=True).scenarios]
    assert {name.rsplit("-", 1)[0] for name in emulated} == {name.rsplit("-", 1)[0] for name in names}
    assert len(emulated) <= 6


def test_netperf_has_the_published_table() -> None:
    found = {(r.scenario, r.metric, r.kernel): (r.mean, r.stddev) for r in plan("netperf-stream").references}
    vanilla, patched = "5.7.0-rc5 vanilla", "5.7.0-rc5 wakelist-v1r1"
    assert found["udp-lo-64", "send", vanilla] == (211.25, None)
    assert found["udp-lo-16384", "recv", patched] == (32296.08, None)
    assert found["tcp-lo-8192", "recv", vanilla] == (34014.83, 783.59)
    assert found["tcp-lo-64", "recv", patched] == (779.96, 0.17)
    assert len(found) == 2 * (9 + 9 + 9)


INTERRUPTS = {
    "x86_64": """\
           CPU0       CPU1
 24:          0          7  PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
LOC:       4491       4680   Local timer interrupts
RES:        170        205   Rescheduling interrupts
CAL:        932        709   Function call interrupts
TLB:          3          9   TLB shootdowns
ERR:          0
""",
    "arm64": """\
           CPU0       CPU1
 11:       1245       1310     GICv3  27 Level     arch_timer
IPI0:       170        205       Rescheduling interrupts
IPI1:       932        709       Function call interrupts
IPI2:         0          0       CPU stop interrupts
Err:          0
""",
}


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("arch", INTERRUPTS)
def test_interrupts_are_found_by_what_they_are_called(tmp_path: Path, awk: str, arch: str) -> None:
    file = tmp_path / "interrupts"
    file.write_text(INTERRUPTS[arch])
    command = f"AWK='{awk}'\nrecord fact counts \"$(interrupts)\"\ninterrupt_records '1600 370' \"$(interrupts)\""
    records = call("netperf-stream", command, tmp_path, INTERRUPTS=str(file))
    assert records.facts == {"counts": "1641 375"}
    assert records.values == {"call_function_interrupts": 41, "reschedule_interrupts": 5}


def test_interrupts_that_a_kernel_does_not_list_are_unsupported(tmp_path: Path) -> None:
    file = tmp_path / "interrupts"
    file.write_text(INTERRUPTS["arm64"].replace("Rescheduling", "Scheduler"))
    command = 'interrupt_records "$(interrupts)" "$(interrupts)"'
    records = call("netperf-stream", command, tmp_path, INTERRUPTS=str(file))
    assert records.values == {"call_function_interrupts": 0}
    assert [name for name, _ in records.unsupported] == ["reschedule_interrupts"]


SCHEDSTAT = """\
version 16
timestamp 4294953709
cpu0 0 0 429 132 223 159 155600670825 110839956412 3904
domain0 3 163 158 3 2489 2 0 0 158 100 89 5 11 6 0 0 89 30 21 6 9 3 0 0 21 0 0 0 0 0 0 0 0 0 64 3 0
cpu1 0 0 409 128 215 141 181407125249 42805181681 3796
domain0 3 160 153 4 2612 3 0 0 153 102 92 8 2304 3 0 0 92 18 15 1 3 2 0 0 15 1 0 1 0 0 0 0 0 0 74 3 0
"""


@pytest.mark.parametrize("awk", AWKS)
def test_wakeups_across_cpus_are_those_not_on_the_wakers_own(tmp_path: Path, awk: str) -> None:
    file = tmp_path / "schedstat"
    file.write_text(SCHEDSTAT)
    command = f"AWK='{awk}'\nwakeup_records '400 280' \"$(wakeups)\""
    records = call("netperf-stream", command, tmp_path, SCHEDSTAT=str(file))
    assert records.values == {"wakeups": 38, "remote_wakeups": 18}


QUEUED = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         netperf-197     [001] d.s..   247.376070: csd_queue_cpu: cpu=0 callsite=ttwu_queue_wakelist+0xee/0x100 func=sched_ttwu_pending csd=000000001559feeb
         netperf-197     [001] d.H..   247.417729: csd_queue_cpu: cpu=0 callsite=generic_exec_single+0x38/0x100 func=nohz_csd_func csd=00000000f759ab3c
         netperf-197     [001] dNs..   248.048327: csd_queue_cpu: cpu=0 callsite=ttwu_queue_wakelist+0xee/0x100 func=sched_ttwu_pending csd=000000001559feeb
"""  # noqa: E501 - as the kernel prints them


@pytest.mark.parametrize("awk", AWKS)
def test_only_wakeups_count_among_the_queued_calls(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, QUEUED)
    assert call("netperf-stream", f"AWK='{awk}'\nreduce_trace", tmp_path).values == {"queued_wakeups": 2}


def test_no_queued_call_is_a_count_and_an_unnamed_one_is_not(tmp_path: Path) -> None:
    trace(tmp_path, "# tracer: nop\n")
    assert call("netperf-stream", "reduce_trace", tmp_path).values == {"queued_wakeups": 0}
    (tmp_path / "tracing" / "trace").write_text(QUEUED.replace("sched_ttwu_pending", "0xffffffff81000000"))
    found = call("netperf-stream", "reduce_trace", tmp_path)
    assert found.values == {}
    assert [name for name, _ in found.unsupported] == ["queued_wakeups"]


def test_a_tracer_without_the_event_is_told(tmp_path: Path) -> None:
    (tmp_path / "tracing" / "events").mkdir(parents=True)
    (tmp_path / "tracing" / "tracing_on").touch()
    records = call("netperf-stream", "trace_start || true", tmp_path, TRACE_KIB="64")
    assert records.unsupported == [("queued_wakeups", "this kernel has no event csd_queue_cpu")]
