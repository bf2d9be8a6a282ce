"""Export the samples of a run as JSON or CSV, in pieces: a run may have a million samples."""

from __future__ import annotations

import io
from collections.abc import Iterator

from pydantic_core import to_json

from wqlab_comparison.csvfile import COLUMNS, write_csv

from ..models import Run
from ..storage.db import SessionFactory
from ..views.samples_table import sample_tables
from . import queries


def samples_json(sessions: SessionFactory, run_id: int, *, discarded: bool) -> Iterator[bytes]:
    """Yield a JSON array of SampleRow: every repetition of every valid boot, or with `discarded` of every boot."""
    with sessions() as session:
        separator = b"["
        for rows in queries.sample_rows(session, run_id, discarded):
            yield separator + to_json(rows)[1:-1]
            separator = b","
        yield b"[]" if separator == b"[" else b"]"


def samples_csv(sessions: SessionFactory, run: Run) -> Iterator[bytes]:
    """Yield a CSV file, the input of `wqlab compare`: every repetition of every valid boot."""
    with sessions() as session:
        yield (",".join(COLUMNS) + "\n").encode()
        for table in sample_tables(session, run):
            text = io.StringIO()
            write_csv(table, text)
            yield text.getvalue().partition("\n")[2].encode()
