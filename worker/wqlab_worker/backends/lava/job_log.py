"""Track one LAVA job: its progress, and its log split into the consoles of its boots."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import BootKey

from .job_definition import Definition, Phase
from .lava_client import Lava, LavaJob, LogLine

_START = LinearPattern(r"start: (\d{1,9})(?:\.\d+)* \S+")
_CONSOLE = {"target", "feedback"}
JUMPED = "Starting new kernel"
REFUSED = "wqlab-jump: refused: "


@dataclass
class BootLog:
    """Part of the log that belongs to one boot."""

    golden: list[bytes] = field(default_factory=list)
    """Console output of the golden system; the reader removes what it has passed on."""
    variant: list[bytes] = field(default_factory=list)
    """Console output from the jump on; the reader removes what it has passed on."""
    began: dict[Phase, datetime] = field(default_factory=dict)
    ended: datetime | None = None
    """Time of the boot's last line."""
    refused: str = ""
    """Reason why `onboard/jump` did not jump into the variant; empty if it jumped."""
    jumped: bool = False

    def seconds(self, since: Phase, until: Phase | None = None) -> float:
        """Return the seconds between the starts of two phases, or to the end of the boot; 0 if not known."""
        begin = self.began.get(since)
        end = self.began.get(until) if until else self.ended
        return max(0.0, (end - begin).total_seconds()) if begin and end else 0.0


class JobTracker:
    """State of one job. `follow` reads it from LAVA; everything else is known from the last read."""

    def __init__(self, lava: Lava, job_id: int, boots: list[BootKey], definition: Definition) -> None:
        self.job_id = job_id
        self.boots = boots
        self.tokens = definition.tokens
        self.job: LavaJob | None = None
        self.logs = [BootLog() for _ in boots]
        self.phase: Phase | None = None
        """Phase of the current or last action."""
        self.reached = -1
        """Number of the boot that this action belongs to; -1 before the first."""
        self.last_answer = self.last_console = time.monotonic()
        self.errors: list[str] = []
        """Error lines of the log."""
        self._lava = lava
        self._stages = definition.stages
        self._read = 0
        self._after_end = False

    @property
    def ended(self) -> bool:
        """True if the job has ended and its log was read to its end."""
        return self._after_end

    @property
    def measured(self) -> bool:
        """True if every boot is done and LAVA only cleans up."""
        return self.reached >= len(self.boots)

    def follow(self) -> list[LogLine]:
        """Read the job's state and return the new lines of its log. Raises LavaError."""
        # The state first: the log of a job that has finished by then is complete.
        job = self._lava.job(self.job_id)
        lines = self._lava.log(self.job_id, self._read)
        self.job, self.last_answer = job, time.monotonic()
        self._read += len(lines)
        for line in lines:
            self._process(line)
        self._after_end = job.finished and not lines
        return lines

    def is_complete(self, boot: int) -> bool:
        """Return True if no more output of this boot will come."""
        return self.ended or self.reached > boot

    def _process(self, line: LogLine) -> None:
        if line.lvl == "info" and (match := _START.match(line.text)):
            number = int(match[1]) - 1  # 0 is LAVA's validation; actions after those of the definition are its clean-up
            if number >= len(self._stages):
                self.reached = len(self.boots)
            elif number >= 0:
                boot, phase = self._stages[number]
                if (boot, phase) != (self.reached, self.phase):
                    self.reached, self.phase = boot, phase
                    self.logs[boot].began.setdefault(phase, line.dt)
            return
        if line.lvl == "error":
            self.errors.append(line.text[:2000])
        if not 0 <= self.reached < len(self.boots):
            return
        log = self.logs[self.reached]
        log.ended = line.dt
        if line.lvl not in _CONSOLE:
            return
        self.last_console = time.monotonic()
        data = line.text.encode(errors="replace") + b"\n"
        if self.phase in ("kexec", "test"):
            if self.phase == "kexec" and not log.jumped and self.uses_kexec:
                if REFUSED in line.text:
                    log.refused = line.text.partition(REFUSED)[2].strip()
                log.jumped = JUMPED in line.text
                log.golden.append(data)
            else:
                log.variant.append(data)
        else:
            log.golden.append(data)

    @property
    def uses_kexec(self) -> bool:
        """True if the device boots its variants through a golden system and kexec."""
        return (0, "golden") in self._stages
