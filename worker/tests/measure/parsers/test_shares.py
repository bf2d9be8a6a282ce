"""Shares are from 0 to 100, or not measured: of two counts, and of the CPU time in the outputs of all plans."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_worker.measure.collect import NotMeasured, parser, read_records
from wqlab_worker.measure.parsers.shares import cpu_utilisation, share

from .test_nvme_tcp import output as nvme_tcp
from .test_recorded import RECORDED, device
from .test_rt_app import TEXTS as RT_APP
from .test_verity_erofs import UNTRACED as VERITY_EROFS
from .test_wireguard import UNTRACED as WIREGUARD

FILES = {
    "aio_migration": "aio-2cpu-untraced",
    "btrfs": "btrfs-2cpu-untraced",
    "cmwq_load": "cmwq-2cpu",
    "dm_crypt_affinity": "dm-24cpu-untraced",
    "hackbench": "hackbench-2cpu-untraced",
    "max_active": "max-active-2cpu-fan-percpu-4",
    "netperf_stream": "netperf-2cpu-untraced",
    "rt_app": "rt-app-2cpu-untraced",
    "work_latency": "work-latency-2cpu-percpu",
    "xfs_fsync": "xfs-32cpu-untraced",
    "xfs_inodegc": "xfs-inodegc-2cpu-untraced",
}
UNTRACED = {
    **{name: (RECORDED / f"{file}.txt").read_text() for name, file in FILES.items()},
    "nvme_tcp": nvme_tcp(),
    "rt_app_scopes": RT_APP["rt-app-scopes", False],
    "verity_erofs": VERITY_EROFS,
    "wireguard": WIREGUARD,
}
"""Parser -> output of an untraced repetition."""


@given(st.integers(0, 10**18), st.integers(1, 10**18))
def test_share_is_at_most_the_whole(part: int, whole: int) -> None:
    if part <= whole:
        assert 0 <= share(part, whole, "works") <= 100
    else:
        with pytest.raises(NotMeasured, match=f"^works: {part} of {whole}$"):
            share(part, whole, "works")


@pytest.mark.parametrize(("part", "whole"), [(-1, 5), (0, 0), (3, 0), (0, -1), (-2, -1)])
def test_share_of_nothing_is_not_measured(part: int, whole: int) -> None:
    with pytest.raises(NotMeasured, match=f"^works: {part} of {whole}$"):
        share(part, whole, "works")


@pytest.mark.parametrize(
    ("recorded", "busy"), [("0", 0), ("48.8933", 48.8933), ("100", 100), ("100.0004", 100), ("105", 100)]
)
def test_busy_share_ends_at_all_cpus(recorded: str, busy: float) -> None:
    assert cpu_utilisation(read_records(f"value\tcpu_utilisation\t{recorded}\n")) == busy


@pytest.mark.parametrize("recorded", ["5324", "105.1", "-11", "-0.1"])
@pytest.mark.parametrize("name", UNTRACED)
def test_impossible_busy_share_is_not_measured(name: str, recorded: str) -> None:
    parse, topology = parser(name), device(32, 2)
    assert parse(read_records(UNTRACED[name]), topology, False).failure is None
    text, times = re.subn(r"(value\tcpu_utilisation\t).*", rf"\g<1>{recorded}", UNTRACED[name])
    assert times == 1
    found = parse(read_records(text), topology, False)
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.summary == f"not measured: cpu_utilisation would be {recorded} %"
