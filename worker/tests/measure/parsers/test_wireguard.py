"""Parser wireguard: each value is correct or not measured. The output is written by hand, as the script prints it."""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import device, plan

NETPERF = """\
begin	netperf {number}
MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 198.51.100.2 () port 0 AF_INET
THROUGHPUT_UNITS=10^6bits/s
ELAPSED_TIME=2.01
LOCAL_SEND_CALLS=100
LOCAL_BYTES_SENT=1638400
LOCAL_SEND_THROUGHPUT=6.52
REMOTE_BYTES_RECVD=1638400
REMOTE_RECV_THROUGHPUT={throughput}
end	netperf {number}
"""
HEAD = """\
setting	unbound_cpus	default
command	netperf -4 -H 198.51.100.2 -t TCP_STREAM -l 2 -f m -- -m 16384 -M 16384 -k KEYS
value	streams	2
"""
PACKETS = """\
value	tunnel_packets	4000
value	packets_lost	0
value	packets_refused	0
value	tunnel_bytes	3600000
setting_after	unbound_cpus	default
"""
STREAMS = NETPERF.format(number=1, throughput=6.5) + NETPERF.format(number=2, throughput=5.25)
UNTRACED = f"""\
{HEAD}value	cpu_busy_seconds	1.5
value	context_switches	6000
value	cpu_utilisation	37.5
{PACKETS}{STREAMS}"""
TRACED = f"""\
{HEAD}begin	pairs
0 0 100
0 1 300
2 3 50
2 0 50
end	pairs
begin	histogram queue_to_start_us
20 400
1230 100
end	histogram queue_to_start_us
value	encrypt_works	300
value	decrypt_works	200
value	transmit_works	1000
value	handshake_works	2
value	works_queued	1502
value	works_started	1502
{PACKETS}{STREAMS}"""


def measured(text: str, traced: bool) -> Measurement:
    return collect(text, "wireguard", plan("wireguard"), device(4, 2), traced, setting="unbound_cpus=default")


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


def test_works_are_counted_per_packet_and_by_place() -> None:
    """CPUs 0-1 and 2-3 share an L3: 100 + 300 + 50 of 500 works stay there, 100 on their CPU."""
    found = measured(TRACED, True)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "crypt_works_per_1000_packets": 125,
        "encrypt_works_per_1000_packets": 75,
        "decrypt_works_per_1000_packets": 50,
        "transmit_works_per_1000_packets": 250,
        "handshake_works": 2,
        "local_cpu_share": 20,
        "local_l3_share": 90,
        "local_l3_by_chance": 50,
        "queue_to_start_p50_us": 20,
        "queue_to_start_p99_us": 1230,
    }


def test_throughput_is_that_of_all_streams() -> None:
    found = measured(UNTRACED, False)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "recv": 11.75,
        "packets_lost": 0,
        "context_switches_per_1000_packets": 1500,
        "cpu_seconds_per_gib": pytest.approx(1.5 / (2 * 1638400 / 2**30)),
        "cpu_utilisation": 37.5,
    }


def test_lost_packets_are_a_value() -> None:
    text = UNTRACED.replace("packets_lost\t0", "packets_lost\t17")
    assert measured(text, False).values["packets_lost"] == 17


def test_more_packets_may_be_refused_than_sent() -> None:
    """As of a kernel that has no key: 5000 were refused, and 3 of the 4000 that were sent did not arrive."""
    text = UNTRACED.replace("packets_lost\t0", "packets_lost\t5003")
    assert measured(text.replace("refused\t0", "refused\t5000"), False).values["packets_lost"] == 5003
    not_measured(measured(text, False), "5003 of 4000 packets that were sent did not arrive")
    not_measured(measured(text.replace("refused\t0", "refused\t5004"), False), "1 packets more were received than sent")


