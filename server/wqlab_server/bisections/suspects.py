"""Write the suspected commits of a bisection into its row."""

from __future__ import annotations

import numpy as np

from ..models import Bisection
from .plan import Line


def suspect(row: Bisection, line: Line, first: int | None = None, last: int | None = None) -> None:
    """Write the suspected commits; without positions the most probable one."""
    if line.chances is None:
        return
    if first is None or last is None:
        first = last = int(np.argmax(line.chances)) + 1
    commit = line.commits[last - 1]
    row.first, row.culprit = line.commits[first - 1].commit, commit.commit
    row.culprit_subject, row.culprit_author, row.culprit_is_merge = commit.subject, commit.author, commit.is_merge
    row.probability = float(line.chances[first - 1 : last].sum())


def clear(row: Bisection) -> None:
    row.first = row.culprit = row.probability = None
    row.culprit_subject, row.culprit_author, row.culprit_is_merge = "", "", False
