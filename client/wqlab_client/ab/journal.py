"""Write the events of a run into its folder as they arrive, and read them again after an interruption."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.bundle import console_name, plain_name
from wqlab_contracts.enums import ArtifactKind, ErrorKind
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootKey,
    BootStarted,
    Failure,
    Progress,
    RunEvent,
    RunJob,
)

from ..errors import UsageError
from .state import StateFolder

_EVENT: TypeAdapter[RunEvent] = TypeAdapter(RunEvent)
CONSOLE_LIMIT = 64 << 20
"""Most bytes kept of one boot's console."""
INTERRUPTED = Failure(
    kind=ErrorKind.CANCELED,
    summary="`wqlab ab` was interrupted during this block",
    advice="The block is measured again.",
)


class Journal:
    """The `EventSink` of a run in a folder. An event is on disk when `event` returns.

    `report` is called with the progress of the run.
    """

    def __init__(self, folder: StateFolder, report: Callable[[Progress], None] = lambda _: None) -> None:
        self._folder = folder
        self._report = report
        self._lock = threading.Lock()
        _cut_torn_line(folder.events)
        self._file = folder.events.open("ab")

    def close(self) -> None:
        self._file.close()

    def event(self, event: RunEvent) -> None:
        if isinstance(event, Progress):
            self._report(event)
            return
        line = _EVENT.dump_json(event) + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()
            if isinstance(event, BlockFinished | BlockDiscarded):
                os.fsync(self._file.fileno())

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        path = self._folder.consoles / console_name(boot.block, boot.position, boot.arm, boot.attempt)
        if offset < CONSOLE_LIMIT:
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.seek(offset)
                file.write(data[: CONSOLE_LIMIT - offset])

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        (self._folder.output / plain_name(name)).write_bytes(data)

    def close_open_blocks(self, events: Sequence[RunEvent]) -> None:
        """Discard the attempts that began and did not end, because the program was killed."""
        for block, attempt in sorted(_open_attempts(events)):
            self.event(
                BlockDiscarded(at=datetime.now(UTC), block=block, attempt=attempt, arm=None, failure=INTERRUPTED)
            )


def read_events(path: Path) -> list[RunEvent]:
    """Return the events of a journal. A last line that was cut off is left out. Raises UsageError
    if another line is invalid."""
    if not path.exists():
        return []
    content = path.read_bytes()
    lines = content.split(b"\n")
    events = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            events.append(_EVENT.validate_json(line))
        except ValidationError as error:
            raise UsageError(f"{path}: line {number} is no event: {error.errors()[0]['msg']}", "start again") from None
    return events


def remaining_blocks(job: RunJob, events: Sequence[RunEvent], valid: set[int]) -> list[BlockPlan]:
    """Return the blocks that are not in `valid`, with the numbers of their next attempts."""
    begun: dict[int, int] = {}
    for event in events:
        if isinstance(event, BootStarted):
            begun[event.boot.block] = max(begun.get(event.boot.block, -1), event.boot.attempt)
    return [
        plan.model_copy(update={"first_attempt": begun.get(plan.block, -1) + 1})
        for plan in job.blocks
        if plan.block not in valid
    ]


def _open_attempts(events: Sequence[RunEvent]) -> set[tuple[int, int]]:
    begun = {(event.boot.block, event.boot.attempt) for event in events if isinstance(event, BootStarted)}
    ended = {(event.block, event.attempt) for event in events if isinstance(event, BlockFinished | BlockDiscarded)}
    return begun - ended


def _cut_torn_line(path: Path) -> None:
    """Remove a last line without an end, which a killed program or a full disk leaves."""
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)
