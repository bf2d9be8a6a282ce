"""Parser btrfs, with recorded output and that of kernels that do not work.

The script printed the outputs on two CPUs with Linux 6.18, with a loop device instead of the memory disk.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers import btrfs

from .test_recorded import RECORDED, device, plan
from .test_work_done import altered, not_done

WRITE = (RECORDED / "btrfs-2cpu-untraced.txt").read_text()
"""16 MiB by two jobs, alone."""
WRITE_TRACED = (RECORDED / "btrfs-2cpu.txt").read_text()
"""The same with a trace: 426 works."""
BESIDE = (RECORDED / "btrfs-2cpu-scrub-balance-untraced.txt").read_text()
"""The same beside four scrubs and four balances."""
BESIDE_TRACED = (RECORDED / "btrfs-2cpu-scrub-balance.txt").read_text()
"""The same beside eight scrubs and seven balances: 3326 works."""
NO_IDLE = ("idle_while_work_waits_us", "no idle_while_work_waits_us in the output")
"""The traced outputs are of a script that did not count idle CPU time yet."""
OUTPUTS = [(WRITE, False), (WRITE_TRACED, True), (BESIDE, False), (BESIDE_TRACED, True)]
EACH = pytest.mark.parametrize(("text", "traced"), OUTPUTS, ids=["write", "write-traced", "beside", "beside-traced"])


def measured(text: str, traced: bool = False, l3_domains: int = 2) -> Measurement:
    """With two CPUs on two nodes, of a core each, unless they share an L3 domain."""
    topology = device(2, l3_domains, nodes=l3_domains)
    return collect(text, "btrfs", plan("btrfs"), topology, traced, setting="scope=default")


def with_value(text: str, name: str, value: object) -> str:
    text, times = re.subn(rf"^value\t{name}\t.*$", f"value\t{name}\t{value}", text, flags=re.MULTILINE)
    assert times == 1
    return text


def with_frame(text: str, name: str, *lines: str) -> str:
    body = "".join(f"{line}\n" for line in lines)
    text, times = re.subn(f"begin\t{name}\n.*?end\t{name}\n", f"begin\t{name}\n{body}end\t{name}\n", text, flags=re.S)
    assert times == 1
    return text


def test_works_are_counted_by_place_and_worker() -> None:
    """Of 426 works, 226 stayed on CPU 0 and 68 on CPU 1; five workers each started some on either."""
    found = measured(WRITE_TRACED + "value\tidle_while_work_waits_us\t32000\n", traced=True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == pytest.approx(
        {
            "local_cpu_share": 100 * 294 / 426,
            "local_core_share": 100 * 294 / 426,
            "local_l3_share": 100 * 294 / 426,
            "local_node_share": 100 * 294 / 426,
            "local_l3_by_chance": 50,
            "compressing_l3_share": 100 * 22 / 32,
            "works_per_mib": 426 / 16,
            "workers": 7,
            "workers_per_node": 5,
            "busiest_node_workers": 5,
            "queue_to_start_p50_us": 100,
            "queue_to_start_p99_us": 7000,
            "idle_while_work_waits_us": 32_000 / 16,
        }
    )


def test_works_of_scrub_and_balance_are_counted_too() -> None:
    values = measured(BESIDE_TRACED, traced=True).values
    assert values["works_per_mib"] == pytest.approx(3326 / 16)
    assert values["local_l3_share"] == pytest.approx(100 * (5 + 3287) / 3326)
    assert values["compressing_l3_share"] == pytest.approx(100 * 28 / 32)
    assert (values["workers"], values["workers_per_node"], values["busiest_node_workers"]) == (7, (2 + 6) / 2, 6)


def test_works_stay_in_a_domain_that_all_cpus_share() -> None:
    values = measured(WRITE_TRACED, traced=True, l3_domains=1).values
    assert values["local_cpu_share"] == pytest.approx(100 * 294 / 426)
    assert {values[f"local_{level}_share"] for level in ("l3", "node")} == {100}
    assert values["compressing_l3_share"] == values["local_l3_by_chance"] == 100
    assert values["workers_per_node"] == values["busiest_node_workers"] == values["workers"] == 7


def test_nodes_that_the_kernel_does_not_report_have_no_workers() -> None:
    topology = device(2, 1).model_copy(update={"node": [-1, -1]})
    found = collect(WRITE_TRACED, "btrfs", plan("btrfs"), topology, True, setting="scope=default")
    assert found.failure is None
    assert found.values["workers"] == 7
    assert {metric for metric, _ in found.unsupported} == {
        "local_node_share",
        "workers_per_node",
        "busiest_node_workers",
        "idle_while_work_waits_us",
    }


def test_throughput_is_read() -> None:
    found = measured(WRITE)
    assert found.failure is None
    assert found.values == pytest.approx(
        {
            "bandwidth": 16 / 0.59,
            "stored_share": 100 * 8604 / 16384,
            "context_switches_per_mib": 14574 / 16,
            "cpu_seconds_per_gib": 4.64 * 64,
            "cpu_utilisation": 100,
            "write_p50": 214.016,
            "write_p99": 44826.624,
            "write_p999": 108527.616,
        }
    )
    assert {metric: str(why) for metric, why in found.unsupported} == dict.fromkeys(
        btrfs.MAINTENANCE, "counted in scenario write-scrub-balance only"
    )
    assert found.command is not None and found.command.startswith("fio --name=new --directory=/mnt/wqlab-btrfs ")


def test_scrub_and_balance_are_counted() -> None:
    found = measured(BESIDE)
    assert (found.failure, found.unsupported) == (None, [])
    assert {name: found.values[name] for name in btrfs.MAINTENANCE} == {
        "scrubs": 4,
        "balances": 4,
        "relocated_chunks": 13,
    }
    assert found.values["context_switches_per_mib"] == pytest.approx(44870 / 16)


@EACH
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"write__total_ios": 127}, "fio completed 127 of 128 reads and writes"),
        ({"write__io_bytes": 15 << 20}, "fio moved 15.00 of 16.00 MiB"),
    ],
)
def test_writes_that_are_missing_are_not_measured(
    text: str, traced: bool, changes: dict[str, object], reason: str
) -> None:
    not_done(measured(altered(text, **changes), traced), reason)


@EACH
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("stored_kib", 16384, "16.00 MiB are stored for the 16.00 MiB that were written: not compressed"),
        ("stored_kib", 0, "0.00 MiB are stored for the 16.00 MiB that were written: not compressed"),
        ("checked_kib", 8603, "a scrub read 8.40 of the 8.40 MiB that are stored"),
        ("checked_kib", 0, "a scrub read 0.00 of the 8.40 MiB that are stored"),
    ],
)
def test_data_that_was_not_compressed_or_checked_is_not_measured(
    text: str, traced: bool, name: str, value: int, reason: str
) -> None:
    not_done(measured(with_value(text, name, value), traced), reason)


@pytest.mark.parametrize(("text", "traced"), [(BESIDE, False), (BESIDE_TRACED, True)])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("scrubs", "no scrub that began while the files were written has ended"),
        ("balances", "no balance that began while the files were written has ended"),
        ("relocated_chunks", r"\d balances moved no chunk"),
    ],
)
def test_scrub_or_balance_that_did_nothing_is_not_measured(text: str, traced: bool, name: str, reason: str) -> None:
    found = measured(with_value(text, name, 0), traced)
    assert found.values == {}
    assert found.failure and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.fullmatch(f"not measured: {reason}", found.failure.summary)


@EACH
@pytest.mark.parametrize("name", ["stored_kib", "checked_kib"])
def test_missing_check_gives_no_values(text: str, traced: bool, name: str) -> None:
    found = measured(re.sub(rf"^value\t{name}\t.*\n", "", text, flags=re.MULTILINE), traced)
    assert found.values == {}
    assert {str(why) for _, why in found.unsupported} == {f"no value of {name} in the output"}


def test_errors_of_a_scrub_are_the_kernels() -> None:
    text = WRITE[: WRITE.index("value\tchecked_kib")] + "failed\tkernel\tscrub found errors: csum_errors: 3008\n"
    found = measured(text)
    assert found.values == {}
    assert found.failure and found.failure.kind is ErrorKind.KERNEL
    assert found.failure.summary == "scrub found errors: csum_errors: 3008"


def test_failure_of_fio_is_the_labs() -> None:
    found = measured(altered(WRITE, error=28, write__total_ios=3))
    assert found.failure and found.failure.summary == "fio failed with error 28"
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE


def test_kernel_that_compresses_elsewhere_has_its_other_figures() -> None:
    found = measured(with_frame(WRITE_TRACED, "compressing"), traced=True)
    assert found.failure is None
    assert found.unsupported == [("compressing_l3_share", "no work of btrfs-delalloc was seen"), NO_IDLE]
    assert found.values["local_l3_share"] == pytest.approx(100 * 294 / 426)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["7 0 426 1"], "workers: unreadable line '7 0 426 1': "),
        (["7 0 -426"], "workers: unreadable line '7 0 -426': "),
        (["7 5 426"], "workers: unreadable line '7 5 426': "),
        (["x 0 426"], "workers: unreadable line 'x 0 426': "),
        (["7 0 425"], "workers started 425 works, and 426 were counted"),
        ([], "workers started 0 works, and 426 were counted"),
    ],
)
def test_malformed_workers_are_not_measured(lines: list[str], reason: str) -> None:
    found = measured(with_frame(WRITE_TRACED, "workers", *lines), traced=True)
    assert found.values == {}
    assert found.failure and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary.startswith(f"not measured: {reason}")


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("pairs", "0 0 425", "pairs has 425 works instead of 426"),
        ("histogram queue_to_start_us", "7 427", "histogram queue_to_start_us has 427 counts instead of 426"),
        ("compressing", "0 0 427", "427 works of btrfs-delalloc started, and 426 of all workqueues"),
    ],
)
def test_places_and_waits_of_other_works_are_not_measured(name: str, line: str, reason: str) -> None:
    not_done(measured(with_frame(WRITE_TRACED, name, line), traced=True), reason)


@pytest.mark.parametrize(("name", "line"), [("pairs", "0 9 426"), ("compressing", "0 1"), ("compressing", "0 9 32")])
def test_malformed_pairs_are_not_measured(name: str, line: str) -> None:
    found = measured(with_frame(WRITE_TRACED, name, line), traced=True)
    assert found.values == {}
    assert found.failure and found.failure.summary.startswith(f"not measured: {name}: ")


def test_lost_events_give_no_values() -> None:
    assert measured(f"{WRITE_TRACED}overrun\t3\n", traced=True).values == {}


def test_other_scope_than_requested_is_unsupported() -> None:
    found = measured(WRITE.replace("setting_after\tscope\tdefault", "setting_after\tscope\tcpu"))
    assert found.unsupported == [(None, "scope=default was requested, the kernel later used cpu")]


@pytest.mark.parametrize(
    "reason",
    ["this kernel has no module btrfs", "kernel 6.1.192 has no workqueue.default_affinity_scope (Linux 6.5)"],
)
def test_kernel_without_btrfs_or_scopes_is_unsupported(reason: str) -> None:
    found = measured(f"unsupported\t*\t{reason}\n")
    assert (found.failure, found.unsupported) == (None, [(None, reason)])


@EACH
def test_output_cut_off_anywhere_never_gives_another_figure(text: str, traced: bool) -> None:
    good = measured(text, traced)
    ends = [*range(0, len(text), 23), *range(len(text) - 40, len(text))]
    for end in ends:
        assert measured(text[:end], traced).values in ({}, good.values), text[:end][-200:]


def test_operations_are_mebibytes() -> None:
    assert btrfs.operations(read_records(WRITE))["mib"].number == 16
