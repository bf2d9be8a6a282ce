"""Plans dm-crypt-affinity and fan-out: their metrics, and the functions of their script."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from wqlab_contracts.enums import TraceMode
from wqlab_worker.measure.collect import Records
from wqlab_worker.measure.parsers.histogram import read_histogram
from wqlab_worker.measure.parsers.pairs import read_pairs

from .scripts import AWKS, call, plan, trace


def test_dm_crypt_can_select_every_scope_with_and_without_strictness() -> None:
    axes = {axis.name: axis.values for axis in plan("dm-crypt-affinity").axes}
    assert axes == {
        "scope": ["default", "cpu", "smt", "cache", "cache_shard", "numa", "system"],
        "strict": ["default", "0", "1"],
        "local": ["0", "1"],
    }
    assert plan("dm-crypt-affinity").knobs("scope=cache,strict=1") == {"scope": "cache", "strict": "1", "local": "0"}


def test_hardware_has_the_five_published_configurations_and_shards() -> None:
    chosen = plan("dm-crypt-affinity")
    published = {reference.setting for reference in chosen.references}
    assert chosen.hardware.settings == ["scope=default,strict=default", *chosen.hardware.settings[1:]]
    shards = {"scope=cache_shard,strict=0", "scope=cache_shard,strict=1"}
    assert set(chosen.hardware.settings[1:]) == published | shards
    assert len(published) == 5
    assert (chosen.hardware.parameters["runtime_s"], chosen.hardware.repetitions.untraced) == (60, 5)
    assert {chosen.knobs(setting)["local"] for setting in chosen.emulated.settings} == {"0"}


def test_published_figures_are_those_of_the_study() -> None:
    found = {(r.scenario, r.setting, r.metric): (r.mean, r.stddev) for r in plan("dm-crypt-affinity").references}
    assert found["LOW", "scope=cache,strict=1", "bandwidth"] == (828.20, 4.49)
    assert found["MED", "scope=cache,strict=0", "cpu_utilisation"] == (96.15, 0.09)
    assert found["LOW", "local=1,scope=system,strict=0", "bandwidth"] == (884.20, 18.39)
    assert len(found) == 3 * 5 * 2


@pytest.mark.parametrize(
    ("cpus", "fraction", "jobs"),
    [(24, "1/1", 24), (24, "1/3", 8), (24, "1/6", 4), (64, "1/3", 21), (2, "1/1", 2), (2, "1/3", 1), (2, "1/6", 1)],
)
def test_issuers_follow_the_fraction_per_cpu(tmp_path: Path, cpus: int, fraction: str, jobs: int) -> None:
    command = f"nproc() {{ echo {cpus}; }}\nrecord value issuers $(issuers)"
    assert call("dm-crypt-affinity", command, tmp_path, ISSUERS_PER_CPU=fraction).values == {"issuers": jobs}


@pytest.mark.parametrize(
    ("cpus", "issuers"),
    [(24, [1, 3, 8, 24, 48, 96]), (8, [1, 2, 4, 8, 16, 32]), (64, [1, 4, 16, 64, 128, 256]), (2, [1, 1, 2, 2, 4, 8])],
)
def test_fan_out_spans_one_issuer_to_four_per_cpu(tmp_path: Path, cpus: int, issuers: list[int]) -> None:
    command = f"nproc() {{ echo {cpus}; }}\nrecord value issuers $(issuers)"
    found = []
    for scenario in plan("fan-out").scenarios:
        environment = {name.upper(): str(value) for name, value in scenario.parameters.items()}
        found.append(call("fan-out", command, tmp_path, **environment).values["issuers"])
    assert found == issuers


def test_the_fan_out_of_real_devices_has_a_curve_for_each_scope() -> None:
    chosen = plan("fan-out")
    assert {chosen.knobs(setting)["scope"] for setting in chosen.hardware.settings} == set(chosen.axes[0].values)


def test_fan_out_points_need_no_tracing() -> None:
    chosen = plan("fan-out")
    assert chosen.curve is not None
    assert chosen.metric(chosen.curve.over).taken_from is TraceMode.UNTRACED


def test_localization_is_read_back_or_unsupported(tmp_path: Path) -> None:
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


@pytest.fixture
def knobs(tmp_path: Path) -> Path:
    """sysfs folder of kcryptd as the kernel shows it; the script has seen it in setup."""
    folder = tmp_path / "kcryptd"
    folder.mkdir()
    for name, value in (("affinity_scope", "default (cache)"), ("affinity_strict", "0")):
        (folder / name).write_text(f"{value}\n")
        (tmp_path / f"initial.{name}").write_text(f"{value}\n")
    return folder


def test_default_setting_is_written_like_every_other_one(tmp_path: Path, knobs: Path) -> None:
    """A write makes the workqueue's pools anew: without it a default would keep its workers, and other settings not."""
    file = knobs / "affinity_strict"
    os.utime(file, (0, 0))
    command = f"apply {knobs} strict default affinity_strict && after {knobs} strict default affinity_strict"
    found = call("dm-crypt-affinity", command, tmp_path, INITIAL=str(tmp_path / "initial"))
    assert (found.settings, found.settings_after, found.unsupported) == ({"strict": "default"},) * 2 + ([],)
    assert found.facts == {"affinity_strict by default": "0"}
    assert file.stat().st_mtime > 0


