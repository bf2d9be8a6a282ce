"""Parser of plan wireguard: throughput and losses of a tunnel, and where the works that encrypt and decrypt ran.

Frames: `netperf N` has the output of each stream; `pairs` and `histogram queue_to_start_us` are of the works that
encrypted or decrypted. Works are counted per 1000 packets that the two ends of the tunnel sent, acknowledgements and
handshakes included.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NoSamples, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import GIB
from .histogram import percentile, read_histogram, total
from .netperf_stream import UNITS, figure, read_netperf, whole
from .pairs import check_starts, locality
from .shares import cpu_utilisation

TRACED = (
    "crypt_works_per_1000_packets",
    "local_cpu_share",
    "local_l3_share",
    "local_l3_by_chance",
    "encrypt_works_per_1000_packets",
    "decrypt_works_per_1000_packets",
    "transmit_works_per_1000_packets",
    "handshake_works",
    "queue_to_start_p50_us",
    "queue_to_start_p99_us",
)
UNTRACED = ("packets_lost", "recv", "context_switches_per_1000_packets", "cpu_seconds_per_gib", "cpu_utilisation")

MOST_STREAMS = 1000


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )


def operations(records: Records) -> dict[str, Operations]:
    read_streams(records)
    return {"packets": Operations(int(records.value("tunnel_packets")), "packet")}


def read_streams(records: Records) -> list[dict[str, str]]:
    """Read the result of each stream.

    Raises NotMeasured if one is missing, sent nothing or ended early, or if fewer bytes passed the tunnel than arrived.
    """
    streams = records.value("streams")
    if not 1 <= streams <= MOST_STREAMS:
        raise NotMeasured(f"{streams:g} streams were requested")
    found = [read_netperf(records, f"netperf {number}") for number in range(1, int(streams) + 1)]
    arrived, passed = sum(whole(stream, "REMOTE_BYTES_RECVD") for stream in found), records.value("tunnel_bytes")
    if passed < arrived:
        raise NotMeasured(f"{arrived} bytes arrived, and {passed:.0f} passed the tunnel")
    if records.value("tunnel_packets") <= 0:
        raise NoSamples("no packet passed the tunnel")
    return found


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    read_streams(records)
    queued, started = records.value("works_queued"), records.value("works_started")
    if not 0.99 * queued <= started <= queued:
        raise NotMeasured(f"{queued:.0f} works were queued, and {started:.0f} of them started")
    thousands = records.value("tunnel_packets") / 1000
    works = {name: records.value(f"{name}_works") for name in ("encrypt", "decrypt", "transmit", "handshake")}
    crypt, others = works["encrypt"] + works["decrypt"], works["transmit"] + works["handshake"]
    waits = read_histogram(records, "queue_to_start_us")
    check_starts(crypt, others, queued, started, total(waits))
    places = locality(records, topology, works=total(waits))
    return {
        "crypt_works_per_1000_packets": crypt / thousands,
        **{f"{name}_works_per_1000_packets": works[name] / thousands for name in ("encrypt", "decrypt", "transmit")},
        **{name: places[name] for name in ("local_cpu_share", "local_l3_share", "local_l3_by_chance")},
        "handshake_works": works["handshake"],
        "queue_to_start_p50_us": percentile(waits, 0.5),
        "queue_to_start_p99_us": percentile(waits, 0.99),
    }


def packets_lost(records: Records) -> float:
    """Return the number of packets that one end sent and the other did not receive, or that an end refused to send.

    Raises NotMeasured if more were received than sent, or more lost than sent. Refused ones are not among the sent.
    """
    lost, sent = records.value("packets_lost"), records.value("tunnel_packets")
    missing = lost - records.value("packets_refused")
    if missing < 0:
        raise NotMeasured(f"{-missing:.0f} packets more were received than sent")
    if missing > sent:
        raise NotMeasured(f"{missing:.0f} of {sent:.0f} packets that were sent did not arrive")
    return lost


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    streams = read_streams(records)
    for stream in streams:
        if (units := stream.get("THROUGHPUT_UNITS")) != UNITS:
            raise NotMeasured(f"netperf counts in {units or 'no known unit'}, not in {UNITS}")
    gib = sum(whole(stream, "REMOTE_BYTES_RECVD") for stream in streams) / GIB
    return {
        "packets_lost": packets_lost(records),
        "recv": sum(figure(stream, "REMOTE_RECV_THROUGHPUT") for stream in streams),
        "context_switches_per_1000_packets": records.value("context_switches")
        / (records.value("tunnel_packets") / 1000),
        "cpu_seconds_per_gib": records.value("cpu_busy_seconds") / gib,
        "cpu_utilisation": cpu_utilisation(records),
    }
