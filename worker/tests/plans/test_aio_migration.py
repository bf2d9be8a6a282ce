"""Plan aio-migration: scheduler knobs by kernel version, both counting methods, and the reduction on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Unsupported
from wqlab_worker.measure.parsers.aio_migration import stay_metrics
from wqlab_worker.measure.parsers.histogram import read_histogram

from .scripts import AWKS, call, plan, trace

NAME = "aio-migration"


def kernel(tmp_path: Path, **knobs: int) -> dict[str, str]:
    """Return the environment of a script on a kernel with these knobs, in sysctl or debugfs."""
    for folder in ("debug/sched", "sysctl", "work"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for name, value in knobs.items():
        (tmp_path / ("sysctl" if name.startswith("sched_") else "debug/sched") / name).write_text(f"{value}\n")
    return {"DEBUGFS": str(tmp_path / "debug"), "SYSCTL": str(tmp_path / "sysctl")}


OLD = {"sched_min_granularity_ns": 3000000, "sched_wakeup_granularity_ns": 4000000}
MIDDLE = {"min_granularity_ns": 3000000, "wakeup_granularity_ns": 4000000}
EEVDF = {"base_slice_ns": 2800000}


@pytest.mark.parametrize("knobs", [OLD, MIDDLE])
def test_granularity_is_read_back_on_old_kernels(tmp_path: Path, knobs: dict[str, int]) -> None:
    environment = kernel(tmp_path, **knobs)
    command = "keep_knobs\nchoose granularity slow && record setting_after granularity $(in_use granularity slow)"
    found = call(NAME, command, tmp_path, **environment)
    assert (found.unsupported, found.settings, found.settings_after) == ([], *[{"granularity": "slow"}] * 2)
    values = {path.name.removeprefix("sched_"): path.read_text() for path in tmp_path.glob("*/**/*granularity_ns")}
    assert {values[name] for name in ("min_granularity_ns", "wakeup_granularity_ns")} == {"10000000\n", "15000000\n"}
    assert found.facts["wakeup_granularity_ns"] == "4000000"
    back = call(NAME, "choose granularity default", tmp_path, **environment)
    assert back.settings == {"granularity": "default"}
    assert "4000000\n" in {path.read_text() for path in tmp_path.glob("*/**/*wakeup_granularity_ns")}


def test_wakeup_granularity_is_unsupported_on_eevdf(tmp_path: Path) -> None:
    environment = kernel(tmp_path, **EEVDF)
    command = "keep_knobs\nchoose granularity slow || choose granularity default && choose base_slice 10ms"
    found = call(NAME, command, tmp_path, **environment)
    assert "nothing in place of the wakeup granularity" in dict(found.unsupported)["*"]
    assert found.facts["wakeup_granularity_ns"].startswith("none: EEVDF")
    assert found.settings == {"granularity": "default", "base_slice": "10ms"}
    assert (tmp_path / "debug/sched/base_slice_ns").read_text() == "10000000\n"
    call(NAME, "choose base_slice default", tmp_path, **environment)
    assert (tmp_path / "debug/sched/base_slice_ns").read_text() == "2800000\n"


def test_an_older_kernel_has_no_base_slice(tmp_path: Path) -> None:
    found = call(NAME, "keep_knobs\nchoose base_slice 4ms || true", tmp_path, **kernel(tmp_path, **MIDDLE))
    assert "has no base_slice_ns: this kernel is older than EEVDF" in dict(found.unsupported)["*"]
    assert found.settings == {}


def test_kernel_without_scheduler_knobs_has_no_version_fact(tmp_path: Path) -> None:
    environment = kernel(tmp_path)
    (tmp_path / "debug/sched").rmdir()
    said = "this kernel shows no scheduler knobs (CONFIG_SCHED_DEBUG, debugfs)"
    for knob, name in (("granularity slow", "min_granularity_ns"), ("base_slice 4ms", "base_slice_ns")):
        found = call(NAME, f"mount() {{ return 1; }}\nkeep_knobs\nchoose {knob} || true", tmp_path, **environment)
        assert dict(found.unsupported)["*"].endswith(f" has no {name}: {said}")
        assert set(found.facts.values()) == {f"none: {said}"}


def test_changed_knob_is_reported(tmp_path: Path) -> None:
    command = "keep_knobs\nchoose base_slice 4ms\necho 7 >$DEBUGFS/sched/base_slice_ns\n"
    command += 'record setting_after base_slice "$(in_use base_slice 4ms)"'
    found = call(NAME, command, tmp_path, **kernel(tmp_path, **EEVDF))
    assert found.settings == {"base_slice": "4ms"}
    assert found.settings_after == {"base_slice": "base_slice_ns:7"}


def test_kernel_without_tracing_still_has_the_setting(tmp_path: Path) -> None:
    environment = kernel(tmp_path, **EEVDF)
    environment |= {"TRACE": "1", "SETTING_GRANULARITY": "default", "SETTING_BASE_SLICE": "4ms"}
    stand_ins = "mount() { return 1; }\nprepare_file() { :; }\nsettle() { :; }\nworkload() { exit 9; }\nkeep_knobs\n"
    found = call(NAME, f"{stand_ins}measure", tmp_path, **environment)
    assert found.unsupported == [("traced", "this kernel has no event sched_migrate_task")]
    assert found.settings == found.settings_after == {"granularity": "default", "base_slice": "4ms"}


@pytest.mark.parametrize(
    ("budget", "expected"), [(6000, "5120"), (1000, "1000 (scaled to the size of /dev/sda; the plan asks for 5120)")]
)
def test_file_is_scaled_to_the_disk(tmp_path: Path, budget: int, expected: str) -> None:
    found = call(NAME, f'size_file {budget} "the size of /dev/sda"', tmp_path, FILE_MIB="5120")
    assert found.facts["file_mib"] == expected


def test_disk_without_room_for_a_file_is_named(tmp_path: Path) -> None:
    found = call(NAME, '(size_file -412 "the size of /dev/sda") || :', tmp_path, FILE_MIB="5120")
    assert found.failure is not None and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary == "the size of /dev/sda is not enough for a file of 4 MiB on XFS"


MIGRATIONS = """\
# tracer: nop
     migration/1-19      [001] d..2.    10.000100: sched_migrate_task: comm=fio pid=77 prio=120 orig_cpu=1 dest_cpu=0
          <idle>-0       [000] dNs4.    10.012100: sched_migrate_task: comm=fio pid=77 prio=120 orig_cpu=0 dest_cpu=1
 odd [009] 1.0: name-8   [000] dNs4.    10.342100: sched_migrate_task: comm=fio pid=77 prio=120 orig_cpu=1 dest_cpu=0
