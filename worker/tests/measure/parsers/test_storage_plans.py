"""Parser of plan xfs-inodegc, with recorded output and that of broken kernels.

The outputs are those of an emulated device with two CPUs and Linux 6.12.117.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers import xfs_inodegc

from .test_recorded import RECORDED, device, plan
from .test_work_done import altered, not_done

TINY = device(2, 1)
UNLINK = (RECORDED / "xfs-inodegc-2cpu-untraced.txt").read_text()
"""400 files of one block, unlinked by 4 jobs in 1.468 s."""
UNLINK_TRACED = (RECORDED / "xfs-inodegc-2cpu.txt").read_text()
"""The same with a trace: 7 works."""


def unlink(text: str, traced: bool = False) -> Measurement:
    return collect(text, "xfs_inodegc", plan("xfs-inodegc"), TINY, traced)


def with_values(text: str, **values: int) -> str:
    """The recorded output with other values."""
    for name, value in values.items():
        text, times = re.subn(rf"^value\t{name}\t.*$", f"value\t{name}\t{value}", text, flags=re.MULTILINE)
        assert times == 1
    return text


def test_works_that_free_inodes_are_read() -> None:
    found = unlink(UNLINK_TRACED, traced=True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "works_per_1000_files": 17.5,
        "local_cpu_share": 100,
        "local_l3_share": 100,
        "freed_at_home_share": 100,
        "throttled_per_1000_files": 0,
        "deferred_share": 100,
        "queueings_per_work": 36,
        "largest_batch": 103,
        "freed_after_p50_us": 12_200_000,
        "freed_after_p99_us": 23_700_000,
    }


def test_rate_and_latency_of_unlink_are_read() -> None:
    found = unlink(UNLINK)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == pytest.approx(
        {
            "files_per_second": 400 / 1.468,
            "stalls_per_1000_files": 115,  # 46 of 400
            "unlink_mean": 7015.50245,
            "unlink_p50": 84.48,
            "unlink_p99": 137363.456,
            "unlink_p999": 240123.904,
            "cpu_us_per_file": 4850,  # 1.94 s
            "cpu_utilisation": 28.8262,
            "context_switches": 897,
        }
    )
    assert found.command is not None and "--ioengine=filedelete" in found.command


@pytest.mark.parametrize(
    ("values", "metric", "value"),
    [
        ({"inactivated_at_home": 100}, "freed_at_home_share", 25),
        ({"throttled": 6}, "throttled_per_1000_files", 15),
    ],
)
def test_other_kernels_have_other_counts(values: dict[str, int], metric: str, value: float) -> None:
    assert unlink(with_values(UNLINK_TRACED, **values), traced=True).values[metric] == value


def test_each_file_may_take_a_work() -> None:
    text = with_values(UNLINK_TRACED.replace("\n1 1 4\n", "\n1 1 397\n"), works=400)
    assert unlink(text, traced=True).values["works_per_1000_files"] == 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (UNLINK_TRACED.replace("\n1 1 4\n", "\n"), "pairs has 3 works instead of 7"),
        (with_values(UNLINK_TRACED, works=8), "pairs has 7 works instead of 8"),
        (
            re.sub(r"(begin\thistogram freed_after_us\n).*?(end\t)", r"\g<1>7 1\n\2", UNLINK_TRACED, flags=re.DOTALL),
            "histogram freed_after_us has 1 counts instead of 400",
        ),
        (with_values(UNLINK_TRACED, inactivated_at_home=800), "inodes freed at home: 800 of 400"),
        (
            re.sub(
                r"(begin\thistogram freed_after_us\n).*?(end\t)",
                r"\g<1>7 800\n\2",
                with_values(UNLINK_TRACED, unlinked=800, inactivated=800),
                flags=re.DOTALL,
            ),
            "files left to a work: 800 of 400",
        ),
        (with_values(UNLINK_TRACED, inactivated=401), "works freed 401 of the 400 inodes that were left to them"),
    ],
)
def test_places_and_waits_are_those_of_all_works(text: str, reason: str) -> None:
    not_done(unlink(text, traced=True), reason)


def test_works_on_other_cpus_are_not_local() -> None:
    text = UNLINK_TRACED.replace("\n1 1 4\n", "\n1 0 4\n")
    assert unlink(text, traced=True).values["local_cpu_share"] == pytest.approx(100 * 3 / 7)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (altered(UNLINK, read__total_ios=399), "fio unlinked 399 of 400 files"),
        (with_values(UNLINK, files_left=3), "3 of 400 files were still there after they were unlinked"),
    ],
)
def test_files_that_were_not_unlinked_are_not_measured(text: str, reason: str) -> None:
    not_done(unlink(text), reason)


def test_inodes_that_were_never_freed_are_not_measured() -> None:
    text = with_values(UNLINK_TRACED, inactivated=398)
    not_done(unlink(text, traced=True), "works freed 398 of the 400 inodes that were left to them")


def test_incomplete_histogram_has_no_stalls() -> None:
    found = unlink(altered(UNLINK, read__clat_ns__bins={"84480": 399}))
    assert "stalls_per_1000_files" not in found.values
    assert "fio's histogram has 399 of 400 operations" in str(found)


def test_kernel_that_frees_in_unlink_is_unsupported() -> None:
    reason = "this kernel has no event xfs_inode_set_need_inactive: before Linux 5.14 unlink() frees inodes itself"
    text = UNLINK_TRACED[: UNLINK_TRACED.index("begin\tpairs")] + f"unsupported\ttraced\t{reason}\n"
    found = unlink(text, traced=True)
    assert found.failure is None
    assert {str(why) for _, why in found.unsupported} == {reason}


def test_failure_of_fio_is_the_labs() -> None:
    found = unlink(altered(UNLINK, error=5, read__total_ios=7))
    assert found.failure and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary == "fio failed with error 5"


def test_operations_are_files() -> None:
    assert xfs_inodegc.operations(read_records(UNLINK))["files"].number == 400
