"""Parser nvme_tcp: each value is correct or not measured. The output is written by hand, as the script prints it."""

from __future__ import annotations

import json

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers.nvme_tcp import operations

from .test_recorded import device, plan

COMMAND = (
    "fio --name=nvme-tcp --filename=/dev/nvme0n1 --direct=1 --rw=rand{way} --bs=4k --ioengine=libaio --iodepth=16"
    " --numjobs=2 --size=4096k --offset_increment=4096k --group_reporting --verify=crc32c"
)
LATENCY = {"mean": 812.5, "percentile": {"50.000000": 700000, "99.000000": 2500000, "99.900000": 4000000}}
NONE = {"total_ios": 0, "io_bytes": 0, "runtime": 0, "clat_ns": {}}


def stream(ios: int) -> dict[str, object]:
    return {"total_ios": ios, "io_bytes": ios * 4096, "runtime": 1500, "clat_ns": LATENCY}


def output(way: str = "read", ios: int = 600, traced: bool = False, error: int = 0, other: int = 0) -> str:
    """Return the script's output for `ios` operations in the scenario's direction and `other` in the opposite one."""
    opposite = "write" if way == "read" else "read"
    job = {
        "error": error,
        "job options": {"numjobs": "2"},
        way: stream(ios) if ios else NONE,
        opposite: stream(other) if other else NONE,
        "sync": {"total_ios": 0},
    }
    arguments = COMMAND.format(way=way) + (" --do_verify=0" if way == "write" else "") + " --number_ios=300"
    result = json.dumps({"fio version": "fio-3.33", "jobs": [job]})
    moved = {"read": 0, "written": 0} | {"read" if way == "read" else "written": 600 * 4096}
    lines = [
        "setting\twq_unbound\tdefault",
        f"command\t{arguments}",
        f"begin\tfio\n{result}\nend\tfio",
        *(f"value\ttarget_{name}_bytes\t{amount}" for name, amount in moved.items()),
        TRACE if traced else "value\tcpu_busy_seconds\t1.2\nvalue\tcontext_switches\t4200\nvalue\tcpu_utilisation\t40",
        *(["value\tdisk_bytes\t8388608", "value\tread_back_bytes\t8388608"] if way == "write" else []),
        "setting_after\twq_unbound\tdefault",
    ]
    return "\n".join(lines) + "\n"


TRACE = """\
begin	pairs target
0 0 500
1 1 100
end	pairs target
begin	histogram target_queue_to_start_us
30 590
900 10
end	histogram target_queue_to_start_us
value	target_works_queued	601
value	target_works	600
begin	pairs host
0 0 600
0 1 300
2 0 300
end	pairs host
begin	histogram host_queue_to_start_us
20 1180
1230 20
end	histogram host_queue_to_start_us
value	host_works_queued	1200
value	host_works	1200"""


def measured(text: str, traced: bool = False) -> Measurement:
    return collect(text, "nvme_tcp", plan("nvme-tcp"), device(4, 2), traced, setting="wq_unbound=default")


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary == f"not measured: {reason}"


@pytest.mark.parametrize("way", ["read", "write"])
def test_works_are_counted_by_end_and_place(way: str) -> None:
    """CPUs 0-1 and 2-3 share an L3: 900 of the host's 1200 works stay there, 600 on their CPU."""
    found = measured(output(way, traced=True), True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "works_per_1000_ios": 3000,
        "host_works_per_1000_ios": 2000,
        "host_local_cpu_share": 50,
        "host_local_l3_share": 75,
        "host_local_l3_by_chance": 50,
        "host_queue_to_start_p50_us": 20,
        "host_queue_to_start_p99_us": 1230,
        "target_works_per_1000_ios": 1000,
        "target_local_cpu_share": 100,
        "target_local_l3_share": 100,
        "target_local_l3_by_chance": 50,
        "target_queue_to_start_p50_us": 30,
        "target_queue_to_start_p99_us": 900,
    }


