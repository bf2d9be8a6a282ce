"""Read the addresses of a kernel report (`function+0x1a/0x30`), and write the decoded places beside them.

Formats: lib/dump_stack.c, arch/x86/kernel/dumpstack.c, arch/arm64/kernel/{stacktrace,process}.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..messages import STACK_LIMIT, StackFrame

REFERENCES_LIMIT = 200
"""Maximum number of different addresses that are read from one report."""
LINE_LIMIT = 400
"""Characters of a line that are searched; lines with addresses are shorter."""

_ADDRESS = re.compile(
    r"(?<![\w.$])\.?(?P<function>[A-Za-z_][\w.$]{0,199})\+0x(?P<offset>[0-9a-f]{1,8})/0x(?P<size>[0-9a-f]{1,8})(?!\w)"
    r"(?: \[(?P<module>\w{1,64})(?: [0-9a-f]{1,64})?\])?",
    re.ASCII,
)
_DECODED = re.compile(
    r"(?:^|\] ?|RIP: 0010:|[ep]c : )\s{0,40}(?:\? )?(?P<function>[A-Za-z_][\w.$]{0,199}) "
    r"\((?:[\w.+-]{1,80}/){0,12}[\w.-]{1,80}\.[chS]:\d",
    re.ASCII,
)
"""Line of a trace in which scripts/decode_stacktrace.sh has written a place for the address."""
_EXACT = re.compile(
    r"\bRIP: [0-9a-f]{4}:|\bE?IP is at |\bEIP: |\bPC is at |(?:^|\] ?) {0,4}(?:e?pc : |ERA: |NIP {1,2}\[|Krnl PSW : )"
)
"""Begins a line with the address of the instruction itself; others are return addresses, one instruction further."""
_TRACE_BEGINS = re.compile(r"(?:Call [Tt]race|Backtrace):\s*$")
_ALONE = re.compile(
    r"(?:^|\] ?)\s{0,40}(?:\[<[0-9a-f]{4,16}>\] |[\w.$]{1,199} from )?"
    r"[A-Za-z_][\w.$]{0,199}\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[\w+\])?\s*$"
)
"""Line of a trace without a heading, as KMSAN, KCSAN, KFENCE, riscv and arm print it."""
_TRACE_ENDS = re.compile(r"</IRQ>|</TASK>|</NMI>|---\[ end |\bCode: |\bRIP: 0033:|Last Breaking-Event")
_UNRELIABLE = re.compile(r"(?:^|\] *|\s)\? [A-Za-z_]|\(unreliable\)\s*$")


@dataclass(frozen=True)
class Reference:
    """An address in a kernel report: a function of the kernel, the offset in it, and its size in bytes."""

    function: str
    offset: int
    size: int
    module: str
    """Name of the module; empty for vmlinux."""
    exact: bool
    """True for the address of the instruction; false for a return address, which is behind the call."""


Places = Mapping[Reference, Sequence[StackFrame]]
"""Decoded frames of an address: inlined functions first, the function that contains them last."""


def references(report: str) -> list[Reference]:
    """Return the different addresses in a report, in its order, at most REFERENCES_LIMIT."""
    found: dict[Reference, None] = {}
    for line in report.splitlines():
        for reference in addresses(line):
            if reference.size and len(found) < REFERENCES_LIMIT:
                found[reference] = None
    return list(found)


def call_trace(report: str) -> list[Reference]:
    """Return the addresses of the context that failed, innermost first: that of the instruction, then its callers.

    Left out are addresses that the kernel marks as unreliable (`?`), traces of interrupted contexts and later traces.
    """
    trace: list[Reference] = []
    tracing = ended = False
    lines = report.splitlines()
    if not any(_TRACE_BEGINS.search(line[:LINE_LIMIT]) for line in lines):
        return _first_addresses(lines)
    for line in lines:
        if _TRACE_BEGINS.search(line[:LINE_LIMIT]):
            if tracing:
                break
            tracing = True
        elif tracing and trace and _TRACE_ENDS.search(line[:LINE_LIMIT]):
            ended = True
        elif not ended and not is_unreliable(line[:LINE_LIMIT]):
            trace += [
                found for found in addresses(line) if (tracing and not found.exact) or (found.exact and not trace)
            ]
        if ended:
            break
    return named_once(trace)[:STACK_LIMIT]


def _first_addresses(lines: Sequence[str]) -> list[Reference]:
    """Return the addresses of a report without `Call Trace:`, those of the first lines that are nothing else."""
    trace: list[Reference] = []
    begun = False
    for line in lines:
        if _ALONE.search(line[:LINE_LIMIT]):
            begun = True
            trace += addresses(line)
        elif begun:
            break
        elif not trace:
            trace += [found for found in addresses(line) if found.exact]
    return named_once(trace)[:STACK_LIMIT]


def named_once(trace: list[Reference]) -> list[Reference]:
    """Return a trace without its second address if that is the first: arm64 begins with the failed instruction."""
    return trace[:1] + trace[2:] if len(trace) > 1 and replace(trace[1], exact=True) == trace[0] else trace


def stack_frames(trace: Sequence[Reference], places: Places | None = None) -> tuple[StackFrame, ...]:
    """Return the first STACK_LIMIT frames of a call trace, with the source lines that `places` has."""
    frames: list[StackFrame] = []
    for reference in trace:
        frames += (places or {}).get(reference) or [StackFrame(function=reference.function, offset=reference.offset)]
    return tuple(frames[:STACK_LIMIT])


def annotated(report: str, places: Places) -> str:
    """Return the report with `(file:line file:line)  source` behind each decoded line, inlined functions first."""
    return "\n".join(_annotated_line(line, places) for line in report.splitlines())


def _annotated_line(line: str, places: Places) -> str:
    frames = [frame for reference in addresses(line) for frame in places.get(reference, ()) if frame.file]
    if not frames:
        return line
    shown = next((frame for frame in frames if frame.file.endswith(".c") and frame.source), frames[0])
    text = f"{line.rstrip()} ({' '.join(f'{frame.file}:{frame.line}' for frame in frames)})"
    return f"{text}  {shown.source}" if shown.source else text


def is_unreliable(line: str) -> bool:
    """Return True if the kernel marks the address in a line of a trace as a guess."""
    return ("? " in line or "unreliable" in line) and _UNRELIABLE.search(line) is not None


def addresses(line: str) -> Iterator[Reference]:
    """Yield the addresses in a line. One that somebody has decoded already has a size of 0."""
    line = line[:LINE_LIMIT]
    if "+0x" not in line:
        if " (" in line and (decoded := _DECODED.search(line)) is not None:
            yield Reference(decoded["function"], 0, 0, "", _EXACT.search(line) is not None)
        return
    exact = _EXACT.search(line) is not None
    for match in _ADDRESS.finditer(line):
        yield Reference(
            function=match["function"],
            offset=int(match["offset"], 16),
            size=int(match["size"], 16),
            module=match["module"] or "",
            exact=exact,
        )
