"""Figures count only if the work that was asked for was done: recorded outputs, altered so that some is missing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect, parser, read_records
from wqlab_worker.measure.parsers.fio_command import Asked, read_command

from .test_recorded import DEFAULTS, RECORDED, RYZEN, XEON, device, plan

CRYPT = (RECORDED / "dm-24cpu-untraced.txt").read_text()
"""480 I/Os of 8 jobs; 267 are writes."""
CRYPT_TRACED = (RECORDED / "dm-24cpu-cache.txt").read_text()
FSYNC = (RECORDED / "xfs-32cpu-untraced.txt").read_text()
"""16 files of 128 blocks; 65 fsyncs for each."""
WRITES = (RECORDED / "aio-2cpu-untraced.txt").read_text()
"""3072 writes of 4 KiB by one writer in 12.19 s."""
NETPERF = (RECORDED / "netperf-2cpu-untraced.txt").read_text()
"""1007 messages of 4096 bytes in 2.12 s."""
LOAD = (RECORDED / "cmwq-2cpu.txt").read_text()
TINY = device(2, 1)


def altered(text: str, **changes: object) -> str:
    """Return the output with other entries in its fio result, such as `read__total_ios=3`."""
    head, frame, tail = re.split(r"(?<=begin\tfio\n)(.*?)(?=end\tfio\n)", text, flags=re.DOTALL)
    result: dict[str, Any] = json.loads(frame[frame.index("{") :])
    for place, value in changes.items():
        *path, last = place.split("__")
        part = result["jobs"][0]
        for name in path:
            part = part[name]
        part[last] = value
    return f"{head}{json.dumps(result)}\n{tail}"


def crypt(text: str, traced: bool = False) -> Measurement:
    return collect(text, "dm_crypt_affinity", plan("dm-crypt-affinity"), RYZEN, traced)


def fsync(text: str) -> Measurement:
    return collect(text, "xfs_fsync", plan("xfs-fsync"), XEON, False)


def not_done(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary == f"not measured: {reason}"


def test_unaltered_outputs_are_measured() -> None:
    for found in (crypt(altered(CRYPT)), crypt(altered(CRYPT_TRACED), traced=True), fsync(altered(FSYNC))):
        assert found.failure is None
        assert found.values


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"read__total_ios": 479}, "fio read back 266 of the 267 blocks that it wrote"),
        ({"read__total_ios": 213}, "fio read back 0 of the 267 blocks that it wrote"),
        ({"read__total_ios": 212}, "fio completed 212 reads and 267 writes of 480 operations"),
        ({"write__total_ios": 481}, "fio completed 480 reads and 481 writes of 480 operations"),
    ],
)
def test_blocks_that_were_not_read_back_are_a_failure(changes: dict[str, object], reason: str) -> None:
    not_done(crypt(altered(CRYPT, **changes)), reason)


def test_traced_repetition_with_missing_work_is_a_failure() -> None:
    found = crypt(altered(CRYPT_TRACED, read__total_ios=900), traced=True)
    not_done(found, "fio read back 437 of the 497 blocks that it wrote")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"write__total_ios": 2047}, "fio completed 2047 of 2048 reads and writes"),
        ({"write__io_bytes": 7 << 20}, "fio moved 7.00 of 8.00 MiB"),
        ({"sync__total_ios": 1023}, "fio completed 1023 fsyncs for 2048 writes, fewer than 1024"),
    ],
)
def test_writes_and_fsyncs_that_are_missing_are_a_failure(changes: dict[str, object], reason: str) -> None:
    not_done(fsync(altered(FSYNC, **changes)), reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"write__total_ios": 3071}, "fio completed 3071 of 3072 reads and writes"),
        ({"write__io_bytes": 11 << 20}, "fio moved 11.00 of 12.00 MiB"),
    ],
)
def test_writes_of_the_one_writer_that_are_missing_are_a_failure(changes: dict[str, object], reason: str) -> None:
    text = altered(WRITES, **changes)
    not_done(collect(text, "aio_migration", plan("aio-migration"), TINY, False, setting=DEFAULTS), reason)


@pytest.mark.parametrize(("seconds", "complete"), [(2, True), (60, False)])
def test_run_that_ended_early_is_a_failure(seconds: int, complete: bool) -> None:
    """The recorded run took 2.19 s."""
    text = CRYPT.replace("--number_ios=60", f"--runtime={seconds} --time_based")
    if complete:
        assert crypt(text).failure is None
    else:
        not_done(crypt(text), f"fio ran for 2.2 of {seconds} s")


def test_wrong_data_is_the_kernels_failure_also_if_work_is_missing() -> None:
    failure = crypt(altered(CRYPT, error=84, read__total_ios=300)).failure
    assert failure is not None
    assert failure.kind is ErrorKind.KERNEL


HEALTH = (
    "fio --name=health --filename=/dev/nullb0 --direct=1 --rw=randwrite --bs=4k --size=4m --ioengine=libaio "
    "--iodepth=8 --group_reporting --verify=crc32c"
)


@pytest.mark.parametrize(("verified", "passed"), [(1024, True), (1000, False)])
def test_health_check_needs_each_block_back(verified: int, passed: bool) -> None:
    fio = altered(CRYPT, read__total_ios=verified, write__total_ios=1024)
    text = re.sub(r"command\t.*", f"command\t{HEALTH}", fio) + "fact\thealthy\tyes\n"
    found = parser("health_check")(read_records(text), RYZEN, False)
    if passed:
        assert found.failure is None
    else:
        not_done(found, "fio read back 1000 of the 1024 blocks that it wrote")


WRITER = "fio --name=writer --filename=/mnt/file --rw=randwrite --bs=4k --size=12m --ioengine=libaio --iodepth=64"


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (WRITER, Asked(operations=3072, bytes=12 << 20)),
        (f"{WRITER} --runtime=48ms --time_based", Asked(seconds=0.048, operations=3072, bytes=12 << 20)),
        (f"{WRITER} --runtime=30 --time_based", Asked(seconds=30, operations=3072, bytes=12 << 20)),
        (HEALTH, Asked(operations=1024, bytes=4 << 20, verified=True)),
        (f"{HEALTH} --do_verify=0", Asked(operations=1024, bytes=4 << 20)),
        (f"{WRITER} --number_ios=9999", Asked(operations=3072, bytes=12 << 20)),
        (f"{WRITER} --verify=crc32c --do_verify=0", Asked(operations=3072, bytes=12 << 20)),
        (f"{WRITER} --exec_prerun='sh /x writer_starts $PPID'", Asked(operations=3072, bytes=12 << 20)),
        ("netperf -4", None),
        ("", None),
    ],
)
def test_command_line_of_fio_is_read(command: str, asked: Asked | None) -> None:
    assert read_command(command) == asked


@pytest.mark.parametrize("command", ["fio --name=a --bs=4k", "fio --name=a --size=10% --bs=4k", "fio --name='a"])
def test_unclear_command_line_is_not_measured(command: str) -> None:
    found = crypt(re.sub(r"command\t.*", f"command\t{command}", CRYPT))
    assert found.failure is not None
    assert "fio's command line does not say what it asks for" in found.failure.summary


def netperf(**changes: object) -> Measurement:
    text = NETPERF
    for name, value in changes.items():
        text, times = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
        assert times == 1
    return collect(text, "netperf_stream", plan("netperf-stream"), TINY, False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"REMOTE_BYTES_RECVD": 0}, "netperf sent 4124672 bytes, and none arrived"),
        ({"ELAPSED_TIME": "1.20"}, "netperf ran for 1.20 of 2 s"),
        ({"LOCAL_SEND_CALLS": 900}, "netperf sent 4124672 bytes in 900 messages of 4096 bytes"),
        ({"REMOTE_BYTES_RECVD": 4124672 + 4097}, "netperf sent 4124672 bytes, and 4128769 arrived"),
    ],
)
def test_stream_that_is_not_the_requested_one_is_a_failure(changes: dict[str, object], reason: str) -> None:
    not_done(netperf(**changes), reason)


def test_part_of_a_message_counts_at_the_receiver_only() -> None:
    assert netperf(REMOTE_BYTES_RECVD=4124672 + 4095).failure is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOAD.replace("workload 0", "workload 2"), "the module's result is for workload 2, and 0 was requested"),
        (LOAD.replace("seed 1\n", ""), "the module's result is for seed None, and 1 was requested"),
        (re.sub("fact\tencoded\t.*", "fact\tencoded\t", LOAD), "the encoder wrote nothing"),
    ],
)
def test_load_that_is_not_the_requested_one_is_a_failure(text: str, reason: str) -> None:
    not_done(collect(text, "cmwq_load", plan("cmwq-load"), TINY, False), reason)


def test_benchmark_with_another_number_of_items_is_a_failure() -> None:
    lines = "test_workqueue: running 2 threads, 100 items/thread\n"
    lines += "test_workqueue:   cpu              9682 items/sec\tp50=2278\tp90=3092\tp95=3796 ns\n"
    counted = "value\tcpu_utilisation\t50\nvalue\tcontext_switches\t1000\n"
    text = f"command\tinsmod test_workqueue.ko wq_items=200\nbegin\tbenchmark\n{lines}end\tbenchmark\n{counted}"
    found = collect(text, "test_workqueue", plan("test-workqueue"), TINY, False)
    not_done(found, "the benchmark queued 100 items a thread, and 200 were requested")
