"""One LAVA job while it is on its way: its log, cut into the consoles of its boots, and how far it has come."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import datetime

from wqlab_contracts.messages import BootKey

from .client import Lava, LavaJob, LogLine
from .definition import Definition, Phase

_START = re.compile(r"start: (\d+)(?:\.\d+)* \S+")
_CONSOLE = {"target", "feedback"}
JUMPED = "Starting new kernel"
REFUSED = "wqlab-jump: refused: "


@dataclass
class BootLog:
    """What the log has of one boot."""

    golden: list[bytes] = field(default_factory=list)
    variant: list[bytes] = field(default_factory=list)
    """From the jump on; both are taken away by whoever passes them on."""
    began: dict[Phase, datetime] = field(default_factory=dict)
    ended: datetime | None = None
    """Of the last line that belongs to it."""
    refused: str = ""
    """Why `onboard/jump` did not go to the variant."""
    jumped: bool = False

    def seconds(self, since: Phase, until: Phase | None = None) -> float:
        """Between the beginnings of two phases, or to the boot's end; 0 where that is not known."""
        begin = self.began.get(since)
        end = self.began.get(until) if until else self.ended
        return max(0.0, (end - begin).total_seconds()) if begin and end else 0.0


class Flight:
    """`follow` asks LAVA how far it is; everything else is what is known since."""

    def __init__(self, lava: Lava, job_id: int, boots: list[BootKey], definition: Definition) -> None:
        self.job_id = job_id
        self.boots = boots
        self.tokens = definition.tokens
        self.job: LavaJob | None = None
        self.logs = [BootLog() for _ in boots]
        self.phase: Phase | None = None
        """Of the action that runs, or ran last."""
        self.reached = -1
        """The boot that this action belongs to."""
        self.last_answer = self.last_console = time.monotonic()
        self.errors: list[str] = []
        """What LAVA itself called an error, in its words."""
        self._lava = lava
        self._stages = definition.stages
        self._read = 0
        self._after_end = False

    @property
    def over(self) -> bool:
        """The job has ended and its log was read to its end."""
        return self._after_end

    @property
    def measured(self) -> bool:
        """Every boot is done; LAVA only tidies up."""
        return self.reached >= len(self.boots)

    def follow(self) -> list[LogLine]:
        """New lines of the log. Raises LavaError."""
        # In this order: what a finished job's log lacks now, it will always lack.
        job = self._lava.job(self.job_id)
        lines = self._lava.log(self.job_id, self._read)
        self.job, self.last_answer = job, time.monotonic()
        self._read += len(lines)
        for line in lines:
            self._take(line)
        self._after_end = job.finished and not lines
        return lines

    def whole(self, boot: int) -> bool:
        """Nothing more will come of this boot."""
        return self.over or self.reached > boot

    def _take(self, line: LogLine) -> None:
        if line.lvl == "info" and (match := _START.match(line.text)):
            number = int(match[1]) - 1  # 0 is LAVA's own validation; what follows ours, its clean-up
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
            if self.phase == "kexec" and not log.jumped and self.by_golden:
                if REFUSED in line.text:
                    log.refused = line.text.partition(REFUSED)[2].strip()
                log.jumped = JUMPED in line.text
                log.golden.append(data)
            else:
                log.variant.append(data)
        else:
            log.golden.append(data)

    @property
    def by_golden(self) -> bool:
        """The device comes to its variants through a golden system and kexec."""
        return (0, "golden") in self._stages
