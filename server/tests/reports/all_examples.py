"""The example reports by name; each has a golden text."""

from __future__ import annotations

from .instrument_examples import instrumented
from .report_examples import improvement, panic, study
from .sweep_examples import swept
from .walk_examples import walked

EXAMPLES = {
    "improvement": improvement,
    "study": study,
    "panic": panic,
    "instrumented": instrumented,
    "sweep": swept,
    "walk": walked,
}
