"""Read fio's JSON output (3.x, `--output-format=json --group_reporting`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure

from ..collect import Measurement, NoSamples, NotMeasured, Records
from ..device_text import printable

MIB = 1 << 20
GIB = 1 << 30
PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}
"""Name of a percentile in metrics -> its key in fio's result. fio's histogram ends at 17.1 s: none is above."""
EILSEQ = 84
"""fio's error code of a failed verification ("Invalid or incomplete multibyte or wide character")."""


@dataclass(frozen=True)
class Stream:
    """Reads, writes or fsyncs of all jobs together. Times in microseconds."""

    ios: int
    bytes: int
    runtime_s: float
    mean_us: float | None
    percentiles_us: dict[str, float]
    """Latency by the names in PERCENTILES; empty if there was no operation or fio was told to leave them out."""
    bins_ns: dict[int, int] = field(default_factory=dict)
    """Histogram of the latency in nanoseconds; only with `--output-format=json+`."""

    def percentiles(self, prefix: str, what: str) -> dict[str, float]:
        """Return the latency of each of PERCENTILES in us, named `<prefix>_p50`. Raises NoSamples if one is missing."""
        if missing := PERCENTILES.keys() - self.percentiles_us.keys():
            raise NoSamples(f"fio reports no {what} latency: {', '.join(sorted(missing))}")
        return {f"{prefix}_{name}": us for name, us in self.percentiles_us.items()}


@dataclass(frozen=True)
class FioResult:
    """Result of one fio run."""

    version: str
    read: Stream
    write: Stream
    sync: Stream
    """fsync(); its latency is the time in the system call."""
    jobs: int
    """Number of fio jobs."""
    failure: Failure | None
    """Failure for a nonzero `error` of a job: the kernel's for a failed verification, else the lab's."""

    @property
    def bytes(self) -> int:
        return self.read.bytes + self.write.bytes

    @property
    def bandwidth_mib_s(self) -> float:
        """Bytes read and written over the longer of the run times, in MiB/s. Raises NotMeasured for an empty run."""
        runtime = max(self.read.runtime_s, self.write.runtime_s)
        if runtime <= 0 or self.bytes <= 0:
            raise NoSamples("fio moved no data")
        return self.bytes / MIB / runtime


def read_fio(records: Records, name: str = "fio") -> FioResult:
    """Read a framed fio result. Raises NotMeasured if it is missing, incomplete or not fio's."""
    lines = records.frame(name)
    # fio writes notes above its JSON into the same file.
    start = next((index for index, line in enumerate(lines) if line.startswith("{")), len(lines))
    try:
        document = json.loads("\n".join(lines[start:]))
        jobs = document["jobs"]
        if not isinstance(jobs, list) or len(jobs) != 1:
            raise NotMeasured("fio's result is not one group of jobs: run it with --group_reporting")
        job = jobs[0]
        error = int(job["error"])
        return FioResult(
            version=printable(str(document.get("fio version", "unknown")))[:100],
            read=_stream(job["read"], "clat_ns"),
            write=_stream(job["write"], "clat_ns"),
            sync=_stream(job["sync"], "lat_ns"),
            jobs=int(job.get("job options", {}).get("numjobs", 1)),
            failure=_failure(error, lines[:start]) if error else None,
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as problem:
        raise NotMeasured(f"fio's result is not readable: {type(problem).__name__}: {str(problem)[:200]}") from None


def apply_fio_result(measurement: Measurement, records: Records) -> Measurement:
    """Add fio's version to the facts; if fio reports an error, return its failure instead of the values."""
    if measurement.failure and records.failure:
        return measurement
    try:
        fio = read_fio(records)
    except NotMeasured:
        return measurement
    facts = {**measurement.facts, "fio": fio.version}
    if fio.failure:
        return Measurement(failure=fio.failure, command=measurement.command, facts=facts)
    return replace(measurement, facts=facts)


def _stream(stream: Mapping[str, Any], latency: str) -> Stream:
    found = stream.get(latency, {})
    ios = _whole(stream["total_ios"])
    return Stream(
        ios=ios,
        bytes=_whole(stream.get("io_bytes", 0)),
        runtime_s=_whole(stream.get("runtime", 0)) / 1e3,
        mean_us=float(found["mean"]) / 1e3 if ios and "mean" in found else None,
        percentiles_us=_percentiles(found["percentile"]) if ios and "percentile" in found else {},
        bins_ns={int(ns): _whole(times) for ns, times in found.get("bins", {}).items()},
    )


def _percentiles(found: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(found[key]) / 1e3 for name, key in PERCENTILES.items() if key in found}


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a count")
    return value


def _failure(error: int, notes: list[str]) -> Failure:
    if error == EILSEQ:
        summary = "fio's verification failed: what was read back is not what was written (error 84)"
        return Failure(kind=ErrorKind.KERNEL, summary=summary, excerpt="\n".join(notes)[:4000])
    return Failure(
        kind=ErrorKind.INFRASTRUCTURE, summary=f"fio failed with error {error}", excerpt="\n".join(notes)[:4000]
    )
