"""Enumerations of what leaves the lab: events, deliveries and their attempts."""

from enum import StrEnum


class OutboxEvent(StrEnum):
    """Kind of an event that the lab tells others about."""

    SUBMISSION_ACCEPTED = "submission.accepted"
    """A submission was created: its request is valid and its jobs are queued."""
    SUBMISSION_FINISHED = "submission.finished"
    REGRESSION_FOUND = "regression.found"
    """A finished submission has a target whose verdict is a regression."""
    CULPRIT_FOUND = "culprit.found"
    """A bisection has found the commit, or the range of commits, that has changed a metric or makes the kernel fail."""
    DEVICE_QUARANTINED = "device.quarantined"
    LAB_LOST = "lab.lost"
    """The worker of a lab has not reported for a while."""


class DeliveryKind(StrEnum):
    """Way in which a delivery leaves the lab."""

    WEBHOOK = "webhook"
    MAIL = "mail"
    """An answer to a series, for everyone who got the series."""
    PERSONAL_MAIL = "personal_mail"
    """A mail to one account: one of its results, or the confirmation of its address."""
    KCIDB = "kcidb"
    """A document for KernelCI's results database."""
    FORGE_STATUS = "forge_status"
    """Status of a commit on a forge."""
    FORGE_COMMENT = "forge_comment"
    """The lab's one comment on a pull request."""
    PATCHWORK_CHECK = "patchwork_check"
    """Check of a patch on a Patchwork."""


class DeliveryState(StrEnum):
    """State of a delivery."""

    WAITING_FOR_REVIEW = "waiting_for_review"
    """A maintainer has to approve the mail."""
    WAITING = "waiting"
    """To be sent when it is due, now or again."""
    DELIVERED = "delivered"
    """The receiver has accepted it."""
    GIVEN_UP = "given_up"
    """The receiver has refused it for good, or all attempts have failed."""
    DROPPED = "dropped"
    """A maintainer has decided that it is not sent, or its webhook was removed."""


class AttemptOutcome(StrEnum):
    """Outcome of one attempt at a delivery."""

    ACCEPTED = "accepted"
    FAILED = "failed"
    """The receiver did not get it, or asked to be tried again later."""
    UNKNOWN = "unknown"
    """The receiver may have got it, but has not said so."""
    REFUSED = "refused"
    """The receiver has refused it for good."""
