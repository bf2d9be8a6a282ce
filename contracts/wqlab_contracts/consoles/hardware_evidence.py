"""Decide from the lines before a panic whether the hardware caused it.

A panic's own text decides nothing: any kernel can print it. Formats: arch/x86/kernel/cpu/mce, arch/x86/kernel/nmi.c,
drivers/acpi/apei, drivers/edac.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ..linear_patterns import LinearPattern
from .console_lines import ConsoleLine

HARDWARE_ERROR = "[Hardware Error]:"
"""Linux marks each line of a hardware error with this (HW_ERR)."""
LINES_KEPT = 40
WINDOW_S = 30.0
"""Longest time between the evidence and the panic."""

_MARKED = LinearPattern(r"^(?:mce: |core: |\{\d+\})?\[Hardware Error\]: ")
_BERT = LinearPattern(r"^(?:ACPI: )?BERT: Error records from previous boot")


@dataclass(frozen=True)
class _Cause:
    evidence: LinearPattern
    """Line about an error that the hardware did not correct."""
    panic: LinearPattern
    """Panics that follow it."""


# The status of a machine check bank begins with a, b, e or f if it is valid (bit 63) and uncorrected (bit 61).
_CAUSES = (
    _Cause(
        LinearPattern(
            r"^(?:mce: |core: )?\[Hardware Error\]: (?:CPU \d+: Machine Check(?: Exception)?: [0-9a-f]+ "
            r"Bank \d+: [abef][0-9a-f]+|Machine check: \S|System Fatal error|Uncorrected)"
            r"|^mce: CPUs not responding to MCE broadcast"
        ),
        LinearPattern(
            r"(?i)machine check|: Timeout: (?:Not all|Subject) CPUs|hardware (?:memory )?error|memory failure"
        ),
    ),
    _Cause(
        LinearPattern(r"^(?:\{\d+\})?\[Hardware Error\]: *event severity: (?:fatal|recoverable)"),
        LinearPattern(r"(?i)hardware (?:memory )?error|machine check|SError|external abort|memory failure"),
    ),
    _Cause(
        LinearPattern(r"^NMI: (?:PCI system error|IOCK error|memory parity error).* for reason [0-9a-f]+ on CPU \d+"),
        LinearPattern(r"\bNMI\b"),
    ),
    _Cause(LinearPattern(r"^EDAC \w+: (?:\d+ )?(?:UE |Uncorrected )"), LinearPattern(r"\bUE\b|EDAC|(?i:uncorrected)")),
)


def _is_about_hardware(message: str) -> bool:
    """Return False if none of the patterns can match; nearly all lines are such."""
    return (
        "Hardware Error" in message
        or "BERT" in message
        or "mce: " in message
        or "NMI: " in message
        or "EDAC " in message
    )


class HardwareEvidence:
    """The newest lines about hardware errors of the running kernel."""

    def __init__(self) -> None:
        self._lines: deque[tuple[ConsoleLine, int]] = deque(maxlen=LINES_KEPT)
        self._earlier_boot = False

    def forget(self) -> None:
        """Forget all lines: another kernel starts."""
        self._lines.clear()
        self._earlier_boot = False

    def add(self, line: ConsoleLine, offset: int) -> bool:
        """Keep a line if it is about a hardware error of this boot; return True if it is."""
        if not _is_about_hardware(line.message):
            self._earlier_boot = False
            return False
        if _BERT.match(line.message):
            self._earlier_boot = True
            return False
        marked = _MARKED.match(line.message) is not None
        if self._earlier_boot and marked:
            return False
        self._earlier_boot = False
        if not marked and not any(cause.evidence.match(line.message) for cause in _CAUSES):
            return False
        self._lines.append((line, offset))
        return True

    def before(self, title: str, time_s: float | None) -> list[tuple[ConsoleLine, int]]:
        """Return the lines, oldest first, that show that the hardware caused the panic or abort with this title."""
        recent = [
            (line, offset)
            for line, offset in self._lines
            if time_s is None or line.time_s is None or 0 <= time_s - line.time_s <= WINDOW_S
        ]
        for cause in _CAUSES:
            if cause.panic.search(title) and any(cause.evidence.match(line.message) for line, _ in recent):
                return recent
        return []


def hardware_error_lines(lines: Iterable[ConsoleLine]) -> list[str]:
    """Return the lines about hardware errors of this boot, corrected ones included; not those of the boot before."""
    found, earlier_boot = [], False
    for line in lines:
        if _BERT.match(line.message):
            earlier_boot = True
        elif HARDWARE_ERROR not in line.text:
            earlier_boot = False
        elif not earlier_boot:
            found.append(line.text)
    return found
