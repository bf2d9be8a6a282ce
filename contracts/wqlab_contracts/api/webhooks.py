"""REST resources of webhooks, and the body that a webhook's receiver gets."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..enums import BisectionState, JobState, OutboxEvent, Outcome, Verdict
from ..jsontypes import JsonBool
from ..messages import Message
from ..messages.base import GitObject
from ..specs import Name

URL_LIMIT = 2000
"""Maximum length (characters) of a webhook's URL."""
WEBHOOK_TEST = "webhook.test"
"""Event that a webhook gets only when its owner asks for it."""
FILTER_LIMIT = 50
"""Maximum number of device types or plans in a filter."""

# --- webhooks ---------------------------------------------------------------------------------------------------


class WebhookFilter(Message):
    """Which events of its kinds a webhook gets. Each filter that is given must match."""

    mine: JsonBool = False
    """Only submissions and bisections of the webhook's owner."""
    device_types: list[Name] = Field(default_factory=list, max_length=FILTER_LIMIT)
    """Only these device types: of a submission's targets, of the targets that regressed, of the bisection, or of the
    device."""
    plans: list[Name] = Field(default_factory=list, max_length=FILTER_LIMIT)
    """Only these plans: of a submission's targets, of the targets that regressed, or of the bisection."""

    @property
    def is_empty(self) -> bool:
        """Return True if it matches every event."""
        return not (self.mine or self.device_types or self.plans)


class WebhookRequest(Message):
    """Body of a request to create a webhook."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=URL_LIMIT)]
    """Where the events are posted: https, without user name, password and fragment. Plain http is for hosts that the
    operator lists."""
    events: list[OutboxEvent] = Field(min_length=1, max_length=len(OutboxEvent))
    filter: WebhookFilter = Field(default_factory=WebhookFilter)
    """Only administrators may leave it empty."""


class WebhookView(Message):
    """A webhook, without its secrets."""

    id: int
    owner: str
    url: str
    events: list[OutboxEvent]
    filter: WebhookFilter
    created_at: datetime
    paused_at: datetime | None
    """Time at which the webhook was paused; null if it is not paused. A paused webhook gets no events."""
    removed_at: datetime | None
    rotating_until: datetime | None
    """Time until which deliveries are also signed with the previous secret; null if there is no previous secret."""


class WebhookSecret(WebhookView):
    """A webhook with a new secret."""

    secret: str
    """`whsec_` and base64, as Standard Webhooks has it; shown once."""


# --- bodies -----------------------------------------------------------------------------------------------------


class WebhookTarget(Message):
    """A target of a submission."""

    run_id: int
    plan: str
    device_type: str
    emulated: bool
    modelled: bool = False
    """True if the verdict is a model's. No `regression.found` is sent for one."""
    state: JobState
    outcome: Outcome | None
    verdict: Verdict | None
    """null until the figures are compared."""
    headline: str


class WebhookSubmission(Message):
    """Data of an event about a submission."""

    submission: int
    url: str
    """The report."""
    title: str
    series_key: str
    version: int | None
    author: str
    owner: str
    tree: str
    outcome: Outcome | None
    """null until the submission is finished."""
    exit_code: int | None
    """Exit code of `wqlab submit --wait`."""
    targets: list[WebhookTarget]
    """All targets; of regression.found those that regressed."""


class WebhookCulprit(Message):
    """Data of an event about a bisection that has found its commit."""

    bisection: int
    url: str
    """The bisection."""
    headline: str
    """The result in one sentence."""
    owner: str
    tree: str
    watch: str | None
    """Watch of the tree whose shift the lab bisected without a request; null if a user requested the bisection."""
    shift: int | None
    plan: str
    device_type: str
    scenario: str | None
    setting: str | None
    metric: str | None
    """null for a failure."""
    failure: str
    """Title of the kernel failure that is bisected, such as an oops; empty if a metric is bisected."""
    good: GitObject
    bad: GitObject
    submission: int
    """The submission that has compared good and bad; of a shift the one that regression.found was about."""
    confirmed_by: int
    """The submission that has compared the commit with its parent; equal to `submission` if the parent is good."""
    state: BisectionState
    """found, or range if commits beside the culprit cannot be measured."""
    first: GitObject
    """First commit of the range; equal to `culprit` if it is a single one."""
    culprit: GitObject
    """The commit; of a range its last one."""
    subject: str
    author: str
    is_merge: bool
    probability: float | None
    """Of the commit, or of the range."""
    verdict: Verdict | None
    """Of the commit against its parent; null for a failure."""
    effect: float | None
    """Change of the metric from the parent commit to this commit, in `effect_unit`; null for a kernel failure."""
    ci95: tuple[float, float] | None
    effect_unit: str


class WebhookDevice(Message):
    """Data of an event about a device."""

    device: str
    device_type: str
    lab: str
    reason: str
    by: str
    """Author of the change: a user's name, `run 12`, or `lab local`."""
    url: str


class WebhookLab(Message):
    """Data of an event about a lab."""

    lab: str
    last_seen_at: datetime
    devices: int
    """Number of its devices."""
    url: str


class WebhookTested(Message):
    """Data of the event that tests a webhook."""

    webhook: int
    by: str
    """The user who asked for it."""
    url: str
    """URL of the lab."""


class SubmissionNotice(Message):
    """Body of an event about a submission."""

    type: Literal[OutboxEvent.SUBMISSION_ACCEPTED, OutboxEvent.SUBMISSION_FINISHED, OutboxEvent.REGRESSION_FOUND]
    timestamp: datetime
    """When it happened."""
    data: WebhookSubmission


class CulpritNotice(Message):
    """Body of an event about a bisection."""

    type: Literal[OutboxEvent.CULPRIT_FOUND]
    timestamp: datetime
    data: WebhookCulprit


class DeviceNotice(Message):
    """Body of an event about a device."""

    type: Literal[OutboxEvent.DEVICE_QUARANTINED]
    timestamp: datetime
    data: WebhookDevice


class LabNotice(Message):
    """Body of an event about a lab."""

    type: Literal[OutboxEvent.LAB_LOST]
    timestamp: datetime
    data: WebhookLab


class WebhookTestNotice(Message):
    """Body of a test, which says that nothing has happened."""

    type: Literal["webhook.test"]
    timestamp: datetime
    data: WebhookTested


Notice = SubmissionNotice | CulpritNotice | DeviceNotice | LabNotice
"""Body of a webhook."""