@pytest.mark.parametrize("way", ["read", "write"])
def test_rate_and_latency_are_those_of_the_scenarios_direction(way: str) -> None:
    found = measured(output(way))
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "iops": 400,
        "latency_p50": 700,
        "latency_p99": 2500,
        "latency_p999": 4000,
        "context_switches_per_1000_ios": 7000,
        "cpu_us_per_io": pytest.approx(2000),
        "cpu_utilisation": 40,
    }
    assert found.facts["fio"] == "fio-3.33"
    assert operations(read_records(output(way)))["ios"].number == 600


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("_read_bytes\t2457600", "_read_bytes\t2457599", "fio has read 2457600 bytes, and the target's disk 2457599"),
        ("_written_bytes\t2457600", "_written_bytes\t0", "fio has written 2457600 bytes, and the target's disk 0"),
        (
            "read_back_bytes\t8388608",
            "read_back_bytes\t8384512",
            "8384512 of the 8388608 bytes of the namespace were read back and verified",
        ),
        (
            "--number_ios=300 ",
            "--runtime=15 --time_based ",
            "fio ran for 1.5 of 15 s",
        ),
    ],
)
def test_work_that_was_not_done_is_not_measured(text: str, instead: str, reason: str, traced: bool) -> None:
    way = "read" if "_read_bytes" in text or "number" in text else "write"
    whole = output(way, traced=traced).replace("--number_ios=300", "--number_ios=300 ")
    assert text in whole
    not_measured(measured(whole.replace(text, instead), traced), reason)


@pytest.mark.parametrize("traced", [True, False])
def test_missing_operations_are_not_measured(traced: bool) -> None:
    missing = output("read", ios=599, traced=traced)
    not_measured(measured(missing, traced), "fio completed 599 reads and 0 writes of 600 operations")
    missing = output("write", ios=599, traced=traced)
    not_measured(measured(missing, traced), "fio completed 599 of 600 reads and writes")


def test_both_directions_at_once_are_not_measured() -> None:
    not_measured(measured(output("write", other=7)), "fio completed 7 reads beside 600 writes")


def test_wrong_data_is_the_kernels_failure() -> None:
    failure = measured(output(error=84)).failure
    assert failure is not None
    assert failure.kind is ErrorKind.KERNEL


def test_works_that_did_not_start_are_not_measured() -> None:
    text = output(traced=True).replace("target_works\t600", "target_works\t590")
    not_measured(measured(text, True), "601 works of the target were queued, and 590 of them started")


@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ("1 1 100\n", "1 1 99\n", "pairs target has 599 works instead of 600"),
        ("0 1 300\n", "", "pairs host has 900 works instead of 1200"),
        ("30 590\n", "", "histogram target_queue_to_start_us has 10 counts instead of 600"),
        ("1230 20\n", "1230 21\n", "histogram host_queue_to_start_us has 1201 counts instead of 1200"),
        ("host_works\t1200", "host_works\t1201", "1200 works of the host were queued, and 1201 of them started"),
    ],
)
def test_places_and_waits_are_those_of_all_works(text: str, instead: str, reason: str) -> None:
    whole = output(traced=True)
    assert whole.count(text) == 1
    not_measured(measured(whole.replace(text, instead), True), reason)


def test_one_end_without_works_has_no_values() -> None:
    """As of a kernel whose works have another name."""
    text = output(traced=True).replace("0 0 500\n1 1 100\n", "").replace("30 590\n900 10\n", "")
    found = measured(text.replace("_works\t600", "_works\t0").replace("_queued\t601", "_queued\t0"), True)
    assert found.values == {}
    assert found.failure is None
    assert {reason for _, reason in found.unsupported} == {"no work item was seen from queue to start"}


def test_lost_events_give_no_values() -> None:
    assert measured(f"{output(traced=True)}overrun\t3\n", True).values == {}


def test_kernel_without_the_module_is_unsupported() -> None:
    found = measured("unsupported\t*\tthis kernel has no module nvmet_tcp\n")
    assert found.unsupported == [(None, "this kernel has no module nvmet_tcp")]


@pytest.mark.parametrize("traced", [True, False])
def test_output_cut_off_anywhere_never_gives_another_figure(traced: bool) -> None:
    text = output("write", traced=traced)
    good = measured(text, traced).values
    for end in range(len(text)):
        found = measured(text[:end], traced)
        assert found.values in ({}, good), text[:end]
