"""Run the plans of other subsystems (WireGuard, NVMe over TCP, btrfs, dm-verity and erofs) on the smallest device.

They need kernels of another recipe. By day, worker/tests/plans/ runs their scripts without a device.
"""

from __future__ import annotations

import pytest

from .conftest import NOOP, Lab, scenarios
from .plan_reports import facts, samples, target, values

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]
VERIFY = ("default", "tasklet")


def test_packets_pass_the_tunnel_and_none_is_lost(lab: Lab) -> None:
    report = lab.finish(
        lab.submit(
            *("--mbox", str(NOOP), "--blocks", "1"),
            *("--target", "wireguard@tiny", *scenarios("tcp-one-stream", "udp-1392")),
            *("--setting", "unbound_cpus=default", "--setting", "unbound_cpus=half"),
        )
    )
    rows = samples(lab, report, "wireguard")
    assert target(report, "wireguard")["unsupported"] == []
    received = values(rows, "recv")
    assert {key[2] for key in received} == {"tcp-one-stream", "udp-1392"}
    assert {key[3] for key in received} == {"unbound_cpus=default", "unbound_cpus=half"}
    assert all(mbits > 0 for mbits in received.values())
    assert set(values(rows, "packets_lost").values()) == {0}
    # Each packet is encrypted once and decrypted once, so two works serve it at most.
    assert all(0 < works <= 2000 for works in values(rows, "crypt_works_per_1000_packets").values())
    assert all(works >= 2 for works in values(rows, "handshake_works").values()), "one sent and one received"
    assert all(0 <= share <= 100 for share in values(rows, "local_cpu_share").values())


def test_pages_are_verified_and_decompressed(lab: Lab) -> None:
    settings = [f"sync_decompress={sync},verify={verify}" for sync in ("default", "off") for verify in VERIFY]
    report = lab.finish(
        lab.submit(
            *("--mbox", str(NOOP), "--blocks", "1"),
            *("--target", "verity-erofs@tiny", *scenarios("verity-one", "erofs-fourfold")),
            *(word for setting in settings for word in ("--setting", setting)),
        )
    )
    rows = samples(lab, report, "verity-erofs")
    assert target(report, "verity-erofs")["unsupported"] == []
    rates = values(rows, "reads_per_second")
    assert {key[2:4] for key in rates} == {
        (name, each) for name in ("verity-one", "erofs-fourfold") for each in settings
    }
    assert all(rate > 0 for rate in rates.values())
    readers = values(rows, "readers")
    assert {(key[2], number) for key, number in readers.items()} == {("verity-one", 1), ("erofs-fourfold", 8)}
    verified, halves = values(rows, "verify_works_per_1000_reads"), values(rows, "bh_works_per_1000_reads")
    for key, number in halves.items():
        if key[3].endswith("verify=default"):
            assert number == 0 and verified[key] >= 1000, "a work verifies each read"
        else:
            assert number >= 1000 and verified[key] <= number, "a work takes over what a bottom half gave up"
    for (_, _, scenario, setting, _), number in values(rows, "decompress_works_per_1000_reads").items():
        if scenario == "verity-one":
            assert number == 0
        elif setting.startswith("sync_decompress=off"):
            assert number >= 1000, "kernels of this recipe do not count preemption, so erofs queues a work"
        else:
            assert number < 1000, "readers decompress, except at the beginning"
    # Works that verify are per-CPU.
    shares = values(rows, "local_cpu_share")
    assert {share for key, share in shares.items() if key[2] == "verity-one"} == {100}
    assert all(0 <= share <= 100 for share in shares.values())
    [checked] = {text for name, text in facts(report, "verity-erofs").items() if name == "corruption check"}
    assert checked.endswith("refused and reported (verify: default, tasklet)")


def test_works_of_both_ends_carry_io_over_nvme_tcp(lab: Lab) -> None:
    """The script verifies the data."""
    settings = ("wq_unbound=default", "wq_unbound=N", "wq_unbound=Y")
    report = lab.finish(
        lab.submit(
            *("--mbox", str(NOOP), "--blocks", "1"),
            *("--target", "nvme-tcp@tiny", *scenarios("read-1", "write-16")),
            *(word for setting in settings for word in ("--setting", setting)),
        )
    )
    rows = samples(lab, report, "nvme-tcp")
    assert target(report, "nvme-tcp")["unsupported"] == []
    rates = values(rows, "iops")
    assert {key[2] for key in rates} == {"read-1", "write-16"}
    assert {key[3] for key in rates} == set(settings)
    assert all(rate > 0 for rate in rates.values())
    medians, tails = values(rows, "latency_p50"), values(rows, "latency_p99")
    assert all(0 < median <= tails[key] for key, median in medians.items())
    both, of_host, of_target = (values(rows, f"{end}works_per_1000_ios") for end in ("", "host_", "target_"))
    assert len(both) == 2 * len(settings) * 2, "of each kernel, in each setting and scenario"
    for key, works in both.items():
        assert min(of_host[key], of_target[key]) > 0, key
        assert works == pytest.approx(of_host[key] + of_target[key], abs=0.1), key
    assert all(0 <= share <= 100 for share in values(rows, "host_local_cpu_share").values())


def test_compressed_writes_start_works_of_btrfs_and_nothing_is_damaged(lab: Lab) -> None:
    """The script fails if a scrub finds an error, or a block is read back with another content."""
    report = lab.finish(
        lab.submit(
            *("--mbox", str(NOOP), "--blocks", "1", "--target", "btrfs@tiny"),
            *("--setting", "scope=default", "--setting", "scope=cpu"),
        )
    )
    rows = samples(lab, report, "btrfs")
    works = values(rows, "works_per_mib")
    assert {key[2:4] for key in works} == {
        (scenario, f"scope={scope}") for scenario in ("write", "write-scrub-balance") for scope in ("default", "cpu")
    }
    assert all(count > 0 for count in (*works.values(), *values(rows, "bandwidth").values()))
    assert all(0 < share < 100 for share in values(rows, "stored_share").values())
    assert all(0 <= share <= 100 for share in values(rows, "compressing_l3_share").values())
    # One node: all workers are on it.
    assert values(rows, "workers_per_node") == values(rows, "workers")
    beside = [values(rows, name) for name in ("scrubs", "balances", "relocated_chunks")]
    assert {key[2] for counted in beside for key in counted} == {"write-scrub-balance"}
    assert all(count > 0 for counted in beside for count in counted.values())
