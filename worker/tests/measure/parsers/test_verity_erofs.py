"""Parser verity-erofs: each value is correct or not measured. The output is written by hand, as the script has it."""

from __future__ import annotations

import json
import re

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers import verity_erofs

from .test_recorded import device, plan

SETTING = "sync_decompress=off,verify=tasklet"
NOTHING = {"total_ios": 0, "io_bytes": 0, "runtime": 0}


def fio(reads: int, error: int = 0) -> str:
    latency = {"mean": 150000.0, "percentile": {"50.000000": 120000, "99.000000": 900000, "99.900000": 2500000}}
    read = {"total_ios": reads, "io_bytes": reads * 4096, "runtime": 250, "clat_ns": latency if reads else {}}
    job = {"error": error, "job options": {"numjobs": "4"}, "read": read, "write": NOTHING, "sync": NOTHING}
    return f"begin\tfio\n{json.dumps({'fio version': 'fio-3.33', 'jobs': [job]}, indent=1)}\nend\tfio\n"


COMMAND = (
    "command\tfio --name=readers --filename=/mnt/wqlab-erofs/data --rw=read:12k --bs=4k --ioengine=psync --direct=0"
    " --fadvise_hint=random --invalidate=0 --readonly --allow_file_create=0 --numjobs=4 --size=4096k"
    " --offset_increment=4096k --number_ios=125 --group_reporting\n"
)
HEAD = f"setting\tverify\ttasklet\nsetting\tsync_decompress\toff\n{COMMAND}"
TAIL = "setting_after\tverify\ttasklet\nsetting_after\tsync_decompress\toff\n"
UNTRACED = f"""\
{HEAD}{fio(500)}value	cpu_busy_seconds	0.20
value	context_switches	1500
value	cpu_utilisation	40.0
{TAIL}"""
TRACED = f"""\
{HEAD}{fio(500)}begin	pairs
0 0 300
1 1 350
2 3 150
2 0 200
end	pairs
begin	histogram queue_to_start_us
7 950
1230 50
end	histogram queue_to_start_us
value	verify_works	20
value	bh_works	505
value	decompress_works	475
value	prefetch_works	505
value	works_queued	1505
value	works_started	1505
{TAIL}"""


def measured(text: str, traced: bool) -> Measurement:
    return collect(text, "verity_erofs", plan("verity-erofs"), device(4, 2), traced, setting=SETTING)


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


def test_works_are_counted_per_read_and_by_place() -> None:
    """CPUs 0-1 and 2-3 share an L3: 300 + 350 + 150 of 1000 works stay there, 300 + 350 on their CPU."""
    found = measured(TRACED, True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "works_per_1000_reads": 2000,
        "bh_works_per_1000_reads": 1010,
        "verify_works_per_1000_reads": 40,
        "decompress_works_per_1000_reads": 950,
        "prefetch_works_per_1000_reads": 1010,
        "local_cpu_share": 65,
        "local_l3_share": 80,
        "local_l3_by_chance": 50,
        "queue_to_start_p50_us": 7,
        "queue_to_start_p99_us": 1230,
    }


def test_latency_is_that_of_fio() -> None:
    found = measured(UNTRACED, False)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "readers": 4,
        "read_p50": 120,
        "read_p99": 900,
        "read_p999": 2500,
        "reads_per_second": 2000,
        "context_switches_per_1000_reads": 3000,
        "cpu_us_per_read": 400,
        "cpu_utilisation": 40,
    }
    assert found.facts["fio"] == "fio-3.33"


def test_operations_are_reads() -> None:
    assert verity_erofs.operations(read_records(UNTRACED))["reads"].number == 500


@pytest.mark.parametrize("traced", [True, False])
def test_reads_that_were_not_done_are_not_measured(traced: bool) -> None:
    text = (TRACED if traced else UNTRACED).replace(fio(500), fio(499))
    not_measured(measured(text, traced), "fio completed 499 of 500 reads and writes")


@pytest.mark.parametrize("traced", [True, False])
def test_error_of_fio_gives_no_values(traced: bool) -> None:
    """5 is EIO, with which dm-verity refuses a block."""
    text = (TRACED if traced else UNTRACED).replace(fio(500), fio(17, error=5))
    not_measured(measured(text, traced), "fio failed with error 5")