def test_default_setting_after_another_returns_to_the_kernels_value(tmp_path: Path, knobs: Path) -> None:
    (knobs / "affinity_strict").write_text("1\n")
    command = f"apply {knobs} strict default affinity_strict"
    found = call("dm-crypt-affinity", command, tmp_path, INITIAL=str(tmp_path / "initial"))
    assert (found.settings, found.unsupported) == ({"strict": "default"}, [])
    assert (knobs / "affinity_strict").read_text() == "0\n"


def test_default_that_the_kernel_does_not_return_to_is_unsupported(tmp_path: Path, knobs: Path) -> None:
    (knobs / "affinity_scope").write_text("numa\n")  # this file does not show "default (cache)" when written
    command = f"apply {knobs} scope default affinity_scope || record fact left yes"
    found = call("dm-crypt-affinity", command, tmp_path, INITIAL=str(tmp_path / "initial"))
    assert "does not return affinity_scope from a setting to its default" in dict(found.unsupported)["*"]
    assert found.facts["left"] == "yes"


def test_setting_that_changed_during_the_default_workload_is_reported(tmp_path: Path, knobs: Path) -> None:
    (knobs / "affinity_scope").write_text("numa\n")
    command = f"after {knobs} scope default affinity_scope"
    found = call("dm-crypt-affinity", command, tmp_path, INITIAL=str(tmp_path / "initial"))
    assert found.settings_after == {"scope": "numa"}


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
def test_pods_of_a_former_scope_are_not_counted(tmp_path: Path, awk: str, lists: list[str], pods: str) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    workers(proc, *lists)
    workers(proc, "0", name="kworker/u97:{}-events_unbound")
    workers(proc, "0", name="kworker/R-kcryptd-253:0-1")
    workers(proc, "0", name="kworker/u97:{}-kcryptd_io-253:0-1")
    found = call("dm-crypt-affinity", f"AWK='{awk}'\nrecord fact pods \"$(pods)\"", tmp_path, PROC=str(proc))
    assert found.facts == {"pods": pods}


def test_scope_is_unsupported_without_kcryptd_in_sysfs(tmp_path: Path) -> None:
    """Linux 6.1 is such a kernel."""
    device = next(path for path in Path("/dev").iterdir() if path.is_block_device())
    command = f"DEVICE={device}\nknob_folder() {{ return 1; }}\nmeasure"
    found = call("dm-crypt-affinity", command, tmp_path, SETTING_SCOPE="cache", SETTING_STRICT="0")
    assert dict(found.unsupported)["*"].endswith("has no affinity_scope for kcryptd: that workqueue is not in sysfs")
    assert found.values == {}
    with pytest.raises(AssertionError, match=r"the dm-crypt device .* does not exist"):
        call("dm-crypt-affinity", f"DEVICE={tmp_path}/none\nmeasure", tmp_path)


CRYPT_SETUP = """\
nproc() { echo %d; }
memory_available_mib() { echo %d; }
need() { :; }
check_jobs() { :; }
settle() { :; }
nodes_in_use() { :; }
memory_disk() { echo "made of $2 MiB"; }
dd() { record fact written "$*"; }
fio() { record fact written "$*"; }
blockdev() { echo 2048; }
dmsetup() { :; }
DEVICE=%s
(setup) || record fact status $?
"""


def crypt_setup(tmp_path: Path, name: str, cpus: int, memory_mib: int, *, emulated: bool) -> Records:
    """Run setup without a scratch device; no device is created."""
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
    if emulated:
        assert facts["written"].endswith(f"of=made of {mib} MiB bs=1M count={mib}")
    else:
        assert f"--filename=made of {mib} MiB --rw=write --bs=1M --direct=1" in facts["written"]
        assert "--cpus_allowed=0" in facts["written"], "by the CPUs of node 0"
    scaled = f" (scaled to this device's memory; the plan asks for {asked} MiB)" if mib < asked else ""
    assert (
        facts["disk"]
        == f"null_blk memory_backed, {mib} MiB, 8 queues, prewritten{'' if emulated else ' on node 0'}{scaled}"
    )


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
        f"DEVICE={device}\nnproc() {{ echo 24; }}\nsettle() {{ :; }}\n"
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
        # The setting is also verified on a kernel without tracing.
        assert found.settings == found.settings_after == {"scope": "system", "strict": "0"}
    else:
        assert f"--numjobs=96 --size={region_k} --offset_increment={region_k}" in found.facts["fio"]


