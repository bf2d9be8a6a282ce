"""Enumerations of the history of watched trees."""

from enum import StrEnum


class ShiftState(StrEnum):
    """State of a shift: a change of a metric's level in a history."""

    NEW = "new"
    """Suspected: no paired run of both sides has shown it yet."""
    CONFIRMED = "confirmed"
    """A paired run of both sides differs in the same direction."""
    NOT_REPRODUCED = "not_reproduced"
    """A paired run of both sides does not differ, or differs in the other direction; its figures are kept."""
    EXPLAINED = "explained"
    """A person has said why it is no defect."""
    FIXED = "fixed"
    """A person has named what fixes it."""


class ShiftSource(StrEnum):
    """What made the lab suspect a shift."""

    VERDICT = "verdict"
    """The verdict of a head against the head before."""
    LEVEL = "level"
    """A change point of the values over several heads."""
