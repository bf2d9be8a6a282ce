"""Plan btrfs: size of the files, affinity scope, scrub and balance, checks of the data, reduction of its trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.parsers.histogram import read_histogram

from .scripts import AWKS, call, trace

NAME = "btrfs"


@pytest.mark.parametrize(
    ("memory_mib", "expected"),
    [
        (65536, "16 jobs, 512 MiB each, 1024 MiB in an older file"),
        (
            8192,
            "16 jobs, 128 MiB each, 256 MiB in an older file "
            "(scaled to this device's memory; the plan asks for 512 and 1024)",
        ),
    ],
)
def test_files_are_scaled_to_memory(tmp_path: Path, memory_mib: int, expected: str) -> None:
    command = f"echo {memory_mib} >$WORK/memory_mib\nscale 512"
    assert call(NAME, command, tmp_path, JOBS="16", OLD_MIB="1024").facts["scale"] == expected


def knob(folder: Path, text: str) -> dict[str, str]:
    parameters = folder / "parameters"
    parameters.mkdir()
    (parameters / "default_affinity_scope").write_text(text)
    return {"PARAMETERS": str(parameters)}


def test_default_scope_writes_nothing(tmp_path: Path) -> None:
    environment = knob(tmp_path, "cache\n")
    (tmp_path / "parameters/default_affinity_scope").chmod(0o600)
    command = 'cat "$PARAMETERS/$KNOB" >"$INITIAL.$KNOB"\nscope'
    found = call(NAME, command, tmp_path, SETTING_SCOPE="default", **environment)
    assert found.settings == {"scope": "default"}
    assert (tmp_path / "parameters/default_affinity_scope").read_text() == "cache\n"


def test_scope_is_set_for_all_unbound_workqueues_and_read_back(tmp_path: Path) -> None:
    environment = knob(tmp_path, "cache\n")
    assert call(NAME, "scope", tmp_path, SETTING_SCOPE="system", **environment).settings == {"scope": "system"}
    assert (tmp_path / "parameters/default_affinity_scope").read_text() == "system\n"


def test_kernel_without_scopes_has_only_its_default(tmp_path: Path) -> None:
    (tmp_path / "parameters").mkdir()
    environment = {"PARAMETERS": str(tmp_path / "parameters")}
    assert call(NAME, "scope", tmp_path, SETTING_SCOPE="default", **environment).settings == {"scope": "default"}
    found = call(NAME, "scope || :", tmp_path, SETTING_SCOPE="cache", **environment)
    assert dict(found.unsupported)["*"].endswith("has no workqueue.default_affinity_scope (Linux 6.5)")


SCRUBBED = """scrub done for 4a0c0a3c-1d0e-4c5b-8f6e-0f4c2f7b8d11
Status:           finished
\tdata_extents_scrubbed: 384
\tdata_bytes_scrubbed: 13369344
\tread_errors: 0
\tcsum_errors: {csum}
\tsuper_errors: 0
\tmalloc_errors: 0
\tuncorrectable_errors: {csum}
\tcorrected_errors: {corrected}
"""
"""Part of the output of `btrfs scrub start -B -R`, from btrfs-progs 6.2."""
CLEAN = SCRUBBED.format(csum=0, corrected=0)
FAULTY = "scrub found errors: csum_errors: 3008 uncorrectable_errors: 3008"
BALANCED = "Done, had to relocate 4 out of 5 chunks\n"


def tools(
    folder: Path, scrubbed: str = CLEAN, balanced: str = BALANCED, scrub: int = 0, balance: int = 0, runs: int = 2
) -> str:
    """Return functions in place of btrfs and of the jobs, which have written when each command has run `runs` times."""
    for name, text in (("scrub", scrubbed), ("balance", balanced)):
        (folder / f"{name}.text").write_text(text)
    ended = f'[ "$(grep -c scrub {folder}/ran)" -ge {runs} ] && [ "$(grep -c balance {folder}/ran)" -ge {runs} ]'
    return f"""