"""


@pytest.mark.parametrize("awk", AWKS)
def test_stay_lasts_from_migration_to_migration(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, MIGRATIONS)
    records = call(NAME, f"AWK='{awk}'\nreduce_trace", tmp_path)
    found = dict(read_histogram(records, "stay_us"))
    assert records.values == {"migrations": 3}
    assert found == {12000: 1, 330000: 1}
    assert stay_metrics(found) == pytest.approx(
        {"stay_mean_ms": 171.0, "stay_sd_ms": 224.86, "stay_min_ms": 12.0, "stay_max_ms": 330.0}, rel=1e-4
    )


def test_writer_without_migration_has_no_stays(tmp_path: Path) -> None:
    trace(tmp_path, "# tracer: nop\n")
    records = call(NAME, "reduce_trace", tmp_path)
    assert records.values == {"migrations": 0}
    assert {type(each) for each in stay_metrics(read_histogram(records, "stay_us")).values()} == {Unsupported}
    assert isinstance(stay_metrics({5: 1})["stay_sd_ms"], Unsupported)
    assert stay_metrics({5: 1})["stay_mean_ms"] == pytest.approx(0.005)


SCHED = """\
fio (77, #threads: 1)
-------------------------------------------------------------------
se.sum_exec_runtime                          :           {cpu}
se.nr_migrations                             :                   {migrations}
nr_switches                                  :                 {switches}
"""


def test_counters_of_the_writer_are_read(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sched.before").write_text(SCHED.format(cpu="1.500000", migrations=2, switches=10))
    (work / "sched.after").write_text(SCHED.format(cpu="2001.750000", migrations=2002, switches=510))
    found = call(NAME, "writer_records", tmp_path)
    assert found.values == {"migrations_by_counter": 2000, "writer_switches": 500, "writer_cpu_ms": 2000.25}
    for name in ("before", "after"):
        (work / f"sched.{name}").write_text("")
    found = call(NAME, "writer_records", tmp_path)
    assert found.values == {}
    lacking = {"migrations_by_counter", "writer_switches", "writer_cpu_share"}
    assert dict(found.unsupported).keys() == lacking


def test_published_counts_and_times_are_consistent() -> None:
    found = {(each.setting.partition("granularity=")[2], each.metric): each.mean for each in plan(NAME).references}
    assert found["slow", "migrations"] / found["fast", "migrations"] == 10
    assert (found["slow", "stay_min_ms"], found["slow", "stay_max_ms"]) == (0.331, 330.772)
    assert found["slow", "stay_mean_ms"] == pytest.approx(13.5, abs=0.05)


@pytest.mark.parametrize(
    ("fresh", "rw", "overwrites"),
    [
        ("0", "write", True),
        ("0", "randwrite", True),
        ("1", "write", False),
        ("0", "read", False),
        ("0", "randread", False),
    ],
)
def test_only_overwrites_can_complete_without_a_work(tmp_path: Path, fresh: str, rw: str, overwrites: bool) -> None:
    command = "if overwrites; then record fact overwrites yes; else record fact overwrites no; fi"
    found = call("aio-migration", command, tmp_path, FRESH=fresh, RW=rw)
    assert found.facts["overwrites"] == ("yes" if overwrites else "no")
