"""Compare what fio did with what its command line asked for, so that no figure comes from work that was not done.

Only the options of the plans are understood: size, bs, number_ios, numjobs, runtime with time_based, verify, do_verify,
fsync and iodepth.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..collect import NotMeasured, Records, count
from .fio import MIB, FioResult

MIN_TIME_SHARE = 0.9
"""Smallest share of the requested run time after which a run is complete; fio's own omits the start of its jobs."""
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Asked:
    """What a command line asks of all jobs together."""

    seconds: float = 0.0
    """Run time; 0: until each job has done its operations."""
    operations: int = 0
    bytes: int = 0
    verified: bool = False
    """Whether what is written is also read back; `do_verify=0` leaves that out."""
    fsyncs: int = 0
    """Fewest fsyncs. fio issues none before its queue has been full once."""


def check_work(records: Records, fio: FioResult) -> None:
    """Raise NotMeasured, with both amounts, if fio did less than its command line asked for.

    Nothing is checked without a command line of fio, and after an error of fio, which says what happened.
    """
    asked = read_command(records.command or "")
    if asked is None or fio.failure:
        return
    done, ran = fio.read.ios + fio.write.ios, max(fio.read.runtime_s, fio.write.runtime_s)
    if asked.seconds:
        if ran < MIN_TIME_SHARE * asked.seconds:
            scale, unit = (1, "s") if asked.seconds >= 1 else (1000, "ms")
            raise NotMeasured(f"fio ran for {ran * scale:.1f} of {asked.seconds * scale:.0f} {unit}")
    elif asked.verified:
        _check_verified(asked.operations, fio)
    elif done < asked.operations:
        raise NotMeasured(f"fio completed {done} of {asked.operations} reads and writes")
    elif fio.bytes < asked.bytes:
        raise NotMeasured(f"fio moved {fio.bytes / MIB:.2f} of {asked.bytes / MIB:.2f} MiB")
    elif fio.sync.ios < asked.fsyncs:
        raise NotMeasured(f"fio completed {fio.sync.ios} fsyncs for {fio.write.ios} writes, fewer than {asked.fsyncs}")


def _check_verified(operations: int, fio: FioResult) -> None:
    """Check a run with `verify`, which reads again what it has written and counts that among the reads.

    So `read.ios` is the number of all operations if every block that was written was read back and compared.
    """
    only_read = operations - fio.write.ios
    if not 0 <= only_read <= fio.read.ios:
        raise NotMeasured(f"fio completed {fio.read.ios} reads and {fio.write.ios} writes of {operations} operations")
    if (verified := fio.read.ios - only_read) < fio.write.ios:
        raise NotMeasured(f"fio read back {verified} of the {fio.write.ios} blocks that it wrote")


def read_command(command: str) -> Asked | None:
    """Return what a command line of fio asks for, or None if it names no job. Raises NotMeasured if that is unclear."""
    try:
        jobs = list(_jobs(command))
        if not jobs:
            return None
        each = [_operations(job) * count(job.get("numjobs", "1")) for job in jobs]
        return Asked(
            seconds=max(_seconds(job["runtime"]) if "time_based" in job else 0.0 for job in jobs),
            operations=sum(each),
            bytes=sum(operations * _bytes(job["bs"]) for operations, job in zip(each, jobs, strict=True)),
            verified=any("verify" in job and job.get("do_verify") != "0" for job in jobs),
            fsyncs=sum(_fsyncs(job) for job in jobs),
        )
    except (KeyError, ValueError) as error:
        raise NotMeasured(f"fio's command line does not say what it asks for: {error}") from None


def _jobs(command: str) -> Iterator[dict[str, str]]:
    """Yield the options of each `--name`; those before the first one apply to every job."""
    common: dict[str, str] = {}
    job: dict[str, str] | None = None
    for word in shlex.split(command)[1:]:
        name, _, value = word.removeprefix("--").partition("=")
        if name == "name":
            if job is not None:
                yield job
            job = dict(common)
        (common if job is None else job)[name] = value
    if job is not None:
        yield job


def _operations(job: Mapping[str, str]) -> int:
    """Return the operations of each process of a job that is not limited by time."""
    fit = _bytes(job["size"]) // _bytes(job["bs"])
    return min(fit, count(job["number_ios"])) if "number_ios" in job else fit


def _fsyncs(job: Mapping[str, str]) -> int:
    if "fsync" not in job:
        return 0
    each = _operations(job) // count(job["fsync"])
    return max(0, each - count(job["iodepth"])) * count(job.get("numjobs", "1"))


def _seconds(text: str) -> float:
    return float(text.removesuffix("ms")) / 1e3 if text.endswith("ms") else float(text)


def _bytes(text: str) -> int:
    unit = _UNITS.get(text[-1:].lower())
    return count(text) if unit is None else count(text[:-1]) * unit