btrfs() {{
	cat "{folder}/$1.text"
	echo "$*" >>{folder}/ran
	! {{ {ended}; }} || : >"$WORK/written"
	if [ "$1" = scrub ]; then return {scrub}; else return {balance}; fi
}}
"""


def test_scrub_and_balance_are_repeated_until_the_files_are_written(tmp_path: Path) -> None:
    found = call(NAME, f"{tools(tmp_path)}maintain\nmaintained", tmp_path)
    scrubs, balances = found.values["scrubs"], found.values["balances"]
    assert scrubs >= 2 and balances >= 2
    assert found.values["relocated_chunks"] == 4 * balances
    ran = (tmp_path / "ran").read_text().splitlines()
    assert ran.count("scrub start -B -R /mnt/wqlab-btrfs") == scrubs
    assert ran.count("balance start --full-balance /mnt/wqlab-btrfs") == balances


def test_scrub_and_balance_run_once_also_if_the_files_are_written_before(tmp_path: Path) -> None:
    command = f'{tools(tmp_path)}maintain\n: >"$WORK/written"\nmaintained'
    found = call(NAME, command, tmp_path)
    assert min(found.values["scrubs"], found.values["balances"]) >= 1


@pytest.mark.parametrize(
    ("scrubbed", "status", "kind", "summary"),
    [
        (SCRUBBED.format(csum=3008, corrected=0), 3, ErrorKind.KERNEL, FAULTY),
        # btrfs has no error status for errors that it could correct.
        (
            SCRUBBED.format(csum=0, corrected=1),
            0,
            ErrorKind.KERNEL,
            "scrub found errors: corrected_errors: 1",
        ),
        (
            "ERROR: scrubbing /mnt failed: ret=-1, errno=28\n",
            1,
            ErrorKind.INFRASTRUCTURE,
            "btrfs scrub failed with status 1: ERROR: scrubbing /mnt failed: ret=-1, errno=28",
        ),
    ],
)
@pytest.mark.parametrize("command", ["(maintain; maintained) || :", "settle() { :; }\n(check_data) || :"])
def test_errors_of_a_scrub_are_the_kernels(
    tmp_path: Path, command: str, scrubbed: str, status: int, kind: ErrorKind, summary: str
) -> None:
    stopped = f"{tools(tmp_path, scrubbed, scrub=status, runs=1)}{command}"
    found = call(NAME, stopped, tmp_path)
    assert found.failure
    assert (found.failure.kind, found.failure.summary) == (kind, summary)


def test_balance_that_fails_is_named(tmp_path: Path) -> None:
    functions = tools(tmp_path, balanced="ERROR: error during balancing '/mnt': No space left on device\n", balance=1)
    found = call(NAME, f'{functions}(maintain; : >"$WORK/written"; maintained) || :', tmp_path)
    assert found.failure
    assert found.failure.summary == (
        "btrfs balance failed with status 1: ERROR: error during balancing '/mnt': No space left on device"
    )
    assert found.values["balances"] == 0


def test_scrub_and_balance_end_if_the_jobs_fail(tmp_path: Path) -> None:
    """Scrub and balance end when the script fails; if they went on, the file system could not be unmounted."""
    functions = tools(tmp_path, runs=10**6)
    found = call(NAME, f"{functions}(maintain; fail infrastructure 'fio wrote no result') || :", tmp_path)
    assert found.failure and found.failure.summary == "fio wrote no result"
    # The call has returned, so no process has its output open any more.
    assert (tmp_path / "work/written").exists()


READ = """old: (g=0): rw=read, bs=(R) 128KiB-128KiB
fio-3.33
old: (groupid=0, jobs=1): err={error} (file:io_u.c:2152, func=io_u_sync_complete, error={text}): pid=19979
"""
VERIFY = "crc32c: verify failed at file /mnt/wqlab-btrfs/old.0.0 offset 393216, length 131072"


def read_back(folder: Path, status: int, printed: str) -> str:
    (folder / "read.text").write_text(printed)
    return f"""{tools(folder)}
