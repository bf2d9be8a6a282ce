"""Parser netperf_stream: each value is correct or not measured."""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind, NotMeasuredCause
from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import RECORDED, device, plan

TRACED = (RECORDED / "netperf-2cpu-udp-netns-4096.txt").read_text()
UNTRACED = (RECORDED / "netperf-2cpu-untraced.txt").read_text()
LACKS_EVENT = "this kernel has no event csd_queue_cpu"


def stream(text: str, traced: bool) -> Measurement:
    return collect(text, "netperf_stream", plan("netperf-stream"), device(2, 1), traced)


GOOD = {traced: stream(text, traced).values for traced, text in ((True, TRACED), (False, UNTRACED))}


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


@pytest.mark.parametrize("traced", [True, False])
def test_output_cut_off_anywhere_never_gives_another_figure(traced: bool) -> None:
    text = TRACED if traced else UNTRACED
    for end in range(len(text)):
        found = stream(text[:end], traced)
        assert found.failure is None or found.values == {}
        assert found.failure is not None or found.empty == set(GOOD[traced]) or found.values == GOOD[traced], text[:end]
        # Output that ends at a line boundary looks complete; only the exit status shows that it is not.
        assert not found.empty or text[:end].endswith("\n") or not end


@pytest.mark.parametrize("calls", ["-1", "12.5", "nan", "", "1e400", "many"])
@pytest.mark.parametrize("traced", [True, False])
def test_implausible_message_count_is_not_measured(traced: bool, calls: str) -> None:
    text = re.sub(r"LOCAL_SEND_CALLS=.*", f"LOCAL_SEND_CALLS={calls}", TRACED if traced else UNTRACED)
    not_measured(stream(text, traced), "LOCAL_SEND_CALLS")


@pytest.mark.parametrize("traced", [True, False])
def test_stream_without_messages_has_no_values(traced: bool) -> None:
    text = re.sub(r"LOCAL_SEND_CALLS=.*", "LOCAL_SEND_CALLS=0", TRACED if traced else UNTRACED)
    found = stream(text, traced)
    assert (found.values, found.failure) == ({}, None)
    assert dict(found.unsupported) == dict.fromkeys(GOOD[traced], "netperf sent no message")
    assert found.empty == set(GOOD[traced])


@pytest.mark.parametrize("key", ["LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "LOCAL_SEND_CALLS"])
def test_result_without_a_value_is_not_measured(key: str) -> None:
    not_measured(stream(re.sub(rf"^{key}=.*\n", "", UNTRACED, flags=re.MULTILINE), False), key)


@pytest.mark.parametrize("value", ["nan", "-3", "inf", "0x10", "fast"])
def test_implausible_throughput_is_not_measured(value: str) -> None:
    text = re.sub(r"REMOTE_RECV_THROUGHPUT=.*", f"REMOTE_RECV_THROUGHPUT={value}", UNTRACED)
    not_measured(stream(text, False), "not measured: ")


def test_other_throughput_unit_is_not_measured() -> None:
    not_measured(stream(UNTRACED.replace("10^6bits/s", "KBytes/s"), False), "counts in KBytes/s")


def test_a_kernel_without_the_event_still_counts_its_wakeups() -> None:
    text = re.sub(r"value\tqueued_wakeups\t\d+", f"unsupported\tqueued_wakeups\t{LACKS_EVENT}", TRACED)
    found = stream(text, True)
    assert found.values == {name: GOOD[True][name] for name in ("remote_wakeups", "wakeups")}
    assert dict(found.unsupported) == dict.fromkeys(("queued_wakeups", "queued_wakeup_share"), LACKS_EVENT)


def test_a_kernel_without_scheduler_statistics_still_counts_what_is_queued() -> None:
    text = re.sub(r"value\t(wakeups|remote_wakeups)\t\d+", r"unsupported\t\1\tno statistics", TRACED)
    found = stream(text, True)
    assert found.values == {"queued_wakeups": GOOD[True]["queued_wakeups"]}
    assert {name for name, _ in found.unsupported} == {"wakeups", "remote_wakeups", "queued_wakeup_share"}


@pytest.mark.parametrize(("remote", "reason"), [(0, "only 0 wakeups"), (19, "only 19 wakeups"), (62, "63 queued")])
def test_share_of_too_few_wakeups_is_unsupported(remote: int, reason: str) -> None:
    """Too few wakeups for a share, or two contradictory counts."""
    found = stream(TRACED.replace("remote_wakeups\t97", f"remote_wakeups\t{remote}"), True)
    assert "queued_wakeup_share" not in found.values
    assert found.values["remote_wakeups"] == pytest.approx(remote / 0.46)
    why = dict(found.unsupported)["queued_wakeup_share"]
    assert reason in why
    assert why.cause is NotMeasuredCause.UNRELIABLE


def test_interrupts_missing_in_procfs_are_unsupported() -> None:
    text = re.sub(r"value\treschedule_interrupts\t\d+", "unsupported\treschedule_interrupts\tnot listed", UNTRACED)
    found = stream(text, False)
    assert found.unsupported == [("reschedule_interrupts", "not listed")]
    assert found.values.keys() == GOOD[False].keys() - {"reschedule_interrupts"}


def test_lost_events_or_missing_namespaces_give_no_values() -> None:
    assert stream("overrun\t3\n" + TRACED, True).values == {}
    found = stream("unsupported\t*\tthis kernel has no network namespaces (CONFIG_NET_NS)\n", True)
    assert found.unsupported == [(None, "this kernel has no network namespaces (CONFIG_NET_NS)")]


def test_netperf_failure_is_reported_with_its_message() -> None:
    text = "command\tnetperf\nfailed\tinfrastructure\tnetperf ended with exit status 1: Message too long\n"
    not_measured(stream(text, False), "Message too long")
