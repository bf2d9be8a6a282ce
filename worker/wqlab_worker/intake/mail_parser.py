"""Run the program that reads mails, `parse_thread`, inside the sandbox."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

import wqlab_contracts
import wqlab_worker
from wqlab_contracts.api.series import SeriesInspection

from ..failures import InfrastructureError, UserError
from ..limits import GIB, MIB, Limits
from ..sandbox import TOOLS, Sandbox, interpreter, limit_error
from ..workspace import Progress, collect

LIMITS = Limits(
    wall_s=60.0, disk_bytes=192 * MIB, file_bytes=128 * MIB, memory_bytes=2 * GIB, log_bytes=MIB, processes=32
)
SERIES_MBOX = "series.mbox"
"""File in the folder `out` that is inspected."""
_TEXT_LIMIT = 16 * MIB
_CODE = "/code"
_PARSER = "wqlab_worker.intake.parse_thread"


@dataclass(frozen=True)
class MailParser:
    """The program, with the folders `in` and `out` of `folder`."""

    folder: Path
    what: str
    """What is read, in messages: `the thread`."""
    progress: Progress
    advice: str = ""
    """What the user can do if it cannot be read."""

    def run(self, *arguments: str) -> None:
        """Run the program. Raises UserError if the mails are at fault, and InfrastructureError if it fails."""
        packages = {module.__name__: Path(module.__file__ or "").parent for module in (wqlab_contracts, wqlab_worker)}
        log = io.BytesIO()
        sandbox = Sandbox(
            read_only={
                "/in": self.folder / "in",
                **{f"{_CODE}/{name}": path for name, path in packages.items()},
                **interpreter(),
            },
            writable={"/out": self.folder / "out"},
            environment={"PYTHONPATH": _CODE, "PYTHONDONTWRITEBYTECODE": "1"},
            limits=LIMITS,
        )
        (self.folder / "out" / "problem.json").unlink(missing_ok=True)
        finished = sandbox.run(
            [f"{TOOLS}/bin/python", "-m", _PARSER, *arguments],
            log=log,
            on_tick=lambda: self.progress(f"reading {self.what}", 0, 0),
        )
        output = log.getvalue().decode(errors="replace")
        if finished.stopped is not None:
            raise limit_error(finished.stopped, f"reading {self.what}", output)
        if finished.exit_code != 0:
            raise InfrastructureError(f"{self.what} cannot be read", excerpt=output, advice=self.advice)
        if (self.folder / "out" / "problem.json").exists():
            problem = json.loads(self.text("problem.json"))
            raise UserError(str(problem["summary"]), advice=str(problem["advice"]))

    def text(self, name: str) -> str:
        """Return the text of a file that the program has written."""
        target = self.folder / name
        target.unlink(missing_ok=True)
        try:
            collect(self.folder / "out", name, target, _TEXT_LIMIT)
            return target.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InfrastructureError(f"{self.what} cannot be read", excerpt=str(error)) from error

    def inspect(self) -> SeriesInspection:
        """Return what SERIES_MBOX holds. Raises pydantic.ValidationError if the program's answer is malformed."""
        self.run("inspect")
        return SeriesInspection.model_validate_json(self.text("inspection.json"))
