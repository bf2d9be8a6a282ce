"""Find the changed lines of a kernel that ran, from the addresses of the blocks that were executed.

As in `decoder.py`, vmlinux is read in the sandbox only, and the answer is validated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, ValidationError

from wqlab_contracts.enums import Ran
from wqlab_contracts.messages import Artifact, ChangedLines, Kernel, Message, RanLines

from ..failures import InfrastructureError, JobError
from .counted_code import LIMITS
from .decoder import run_in_sandbox

log = structlog.get_logger()

BEFORE = 10
"""Number of lines before a change that are looked up too."""
_RANGES = 200_000
_Offset = Annotated[int, Field(ge=-(1 << 40), le=1 << 40)]


class _Answer(Message):
    ranges: list[tuple[str, Annotated[int, Field(ge=0)], _Offset, _Offset]] = Field(
        default_factory=list, max_length=_RANGES
    )
    files: list[str] = Field(default_factory=list, max_length=_RANGES)
    error: Annotated[str, Field(max_length=300)] = ""


@dataclass
class ChangedCode:
    """The changed lines of one kernel. They are looked up once; `fetch` downloads an artifact and returns its path."""

    kernel: Kernel
    fetch: Callable[[Artifact], Path]
    changed: Sequence[ChangedLines]
    """Changed lines of this kernel's own source."""
    _found: _Answer | None = field(default=None)

    def ran(self, text: int, measured: Mapping[int, int], executed: Mapping[int, int]) -> list[RanLines]:
        """Return the changed lines with whether they ran; nothing if no line changed, or vmlinux cannot be read.

        `text` is the address of `_text` in the boot. `measured` and `executed` map the address of each block that ran
        (in windows, and in the whole boot) to its length in bytes.
        """
        if not self.changed or not text:
            return []
        if self._found is None:
            self._found = self._look_up()
        if self._found is None:
            return []
        lines: dict[tuple[str, int], Ran] = {}
        for ran, blocks in ((Ran.MEASURED, measured), (Ran.OUTSIDE, executed)):
            starts = sorted(blocks)
            longest = max(blocks.values(), default=0)
            for file, line, start, end in self._found.ranges:
                if lines.get((file, line), Ran.NEVER) is Ran.NEVER:
                    is_run = _overlaps(starts, blocks, longest, text + start, text + end)
                    lines[file, line] = ran if is_run else Ran.NEVER
        return list(_grouped(self.changed, lines, set(self._found.files)))

    def _look_up(self) -> _Answer | None:
        """Return the addresses of the changed lines; None if vmlinux cannot be read. Never raises."""
        if self.kernel.vmlinux is None:
            return None
        wanted: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for each in self.changed:
            wanted[each.file].append((each.first - BEFORE, each.last))
        try:
            files = {"/vmlinux": self.fetch(self.kernel.vmlinux)}
            answer = _Answer.model_validate_json(run_in_sandbox(files, wanted, LIMITS, script="read_line_table.py"))
            if answer.error:
                raise InfrastructureError(answer.error if answer.error.isprintable() else "unreadable")
            return answer
        except (JobError, ValidationError) as error:
            log.warning("changed lines have no addresses", reason=str(error))
        except Exception as error:  # counts without lines are better than none
            log.warning("changed lines have no addresses", reason=repr(error))
        self.changed = ()
        return None


def _overlaps(starts: Sequence[int], blocks: Mapping[int, int], longest: int, start: int, end: int) -> bool:
    """Return True if a block has a byte from `start` to before `end`. `starts` are the addresses of blocks, sorted."""
    at = bisect_left(starts, end)
    while at and starts[at - 1] + longest > start:
        at -= 1
        if starts[at] + blocks[starts[at]] > start:
            return True
    return False


def _grouped(
    changed: Iterable[ChangedLines], lines: Mapping[tuple[str, int], Ran], files: set[str]
) -> Iterator[RanLines]:
    """Yield the changed lines by range and by whether they ran.

    A range without code, such as the rest of a statement, is listed without lines: it ran if what stands before it did.
    A range outside of functions, such as the value of a variable, can have an effect anywhere.
    """
    for each in changed:
        by_state: dict[Ran, list[int]] = defaultdict(list)
        for line in range(each.first, each.last + 1):
            if (ran := lines.get((each.file, line))) is not None:
                by_state[ran].append(line)
        if not by_state:
            before = (lines.get((each.file, line)) for line in range(each.first - 1, each.first - BEFORE - 1, -1))
            known = each.function and next((ran for ran in before if ran is not None), None)
            by_state[known or Ran.UNKNOWN] = [] if each.file in files else list(range(each.first, each.last + 1))
        for ran, own in by_state.items():
            yield RanLines(file=each.file, function=each.function, arm=each.arm, ran=ran, lines=own)
