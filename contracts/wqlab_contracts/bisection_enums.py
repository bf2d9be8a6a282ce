"""Enumerations of bisections."""

from enum import StrEnum


class BisectionState(StrEnum):
    """State of a bisection: the search for the commit that changed a metric or brought a kernel failure."""

    LISTING = "listing"
    """A worker lists the commits between the good and the bad one."""
    ENDS = "ends"
    """The good and the bad commit are measured side by side."""
    SEARCHING = "searching"
    """Commits between them are measured."""
    CONFIRMING = "confirming"
    """The suspected commit is measured against its parent."""
    FOUND = "found"
    """The commit is found, and confirmed against its parent."""
    RANGE = "range"
    """Neighbouring commits are found of which one is the culprit; those before the last cannot be measured."""
    NO_DIFFERENCE = "no_difference"
    """The good and the bad commit do not differ, so that there is nothing to search."""
    NOT_CONFIRMED = "not_confirmed"
    """Commits were suspected, but none differs from its parent; the figures are kept."""
    FAILED = "failed"
    """It cannot go on; the reason says why and what to do."""
    CANCELED = "canceled"


class BisectionStepKind(StrEnum):
    """What a submission of a bisection is for."""

    ENDS = "ends"
    """The good against the bad commit, with all blocks."""
    PROBE = "probe"
    """The good commit against one between the ends, with few blocks."""
    CONFIRM = "confirm"
    """The parent of the suspected commit against it, with all blocks."""
    REVERT = "revert"
    """The bad commit against itself with the found commit reverted on top, with all blocks; only of a regression on
    hardware."""


class BisectionStepState(StrEnum):
    """State of one measurement in a bisection."""

    RUNNING = "running"
    MEASURED = "measured"
    UNUSABLE = "unusable"
    """The commit cannot be measured: its kernel does not build, or fails before it gives a figure."""
    REPEATED = "repeated"
    """The lab failed during the measurement, which is made again."""
    CANCELED = "canceled"
