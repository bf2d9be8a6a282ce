"""The example reports by name, and the golden files that are made from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from failed_examples import FAILED
from instrument_examples import instrumented
from modelled_examples import modelled
from report_examples import improvement, panic, study
from sweep_examples import swept
from walk_examples import walked

from wqlab_contracts.api.report import Report
from wqlab_report.writers.kcidb import Sender, render_kcidb
from wqlab_report.writers.mmtests import render_mmtests
from wqlab_report.writers.text import render_text

EXAMPLES = {
    "improvement": improvement,
    "study": study,
    "panic": panic,
    "instrumented": instrumented,
    "sweep": swept,
    "walk": walked,
    "modelled": modelled,
}


def _text(make: Callable[[], Report]) -> str:
    return render_text(make())


GOLDEN_FILES: dict[str, Callable[[], str]] = {
    **{f"{name}.txt": partial(_text, make) for name, make in (EXAMPLES | FAILED).items()},
    "improvement.kcidb.json": lambda: render_kcidb(improvement(), Sender("wqlab_test")),
    "improvement.mmtests": lambda: render_mmtests(improvement()),
}
"""File name -> its content. The text has a file for each report, KCIDB's format and that of MMTests one each."""
