"""REST resources of what a series touches: plans that the lab proposes for its changes."""

from __future__ import annotations

from pydantic import Field

from ..messages import Message, Series, Target
from ..specs import Name
from ..specs.touches import DeviceKind
from .quotes import TargetQuote

REASONS_LIMIT = 20
"""Maximum number of files in a reason, and of symbols of each."""
UNCOVERED_LIMIT = 100


class TouchesRequest(Message):
    """A series whose targets the lab is asked to propose."""

    series: Series
    """An `mbox`, a `thread` that `GET /archives/thread` has found, or a branch (`git`) that `GET
    /git/branches/inspection` has read with the same tree. The lab has no diff of a pair of commits."""
    tree: Name | None = None
    """Kernel tree of the quote, and with which a branch is compared; null: the lab's default."""


class TouchedFile(Message):
    """A file that a series changes, with the symbols that count."""

    path: str
    symbols: list[str] = Field(default_factory=list)
    """Functions, variables, types and macros in the table; empty if any change of the file counts."""


class TargetProposal(Message):
    """A target that is proposed for a series."""

    target: Target
    """As a submission takes it."""
    devices: list[DeviceKind]
    """What the device type had to be."""
    also_on: list[str]
    """Other device types of the lab that are all of this."""
    asks: list[str]
    """What the plan could answer, as questions."""
    because: list[TouchedFile]
    """What the series changes, as far as it led to this target; at most 20 files with 20 symbols each."""
    by_symbol: bool
    """True if a symbol led to it, not only a file. Such proposals come first."""
    quote: TargetQuote | None = None
    """Its cost, as part of one submission with all proposals."""


class LeftOutPlan(Message):
    """A plan that the table has for a series, and that is not proposed."""

    plan: str
    devices: list[DeviceKind]
    why: str
    because: list[TouchedFile]


class Touches(Message):
    """What a series touches: proposed targets, most specific first."""

    proposals: list[TargetProposal]
    left_out: list[LeftOutPlan]
    uncovered: list[str]
    """Changed files for which the table has no plan; at most 100."""
    files: int
    """Number of files that the series changes."""
    looked_at: int
    """Number of these files that were looked at; fewer than `files` for a very large series."""
    device_s: float | None = None
    """Device time of all proposals; null if one of them has no estimate."""
    build_s: float | None = None
    """Time of the kernel builds that they need; null if it is unknown."""
