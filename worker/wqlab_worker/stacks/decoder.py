"""Decode the addresses of kernel reports to lines of the source, in the sandbox.

The report comes from a device, and vmlinux and the sources from submitted code: drgn reads them only inside the sandbox
(`resolve_addresses.py`), with limits on time, memory and output, and the result is validated here.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, ValidationError, field_validator

from wqlab_contracts.consoles.call_trace import REFERENCES_LIMIT, Reference
from wqlab_contracts.messages import Artifact, Kernel, Message, StackFrame

from ..failures import InfrastructureError, JobError
from ..sandbox import GIB, MIB, TOOLS, Limits, Sandbox, interpreter

log = structlog.get_logger()

LIMITS = Limits(wall_s=60.0, disk_bytes=MIB, memory_bytes=GIB, processes=16, log_bytes=MIB, tmp_bytes=MIB)
SANDBOXES_LIMIT = 20
"""Most decodings for one kernel in a run: a kernel may report something new again and again."""


class _Frame(StackFrame):
    """A frame whose texts cannot leave the tree or control a terminal. Names are ASCII, as in the kernel, so that a
    finding with STACK_LIMIT frames is small enough for the server."""

    function: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.$]+$", max_length=200)]
    file: Annotated[
        str, Field(pattern=r"^([A-Za-z0-9_+,-][A-Za-z0-9_.+,-]*(/[A-Za-z0-9_+,-][A-Za-z0-9_.+,-]*)*)?$", max_length=300)
    ] = ""

    @field_validator("source")
    @classmethod
    def _require_printable(cls, source: str) -> str:
        if not source.isprintable():
            raise ValueError("source lines have no control characters")
        return source


class _Answer(Message):
    places: list[Annotated[list[_Frame], Field(max_length=20)]] | None = Field(
        default=None, max_length=REFERENCES_LIMIT
    )
    error: Annotated[str, Field(max_length=300)] = ""


@dataclass
class Decoder:
    """Decoder for the reports of one kernel. `fetch` returns the path of an artifact on this machine.

    Addresses are decoded once. `lacking` is the reason why there are no lines; empty while there are some.
    """

    kernel: Kernel
    fetch: Callable[[Artifact], Path]
    lacking: str = ""
    _known: dict[Reference, list[StackFrame]] = field(default_factory=dict)
    _sandboxes: int = 0

    def places(self, references: Sequence[Reference]) -> dict[Reference, list[StackFrame]]:
        """Return the decoded frames of each reference; those that could not be decoded are missing. Never raises."""
        new = [reference for reference in references if reference not in self._known and not reference.module]
        if new and not self.lacking and self._sandboxes < SANDBOXES_LIMIT:
            self._sandboxes += 1
            try:
                self._decode(new)
            except JobError as error:
                self.lacking = str(error)
            except Exception as error:  # a report without lines is better than none
                log.warning("addresses not decoded", error=repr(error))
                self.lacking = "vmlinux could not be fetched"
        return {each: self._known[each] for each in references if self._known.get(each)}

    def _decode(self, references: Sequence[Reference]) -> None:
        if self.kernel.vmlinux is None:
            self.lacking = "the server does not provide vmlinux"
            return
        files = {"/vmlinux": self.fetch(self.kernel.vmlinux)}
        if self.kernel.sources is not None:
            files["/sources.zip"] = self.fetch(self.kernel.sources)
        found = resolve(files, references)
        if found is None:
            self.lacking = f"recipe {self.kernel.recipe} builds without debug information"
        else:
            self._known |= found


def resolve(files: dict[str, Path], references: Sequence[Reference]) -> dict[Reference, list[StackFrame]] | None:
    """Return the frames of each reference; None if vmlinux has no debug information.

    `files` are /vmlinux and /sources.zip; the second need not be there. Raises InfrastructureError if vmlinux cannot be
    read or the sandbox cannot be set up.
    """
    output = run_in_sandbox(files, [[each.function, each.offset, each.size, each.exact] for each in references], LIMITS)
    try:
        answer = _Answer.model_validate_json(output)
    except ValidationError as error:
        raise InfrastructureError("the debug information of vmlinux is not usable") from error
    if answer.error or (answer.places is not None and len(answer.places) != len(references)):
        reason = f": {answer.error}" if answer.error.isprintable() else ""
        raise InfrastructureError(f"the debug information of vmlinux cannot be read{reason}")
    return (
        None
        if answer.places is None
        else {each: [*frames] for each, frames in zip(references, answer.places, strict=True)}
    )


def run_in_sandbox(
    files: dict[str, Path], request: object, limits: Limits, *, script: str = "resolve_addresses.py"
) -> bytes:
    """Run a script of this folder on a request and return its output, which is to be validated.

    Raises InfrastructureError if the sandbox cannot be set up or a limit is exceeded.
    """
    with tempfile.NamedTemporaryFile("w", prefix="wqlab-addresses-") as asked:
        json.dump(request, asked)
        asked.flush()
        sandbox = Sandbox(
            read_only={
                "/resolve.py": Path(__file__).with_name(script),
                "/request.json": Path(asked.name),
                **files,
                **interpreter(),
            },
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
            limits=limits,
        )
        output = io.BytesIO()
        command = [f"{TOOLS}/bin/python", "-I", "/resolve.py", "/vmlinux", "/sources.zip", "/request.json"]
        finished = sandbox.run(command, log=output)
    if finished.stopped:
        raise InfrastructureError(f"reading vmlinux exceeded its limit of {finished.stopped.value}")
    return output.getvalue()