settle() {{ record fact settled yes; }}
fio() {{
	echo "$*" >>{folder}/fio
	for last; do :; done
	cat {folder}/read.text >"${{last#--output=}}"
	return {status}
}}
file_mib=8 old_mib=4
(check_data) || :
"""


def test_all_files_are_read_back_from_the_disk(tmp_path: Path) -> None:
    found = call(NAME, read_back(tmp_path, 0, READ.format(error=0, text="0")), tmp_path, JOBS="2")
    assert found.failure is None
    assert (found.values, found.facts) == ({"checked_kib": 13056}, {"settled": "yes"})
    old, new = (tmp_path / "fio").read_text().splitlines()
    assert "--name=old " in old and "--numjobs=1 --size=4m " in old
    assert "--name=new " in new and "--numjobs=2 --size=8m " in new
    assert all("--verify=crc32c " in line and "--rw=read " in line for line in (old, new))


@pytest.mark.parametrize(
    ("error", "text", "kind", "summary"),
    [
        (
            84,
            "Invalid or incomplete multibyte or wide character",
            ErrorKind.KERNEL,
            f"what was read back is not what was written: {VERIFY}",
        ),
        (2, "No such file or directory", ErrorKind.INFRASTRUCTURE, "fio cannot read the files back: old: (groupid"),
    ],
)
def test_other_data_than_was_written_is_the_kernels_failure(
    tmp_path: Path, error: int, text: str, kind: ErrorKind, summary: str
) -> None:
    printed = READ.format(error=error, text=text) + (f"{VERIFY} (requested block)\n" if error == 84 else "")
    found = call(NAME, read_back(tmp_path, 1, printed), tmp_path, JOBS="2")
    assert found.failure
    assert found.failure.kind is kind
    assert found.failure.summary.startswith(summary)


@pytest.mark.parametrize("awk", AWKS)
def test_data_on_the_disk_is_that_of_all_profiles(tmp_path: Path, awk: str) -> None:
    printed = (
        "Data, single: total=8192.00KiB, used=4352.00KiB\nData, DUP: total=8192.00KiB, used=128.00KiB\n"
        "System, single: total=4096.00KiB, used=16.00KiB\nGlobalReserve, single: total=3584.00KiB, used=0.00KiB\n"
    )
    (tmp_path / "df").write_text(printed)
    command = f'AWK="{awk}"\nsync() {{ :; }}\nbtrfs() {{ cat {tmp_path}/df; }}\nrecord value kib "$(data_kib)"'
    assert call(NAME, command, tmp_path).values["kib"] == 4480


def test_btrfs_without_zstd_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan/btrfs.builtin").touch()
    command = f"cd {tmp_path}/plan\navailable || record fact available no"
    found = call(NAME, command, tmp_path, SYS=str(tmp_path))
    assert found.facts == {"available": "no"}
    assert dict(found.unsupported)["*"].endswith("has no zstd compression (Linux 4.14)")
    (tmp_path / "fs/btrfs/features").mkdir(parents=True)
    (tmp_path / "fs/btrfs/features/compress_zstd").touch()
    assert call(NAME, command, tmp_path, SYS=str(tmp_path)).unsupported == []


def line(task: str, cpu: int, second: float, event: str) -> str:
    return f"     {task}   [{cpu:03}] ..... {second:.6f}: {event}\n"


def queued(cpu: int, second: float, work: str, workqueue: str) -> str:
    event = (
        f"workqueue_queue_work: work struct=00000000{work} function=btrfs_work_helper workqueue={workqueue} "
        "req_cpu=512 cpu=-1"
    )
    return line("fio-101", cpu, second, event)


def started(cpu: int, second: float, work: str, worker: str = "kworker/u8:1-9") -> str:
    event = f"workqueue_execute_start: work struct 00000000{work}: function btrfs_work_helper"
    return line(worker, cpu, second, event)


TRACE = (
    queued(0, 1.0, "aa01", "btrfs-delalloc")
    + queued(3, 1.0005, "aa02", "btrfs-endio-write")
    + started(1, 1.0001, "aa01")
    + started(3, 1.0025, "aa02")
    # Of another workqueue: its queueing is not in the trace.
    + started(2, 1.003, "bb01")
    + queued(0, 1.004, "aa01", "btrfs-delalloc")
    # The kernel no longer knows the name of this task.
    + started(0, 1.0042, "aa01", "<...>-10")
    + queued(2, 2.0, "aa03", "btrfs-scrub")
)


@pytest.mark.parametrize("awk", AWKS)
def test_trace_is_reduced(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE)
    found = call(NAME, f'AWK="{awk}"\nreduce_trace', tmp_path)
    assert found.values["works"] == 3
    assert sorted(found.frame("pairs")) == ["0 0 1", "0 1 1", "3 3 1"]
    assert sorted(found.frame("compressing")) == ["0 0 1", "0 1 1"]
    assert sorted(found.frame("workers")) == ["10 0 1", "9 1 1", "9 3 1"]
    assert dict(read_histogram(found, "queue_to_start_us")) == {100: 1, 200: 1, 2000: 1}
    assert sorted(found.frame("works by workqueue")) == ["btrfs-delalloc 2", "btrfs-endio-write 1"]
    assert found.values["works_queued"] == 4


@pytest.mark.parametrize("awk", AWKS)
def test_hidden_pointers_make_the_trace_unsupported(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE.replace("00000000aa01", "(ptrval)"))
    found = call(NAME, f'AWK="{awk}"\nreduce_trace', tmp_path)
    assert dict(found.unsupported) == {"traced": "this kernel hides the work pointers in its trace"}


@pytest.mark.parametrize("awk", AWKS)
def test_trace_without_works_is_empty(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, "# tracer: nop\n")
    found = call(NAME, f'AWK="{awk}"\nreduce_trace', tmp_path)
    assert (found.values["works"], found.frame("pairs"), found.frame("workers")) == (0, [], [])


@pytest.mark.parametrize("awk", AWKS)
def test_idle_time_is_that_of_cpus_of_unbound_workqueues(tmp_path: Path, awk: str) -> None:
    """CPUs 1 and 2 have no switch and are idle while a work waits for 100 us; CPU 3 is not one of them."""
    events = (
        queued(0, 1.0, "aa01", "btrfs-delalloc")
        + line("fio-101", 0, 1.0, "workqueue_activate_work: work struct 00000000aa01")
        + started(0, 1.0001, "aa01")
    )
    switch = "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=fio next_pid=101"
    trace(tmp_path, line("<idle>-0", 0, 0.5, f"{switch} next_prio=120") + events)
    for file, text in (("virtual/workqueue/cpumask", "7"), ("system/cpu/online", "0-3")):
        path = tmp_path / "sys/devices" / file
        path.parent.mkdir(parents=True)
        path.write_text(f"{text}\n")
    found = call(NAME, f'AWK="{awk}"\nIDLE=1\nreduce_trace', tmp_path, SYS=str(tmp_path / "sys"))
    assert found.values["idle_while_work_waits_us"] == 200


def test_works_are_traced_if_idle_time_is_unsupported(tmp_path: Path) -> None:
    for event in "workqueue_queue_work", "workqueue_execute_start":
        (tmp_path / "tracing/events/workqueue" / event).mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "trace_start && record fact traced yes", tmp_path, TRACE_KIB="64")
    assert found.facts == {"traced": "yes"}
    assert ("idle_while_work_waits_us", "this kernel has no event workqueue_activate_work") in found.unsupported
