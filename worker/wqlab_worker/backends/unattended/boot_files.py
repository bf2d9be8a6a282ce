"""List the files below /lab of a boot that its device measures alone, and read the results that it sends."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from wqlab_contracts.messages import BlockPlan, BootKey, RunJob

from ...measure.collect import number as number_of
from ...measure.device_text import decode_output
from ...measure.script_calls import Call, calls
from .. import condition_commands, probe


class ResultsUnreadable(ValueError):
    """The results were not made by `onboard/calls.sh`."""


@dataclass(frozen=True)
class CallResult:
    """Result of one call of the plan's script."""

    stdout: str
    stderr: str
    status: int
    seconds: float
    blocked: str
    """The kernel's list of blocked tasks if the call was killed at its time limit."""


@dataclass(frozen=True)
class Results:
    """Results of one boot, as its device sent them."""

    probe: bytes
    probe_stderr: str
    conditions: str
    calls: dict[int, CallResult] = field(default_factory=dict)
    """Results by number of the call; skipped calls are missing."""
    restored: str = ""
    conditions_stderr: str = ""


def boot_files(job: RunJob, blocks: Iterable[int]) -> dict[str, bytes]:
    """Return the files that every boot of these blocks has below /lab: name -> content. All are executable."""
    found = {
        "calls.sh": (files(__package__) / "onboard" / "calls.sh").read_bytes(),
        "probe": probe.COMMAND.encode(),
        "conditions": condition_commands.apply_command(job.device.conditions, wait=True).encode(),
        "restore": condition_commands.restore_command(job.device.conditions).encode(),
        "script": job.plan.script.encode(),
    }
    found |= {f"calls/{block}": call_script(calls(job, block)).encode() for block in blocks}
    return found | {f"plan/{name}": text.encode() for name, text in sorted(job.files.items())}


def call_script(planned: Iterable[Call]) -> str:
    """Return the calls of a boot as a shell script that `onboard/calls.sh` reads."""
    lines = []
    numbers: dict[str, int] = {}
    for number, call in enumerate(planned):
        cell = f"c{numbers.setdefault(str(call.cell), len(numbers))}" if call.cell else "-"
        words = [f"{number:04d}", f"{call.limit_s:.0f}", str(int(call.monitored)), cell, call.action]
        words += [f"{name}={value}" for name, value in call.environment.items()]
        lines.append("call " + " ".join(shlex.quote(word) for word in words))
    return "\n".join(lines) + "\n"


def results_of(found: Mapping[str, bytes]) -> Results:
    """Read the files that `onboard/calls.sh` wrote. Raises ResultsUnreadable."""
    if "probe" not in found:
        raise ResultsUnreadable("the results lack the output of the kernel probe")
    calls_by_number = {}
    for name, content in found.items():
        number, _, what = name.partition(".")
        if what != "status" or not number.isdecimal():
            continue
        try:
            status, started, ended = decode_output(content).split()
            seconds = max(0.0, number_of(ended) - number_of(started))
            calls_by_number[int(number)] = CallResult(
                decode_output(found.get(f"{number}.out", b"")),
                decode_output(found.get(f"{number}.err", b"")),
                int(status),
                seconds,
                decode_output(found.get(f"{number}.blocked", b"")),
            )
        except ValueError as error:
            raise ResultsUnreadable(f"{name} is not a status: {content[:80]!r}") from error
    return Results(
        found["probe"],
        decode_output(found.get("probe.err", b"")),
        decode_output(found.get("conditions", b"")),
        calls_by_number,
        decode_output(found.get("restored", b"")),
        decode_output(found.get("conditions.err", b"")),
    )


def boots_from(key: BootKey, remaining: Sequence[BlockPlan]) -> list[BootKey]:
    """Return this boot and the planned boots after it: the rest of its block, then the later blocks."""
    plans = list(remaining)
    at = next((index for index, plan in enumerate(plans) if plan.block == key.block), None)
    if at is None or key.position >= len(plans[at].arms) or plans[at].arms[key.position] is not key.arm:
        return [key]  # a control boot: the loop decides what follows
    rest = [
        BootKey(block=key.block, position=position, arm=arm, attempt=key.attempt)
        for position, arm in enumerate(plans[at].arms)
        if position > key.position
    ]
    later = [
        BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
        for plan in plans[at + 1 :]
        for position, arm in enumerate(plan.arms)
    ]
    return [key, *rest, *later]