@pytest.mark.parametrize(
    ("pattern", "instead", "reason"),
    [
        (r"tunnel_bytes\t3600000", "tunnel_bytes\t3276799", "3276800 bytes arrived, and 3276799 passed the tunnel"),
        (r"ELAPSED_TIME=2.01", "ELAPSED_TIME=-2.01", "netperf's ELAPSED_TIME is -2.01"),
        (r"ELAPSED_TIME=2.01", "ELAPSED_TIME=1.1", r"ran for 1.1 of 2 s"),
        (r"LOCAL_BYTES_SENT=1638400", "LOCAL_BYTES_SENT=99", "99 bytes in 100 messages of 16384 bytes"),
        (r"REMOTE_BYTES_RECVD=1638400", "REMOTE_BYTES_RECVD=0", "none arrived"),
        (r"streams\t2", "streams\t0", "0 streams were requested"),
    ],
)
@pytest.mark.parametrize("traced", [True, False])
def test_work_that_was_not_done_is_not_measured(pattern: str, instead: str, reason: str, traced: bool) -> None:
    text = re.sub(pattern, instead.replace("\\t", "\t"), TRACED if traced else UNTRACED)
    not_measured(measured(text, traced), reason)


@pytest.mark.parametrize("traced", [True, False])
def test_missing_stream_gives_no_values(traced: bool) -> None:
    text = (TRACED if traced else UNTRACED).replace("value\tstreams\t2", "value\tstreams\t3")
    found = measured(text, traced)
    assert found.values == {}
    assert all("no complete `netperf 3`" in reason for _, reason in found.unsupported)


def test_more_packets_received_than_sent_is_not_measured() -> None:
    text = UNTRACED.replace("packets_lost\t0", "packets_lost\t-3")
    not_measured(measured(text, False), "3 packets more were received than sent")


def test_negative_stream_is_not_measured() -> None:
    """A larger positive stream beside it must not hide it in their sum."""
    text = UNTRACED.replace("REMOTE_RECV_THROUGHPUT=5.25", "REMOTE_RECV_THROUGHPUT=-5.25")
    not_measured(measured(text, False), "netperf's REMOTE_RECV_THROUGHPUT is -5.25")


def test_other_throughput_unit_is_not_measured() -> None:
    not_measured(measured(UNTRACED.replace("10^6bits/s", "KBytes/s"), False), "counts in KBytes/s")


def test_works_that_did_not_start_are_not_measured() -> None:
    text = TRACED.replace("works_started\t1502", "works_started\t1400")
    not_measured(measured(text, True), "1502 works were queued, and 1400 of them started")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"2 0 50\n": ""}, "pairs has 450 works instead of 500"),
        ({"20 400\n": "20 399\n"}, "499 of 500 works were seen to start, and 1502 of 1502 of all functions"),
        ({"20 400\n": "20 401\n"}, "501 of 500 works were seen to start"),
        ({"encrypt_works\t300": "encrypt_works\t290"}, "500 of 490 works were seen to start"),
        ({"transmit_works\t1000": "transmit_works\t1001"}, "1503 works of single functions .* 1502 in total"),
        ({"works_started\t1502": "works_started\t1503"}, "1502 works were queued, and 1503 of them started"),
    ],
)
def test_places_and_waits_are_those_of_all_works(changes: dict[str, str], reason: str) -> None:
    text = TRACED
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    not_measured(measured(text, True), reason)


def test_works_that_start_after_the_trace_have_no_place() -> None:
    """Two of the 1502 works did not start: at most two of those that encrypt."""
    text = TRACED.replace("works_started\t1502", "works_started\t1500").replace("2 0 50\n", "2 0 48\n")
    found = measured(text.replace("20 400\n", "20 398\n"), True)
    assert found.failure is None
    assert found.values["local_cpu_share"] == pytest.approx(100 * 100 / 498)
    text = text.replace("2 0 48\n", "2 0 47\n").replace("20 400\n", "20 397\n")
    not_measured(measured(text, True), "497 of 500 works were seen to start, and 1500 of 1502")


def test_lost_events_give_no_values() -> None:
    assert measured(f"{TRACED}overrun\t3\n", True).values == {}


def test_kernel_without_the_module_is_unsupported() -> None:
    found = measured("unsupported\t*\tthis kernel has no module wireguard\n", True)
    assert found.unsupported == [(None, "this kernel has no module wireguard")]


@pytest.mark.parametrize("traced", [True, False])
def test_output_cut_off_anywhere_never_gives_another_figure(traced: bool) -> None:
    text = TRACED if traced else UNTRACED
    good = measured(text, traced).values
    for end in range(len(text)):
        found = measured(text[:end], traced)
        assert found.values in ({}, good), text[:end]
