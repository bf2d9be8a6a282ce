"""Texts about looks: why a run stopped, what a look means, and the option that repeats it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison.looks import with_share
from wqlab_contracts.api.report import TargetReport

METHOD_OF_LOOKS = (
    "A run that stopped early was looked at after the planned numbers of blocks. Each look has a share of every level "
    "(.625, .1875, .15, then half of what is left), so that false claims over all looks together stay at 5 %; p is the "
    "smallest p of a look divided by its share, and the interval is repeated over the looks."
)
"""Description of the method that reports with looks have in addition to METHOD."""


def looks_option(targets: Sequence[TargetReport]) -> str:
    """Return ` --looks 6,10,16` for the command that repeats the comparison; empty if no run, or not each, has them."""
    found = {tuple(with_share(target.looks)) for target in targets}
    looks = found.pop() if len(found) == 1 else ()
    return f" --looks {','.join(map(str, looks))}" if looks else ""
