"""Enumerations of what makes submissions by itself, watches and forges, and of commands by mail."""

from enum import StrEnum


class CommandState(StrEnum):
    """What the lab has done with a command that came by mail."""

    DONE = "done"
    REFUSED = "refused"
    """It was not followed; the reason says why."""


class OrderState(StrEnum):
    """State of an order: of something that a source wants to have measured."""

    WAITING = "waiting"
    SUBMITTED = "submitted"
    """Its submission is not finished."""
    FINISHED = "finished"
    STOPPED = "stopped"
    """It will not be submitted, or not again; the reason says why."""
    WITHDRAWN = "withdrawn"
    """Its source does not want it any more."""


class DecisionState(StrEnum):
    """State of a watch's decision on a series of its mailing list."""

    WAITING = "waiting"
    """The watch will take the series later; `reason` says what it waits for."""
    TAKEN = "taken"
    """The watch has created a submission for the series."""
    NOT_TAKEN = "not_taken"


class DecisionReason(StrEnum):
    """Why a watch waits with a series of its mailing list, or does not take it."""

    PATHS = "paths"
    SUBJECTS = "subjects"
    AUTHORS = "authors"
    NOT_ASKED = "not_asked"
    """The cover letter has no line `wqlab: test`, which the watch wants."""
    INCOMPLETE = "incomplete"
    """Patches did not arrive within a day."""
    REMOVED = "removed"
    """The archive has removed a mail of the series."""
    OTHER_WATCH = "other_watch"
    """Another watch takes the series."""
    SUPERSEDED = "superseded"
    """A later revision has arrived."""
    DISABLED = "disabled"
    """The watch was disabled or removed while the series waited."""
    QUIET_HOURS = "quiet_hours"
    OVER_BUDGET = "over_budget"
    """The device time of the watch's last 24 hours and of this series is more than its budget."""
    QUOTA = "quota"
    """A quota of the watch's owner is used up."""
    INVALID = "invalid"
    """The lab refuses the submission, such as for a plan that it does not have."""


class WatchedHeadState(StrEnum):
    """State of a head of a watched tree."""

    START = "start"
    """The first head that the lab has seen. It is not measured; the next head is compared with it."""
    WAITING = "waiting"
    RUNNING = "running"
    """The submission that measures the head is not finished."""
    MEASURED = "measured"
    SKIPPED = "skipped"
    FAILED = "failed"


class ForgeHeadState(StrEnum):
    """State of the head of a pull request or branch on a forge."""

    READING = "reading"
    """The lab reads its commits and `.wqlab.yaml`."""
    WAITING = "waiting"
    """It waits for a label or for a quota; the reason says which."""
    MEASURING = "measuring"
    MEASURED = "measured"
    NOT_MEASURED = "not_measured"
    """The reason says why: nobody may spend device time on it, or its repository does not ask for it."""


class HeadDecision(StrEnum):
    """What the lab has decided about the head of a pull request or branch; those with a status tell its reason."""

    OPEN = "open"
    WAITS = "waits"
    """Commit status `pending`: for a label, a quota or an operator."""
    SUBMITTED = "submitted"
    NOTHING = "nothing"
    """Commit status `success`: it changes nothing that is measured."""
    WRONG = "wrong"
    """Commit status `failure`: its `.wqlab.yaml` has a mistake."""
    FAILED = "failed"
    """Commit status `error`: the lab could not read it."""
    SILENT = "silent"
    """No commit status: its repository does not ask for a measurement."""


class HeadNews(StrEnum):
    """Whether the forge has to be told something about a head."""

    NEW = "new"
    TOLD = "told"
    ENDED = "ended"
    """The last status is written."""