def test_dm_crypt_is_unsupported_with_too_little_memory(tmp_path: Path) -> None:
    found = crypt_setup(tmp_path, "dm-crypt-affinity", 64, 120, emulated=False)
    said = "not enough memory: a memory disk of 60 MiB has no region of 1 MiB for each of 64 CPUs"
    assert (found.unsupported, found.failure, found.facts) == ([("*", said)], None, {"status": "1"})


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


def log(first_ms: int, *ios: int) -> str:
    """Return a job's log as fio 3.33 writes it with --log_unix_epoch=1. `ios`: completed I/Os of each millisecond."""
    epoch = 1_764_547_200_000 + first_ms
    return "".join(f"{epoch + ms}, 31250, 0, 32768, 0, 0\n" * count for ms, count in enumerate(ios))


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        # The second job begins 2 ms later, so that both issued from 3 to 10 ms: three intervals of 2 ms.
        ([log(0, 9, 9, 9, 1, 1, 2, 2, 3, 3, 9, 9, 9), log(2, 9, 1, 1, 2, 2, 3, 3, 9)],
         ["0 2000000 4", "1 2000000 8", "2 2000000 12"]),
        ([log(2, 9, 1, 1, 2, 2, 3, 3, 9), log(0, 9, 9, 9, 1, 1, 2, 2, 3, 3, 9, 9, 9)],
         ["0 2000000 4", "1 2000000 8", "2 2000000 12"]),
        ([log(0, 5, 0, 0, 0, 7)], ["0 3000000 0", "1 3000000 7", "2 3000000 0"]),
        ([log(0, 5), log(8, 5)], []),  # hardly together
    ],
)  # fmt: skip
def test_intervals_leave_out_the_start_of_jobs_and_the_drain(
    tmp_path: Path, awk: str, logs: list[str], expected: list[str]
) -> None:
    files = [tmp_path / f"ios_bw.{number}.log" for number in range(len(logs))]
    for file, text in zip(files, logs, strict=True):
        file.write_text(text)
    command = f'AWK="{awk}"\nfio_intervals 3 10 {" ".join(map(str, files))} | frame intervals'
    assert call("dm-crypt-affinity", command, tmp_path).frames["intervals"] == expected


@pytest.mark.parametrize(("strict", "in_scope"), [("0", 250), ("1", 50)])
def test_idle_time_is_that_of_cpus_of_the_workqueue_and_of_the_scope(
    tmp_path: Path, strict: str, in_scope: int
) -> None:
    """CPUs 8 and 16 are idle while an item that CPU 16 queued waits; a strict scope confines it to CPU 16."""
    at = "kworker/1:1-7 [%03d] d..2.   309.%06d: "
    switch = "sched_switch: prev_comm=fio prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0"
    work = "work struct=00000000aa function=kcryptd_crypt workqueue=kcryptd-253:0-1 req_cpu=512 cpu=-1"
    events = [
        (8, 1000, switch),
        (16, 2000, f"workqueue_queue_work: {work}"),
        (16, 2000, "workqueue_activate_work: work struct 00000000aa"),
        (16, 2050, switch),
        (9, 2100, "workqueue_execute_start: work struct 00000000aa: function kcryptd_crypt"),
    ]
    trace(tmp_path, "".join(f" {at % (cpu, us)}{event}\n" for cpu, us, event in events))
    folder, cpus = tmp_path / "kcryptd", tmp_path / "sys/devices/system/cpu"
    folder.mkdir()
    cpus.mkdir(parents=True)
    (folder / "cpumask").write_text("00010300\n")
    (folder / "affinity_strict").write_text(f"{strict}\n")
    (cpus / "online").write_text("0-23\n")
    command = f"pods() {{ echo 16 8,9; }}\nfolder={folder}\nIDLE=1\nreduce_trace"
    found = call("dm-crypt-affinity", command, tmp_path, SYS=str(tmp_path / "sys")).values
    # CPU 9 has no switch, so it was idle too.
    assert found["idle_while_work_waits_us"] == 250
    assert found["idle_in_scope_while_work_waits_us"] == in_scope