@pytest.mark.parametrize("traced", [True, False])
def test_wrong_content_is_the_kernels_failure(traced: bool) -> None:
    text = f"{TRACED if traced else UNTRACED}failed\tkernel\t/mnt/wqlab-erofs/data has other content than was written\n"
    found = measured(text, traced)
    assert found.values == {}
    assert found.failure and found.failure.kind is ErrorKind.KERNEL


def test_works_that_did_not_start_are_not_measured() -> None:
    text = TRACED.replace("works_started\t1505", "works_started\t1400")
    not_measured(measured(text, True), "1505 works were queued, and 1400 of them started")


def test_kernel_that_verifies_without_works_has_counts_only() -> None:
    """As with bottom halves that verify in the interrupt's softirq itself."""
    text = re.sub(r"^\d+ (\d+ )?\d+\n", "", TRACED, flags=re.MULTILINE)
    text = re.sub(r"(verify|bh|decompress)_works\t\d+", r"\1_works\t0", text)
    text = re.sub(r"works_(queued|started)\t1505", r"works_\1\t505", text)
    found = measured(text, True)
    assert found.failure is None
    assert found.values == {
        "works_per_1000_reads": 0,
        "bh_works_per_1000_reads": 0,
        "verify_works_per_1000_reads": 0,
        "decompress_works_per_1000_reads": 0,
        "prefetch_works_per_1000_reads": 1010,
    }
    assert {reason for _, reason in found.unsupported} == {"no work verified or decompressed"}
    not_measured(measured(text.replace("end\tpairs", "0 0 1\nend\tpairs"), True), "there are pairs of CPUs that did")


@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("2 0 200\n", "2 0 199\n", "pairs has 999 works instead of 1000"),
        ("7 950\n", "7 949\n", "999 of 1000 works were seen to start, and 1505 of 1505 of all functions"),
        ("bh_works\t505", "bh_works\t504", "1000 of 999 works were seen to start"),
        ("prefetch_works\t505", "prefetch_works\t506", "1506 works of single functions .* 1505 in total"),
        ("works_started\t1505", "works_started\t1506", "1505 works were queued, and 1506 of them started"),
    ],
)
def test_places_and_waits_are_those_of_all_works(text: str, instead: str, reason: str) -> None:
    assert TRACED.count(text) == 1
    not_measured(measured(TRACED.replace(text, instead), True), reason)


def test_trace_without_any_work_gives_no_values() -> None:
    found = measured(re.sub(r"works(_\w+)?\t\d+", r"works\1\t0", TRACED), True)
    assert (found.values, found.failure) == ({}, None)
    assert {reason for _, reason in found.unsupported} == {"no work of dm-verity or erofs was seen"}


def test_kernel_threads_of_erofs_leave_the_other_counts() -> None:
    reason = "this kernel's erofs decompresses on kernel threads of its own"
    text = TRACED.replace("decompress_works\t475", "decompress_works\t0").replace("\t1505", "\t1030")
    text = text.replace("7 950\n", "7 475\n").replace("1 1 350\n2 3 150\n", "1 1 25\n")
    found = measured(f"unsupported\tdecompress_works_per_1000_reads\t{reason}\n{text}", True)
    assert found.unsupported == [("decompress_works_per_1000_reads", reason)]
    assert found.values["verify_works_per_1000_reads"] == 40


def test_lost_events_give_no_values() -> None:
    assert measured(f"{TRACED}overrun\t3\n", True).values == {}


@pytest.mark.parametrize(
    "reason",
    ["this kernel has no module dm_verity", "kernel 6.12.117 refuses try_verify_in_tasklet: Unrecognized feature"],
)
def test_kernel_that_lacks_something_is_unsupported(reason: str) -> None:
    assert measured(f"unsupported\t*\t{reason}\n", True).unsupported == [(None, reason)]


def test_setting_that_the_device_does_not_have_is_unsupported() -> None:
    found = measured(TRACED.replace("setting\tverify\ttasklet", "setting\tverify\tdefault"), True)
    assert found.values == {}
    assert [reason for _, reason in found.unsupported] == ["verify=tasklet was requested, the kernel used default"]


@pytest.mark.parametrize("traced", [True, False])
def test_output_cut_off_anywhere_never_gives_another_figure(traced: bool) -> None:
    text = TRACED if traced else UNTRACED
    good = measured(text, traced).values
    for end in range(len(text)):
        found = measured(text[:end], traced)
        assert found.values in ({}, good), text[:end]
