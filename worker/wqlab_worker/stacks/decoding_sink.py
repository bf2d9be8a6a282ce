"""Event sink that decodes the addresses in kernel reports before the events go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore

import structlog

from wqlab_contracts.consoles.call_trace import annotated, references, stack_frames
from wqlab_contracts.consoles.stall_trace import trace_of
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.messages import (
    Artifact,
    BlockDiscarded,
    BootFinished,
    BootKey,
    Failure,
    Finding,
    Kernel,
    RunEvent,
    RunResult,
)

from ..backends.interface import Cancel, EventSink
from .decoder import Decoder

log = structlog.get_logger()

_REPORTS_KEPT = 400
"""Decoded reports that are kept for the failures that quote them."""
_WAITING_LIMIT = 2000
"""Events and pieces of the console that may wait for a decoding; then the callers wait too."""


class DecodingSink:
    """An `EventSink` in front of another one, which gets all calls in order, from one thread.

    Findings get source lines and call traces, and so do the failures of boots, blocks and runs that quote a finding. No
    boot waits for the decoding. `fetch` returns the path of an artifact on this machine. Nothing is decoded once
    `cancel` is set.
    """

    def __init__(
        self,
        sink: EventSink,
        kernels: Mapping[Arm, Sequence[Kernel]],
        fetch: Callable[[Artifact], Path],
        cancel: Cancel,
    ) -> None:
        self._sink = sink
        self._cancel = cancel
        self._decoders = {arm: [Decoder(each, fetch) for each in of_arm] for arm, of_arm in kernels.items()}
        self._decoded: dict[str, Finding] = {}
        self._room = BoundedSemaphore(_WAITING_LIMIT)
        self._queue = ThreadPoolExecutor(1, "decode")

    def event(self, event: RunEvent) -> None:
        self._submit(lambda: self._sink.event(self._decoded_event(event)))

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self._submit(lambda: self._sink.console(boot, offset, data))

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self._submit(lambda: self._sink.artifact(kind, name, data))

    def finish(self, result: RunResult) -> RunResult:
        """Wait until all events have been passed on; return the run's result, whose failure may quote a finding."""
        self.close()
        return result.model_copy(update={"failure": self._quoted(result.failure)}) if result.failure else result

    def close(self) -> None:
        """Wait until all events have been passed on. None may follow."""
        self._queue.shutdown()

    def _submit(self, work: Callable[[], None]) -> None:
        self._room.acquire()
        self._queue.submit(work).add_done_callback(self._finished)

    def _finished(self, done: Future[None]) -> None:
        self._room.release()
        if error := done.exception():
            log.error("event not passed on", error=repr(error))

    def _decoded_event(self, event: RunEvent) -> RunEvent:
        if isinstance(event, Finding):
            return self._decode(event)
        if isinstance(event, BootFinished | BlockDiscarded) and event.failure is not None:
            return event.model_copy(update={"failure": self._quoted(event.failure)})
        return event

    def _decode(self, finding: Finding) -> Finding:
        """Return the finding with source lines in its excerpt, its call trace and a description of its defect."""
        decoders = self._decoders.get(finding.boot.arm)
        decoder = decoders[finding.boot.block % len(decoders)] if decoders else None
        wanted = references(finding.excerpt)
        if decoder is None or not wanted or self._cancel.is_set():
            return finding
        places = decoder.places(wanted)
        excerpt = annotated(finding.excerpt, places)
        if decoder.lacking and not places:
            excerpt += f"\n[no line information: {decoder.lacking}]"
        stack = stack_frames(trace_of(finding.kind, finding.excerpt), places)
        decoded = finding.model_copy(
            update={
                "excerpt": shorten(excerpt),
                "stack": stack,
                "defect": describe_defect(finding.kind, finding.title, stack, finding.excerpt),
            }
        )
        if len(self._decoded) < _REPORTS_KEPT:
            self._decoded[finding.excerpt] = decoded
        return decoded

    def _quoted(self, failure: Failure) -> Failure:
        """Return the failure with excerpt, call trace and defect of the finding that it quotes, if it quotes one."""
        finding = self._decoded.get(failure.excerpt)
        if finding is None:
            return failure
        return failure.model_copy(update={"excerpt": finding.excerpt, "stack": finding.stack, "defect": finding.defect})
