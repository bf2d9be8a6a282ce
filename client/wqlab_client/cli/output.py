"""Output of a command: results on stdout; progress, hints, warnings and errors on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from ..errors import RequestRefused, UsageError, WqlabError
from ..formatting import align_columns, clean, escape_json, one_line

if TYPE_CHECKING:
    from pydantic import BaseModel

    from wqlab_contracts.api.base import Page

Item = TypeVar("Item")

SIGPIPE_EXIT = 141
"""Exit code that a shell reports for a program ended by SIGPIPE."""


class Output:
    """Output streams of one command; coloured only on a terminal, and not with NO_COLOR or TERM=dumb."""

    def __init__(self) -> None:
        self.out = _console(sys.stdout)
        self.err = _console(sys.stderr)

    @property
    def interactive(self) -> bool:
        """Return True if both streams are a terminal that can redraw."""
        return _is_terminal(sys.stdout) and _is_terminal(sys.stderr)

    def line(self, text: Text | str = "") -> None:
        """Print one line of a result."""
        with _ExitOnBrokenPipe():
            self.out.print(_escaped(text), soft_wrap=True)

    def lines(self, lines: Iterable[Text | str]) -> None:
        for line in lines:
            self.line(line)

    def page(self, page: Page[Item], *, as_json: bool, show: Callable[[list[Item]], None], none: str = "") -> None:
        """Print a page as JSON, or its items by `show` and how to get the next page; `none` for an empty one."""
        if as_json:
            self.document(page)
        elif none and not page.items:
            self.note(none)
        else:
            show(page.items)
            if page.next:
                self.note(f"{len(page.items)} of {page.total}; next page: --cursor {page.next}")

    def note(self, text: Text | str) -> None:
        """Print a line on stderr: progress or a hint, not a result."""
        with _ExitOnBrokenPipe():
            self.err.print(_escaped(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        self.note(Text.assemble(("wqlab: warning: ", "yellow"), one_line(text)))

    def error(self, error: WqlabError) -> None:
        self.note(Text.assemble(("wqlab: error: ", "bold red"), one_line(error.summary)))
        if isinstance(error, RequestRefused) and len(error.mistakes) > 1:
            for mistake in error.mistakes:
                self.note(f"  {one_line(mistake)}")
        if error.fix:
            self.note(f"  {one_line(error.fix)}")

    def document(self, value: BaseModel | Sequence[BaseModel] | dict[str, object]) -> None:
        """Print a value as one JSON document."""
        self._write(_json(value, 2) + "\n")

    def record(self, value: BaseModel) -> None:
        """Print a value as one line of JSON."""
        self._write(_json(value, None) + "\n")

    def text(self, text: str, target: Path | None = None) -> None:
        """Write a text to the file `target` unchanged, or to stdout, with control characters escaped on a terminal.

        Raises UsageError if the file cannot be written.
        """
        text = text if text.endswith("\n") or not text else text + "\n"
        if target is not None and str(target) != "-":
            try:
                target.write_text(text, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write {target}: {error.strerror}", "choose another -o FILE") from None
            return
        self._write(clean(text) if sys.stdout.isatty() else text)

    def raw(self, chunk: bytes) -> None:
        """Write bytes of a console: unchanged into a pipe or file, with control characters escaped on a terminal."""
        if sys.stdout.isatty():
            self._write(clean(chunk.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "")))
            return
        with _ExitOnBrokenPipe():
            sys.stdout.flush()
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()

    @property
    def width(self) -> int:
        """Columns of the terminal; of a pipe $COLUMNS, or 80."""
        return self.out.width

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Text | str]]) -> None:
        """Print aligned columns that fit the width; wide ones are folded."""
        for lines in align_columns(header, rows, self.width):
            self.lines(lines)

    def _write(self, text: str) -> None:
        with _ExitOnBrokenPipe():
            sys.stdout.write(text)
            sys.stdout.flush()


def _console(stream: IO[str]) -> Console:
    # Rich must not interpret submitted titles (markup, emoji), and a pipe has no width.
    # FORCE_COLOR is for CI logs that show colours although they are no terminal.
    styled = None if _is_terminal(stream) or os.environ.get("FORCE_COLOR") else False
    return Console(file=stream, markup=False, emoji=False, highlight=False, force_terminal=styled)


def _is_terminal(stream: IO[str]) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") not in {"", "dumb", "unknown"}


def _escaped(text: Text | str) -> Text:
    if isinstance(text, str):
        return Text(clean(text))
    if clean(text.plain) != text.plain:
        return Text(clean(text.plain), style=text.style)
    return text


def _json(value: BaseModel | Sequence[BaseModel] | dict[str, object], indent: int | None) -> str:
    """Return JSON in which control characters of C1 and bidirectional text are escaped, as JSON does for those of C0.

    They are only in strings, whose value stays the same.
    """
    from pydantic import BaseModel, TypeAdapter  # with the models of the command that has a document

    if isinstance(value, BaseModel):
        text = value.model_dump_json(indent=indent, by_alias=True)
    else:
        text = TypeAdapter(object).dump_json(value, indent=indent, by_alias=True).decode()
    return escape_json(text)


class _ExitOnBrokenPipe:
    """Context that ends the command silently when the reader of its output has exited (`wqlab list | head`)."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, BrokenPipeError):
            # Python flushes stdout again at exit; redirect it so that this does not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(SIGPIPE_EXIT)
