"""Answer b4's check commands with the results that the lab has of a mail's series.

`b4 review` takes a JSON array of results (docs/maintainer/review.rst of b4, "Writing an external check script");
`b4 prep --check` takes a line for each complaint, of which those with `ERROR:` fail.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wqlab_contracts.api.submissions import SubmissionSummary, TargetSummary
from wqlab_contracts.enums import Outcome, SubmissionState
from wqlab_contracts.mail import message_ids
from wqlab_contracts.mails.mail_parts import header, parse_headers
from wqlab_contracts.mails.mbox import change_id
from wqlab_contracts.mails.subjects import parse_subject
from wqlab_contracts.messages import normalised_subject
from wqlab_contracts.target_checks import ORDER, Status, kind_of, status_of, status_of_failure, text_of

TOOL = "wqlab"
MAIL_BYTES = 4 << 20
"""Largest mail that is read."""
_TRACKING = "--- b4-submit-tracking ---"
"""Line of the cover commit before the JSON in which b4 describes the branch."""
UNSEEN = "not measured: the lab has not seen this mail"


@dataclass(frozen=True)
class SeriesIdentity:
    """What identifies the series of a mail in the lab."""

    message_ids: Sequence[str]
    """The mail's own Message-ID, then those that it answers, nearest first; the cover letter's is among them."""
    series_key: str
    """change-id, else the normalised subject; empty if the mail has neither."""
    version: int
    """2 for `[PATCH v2 ...]`."""


@dataclass(frozen=True)
class CheckResult:
    """A result as b4 shows it."""

    tool: str
    status: Status
    summary: str
    url: str
    details: str


def identify_series(mail: bytes) -> SeriesIdentity:
    """Return the identity of a mail's series. Never raises: bytes that are no mail have no ids and no key."""
    text = mail[:MAIL_BYTES].decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    message = parse_headers(text.partition("\n\n")[0])
    own = message_ids(header(message, "Message-ID"))
    references = message_ids(header(message, "References", last=True))
    before = [*message_ids(header(message, "In-Reply-To")), *reversed(references)]
    subject = header(message, "Subject")
    key = change_id([text]) or normalised_subject(subject)
    return SeriesIdentity(list(dict.fromkeys([*own, *before])), key, parse_subject(subject).version or 1)


def prepared_change_id(folder: Path) -> str:
    """Return the change-id of the branch that `b4 prep` has made in a repository; empty if there is none.

    The patches that `b4 prep --check` passes have no change-id, and a Message-ID that was never mailed.
    """
    command = ["git", "log", "-1", "--format=%B", f"--grep=^{_TRACKING}$"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
        tracked = json.loads(done.stdout.partition(_TRACKING)[2].partition("tracking purposes.")[2] or "null")
        found = tracked["series"]["change-id"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


def newest_result(found: Sequence[SubmissionSummary], version: int) -> SubmissionSummary | None:
    """Return the newest submission with results, else the newest that is not canceled; None if there is none.

    Submissions of other versions do not count, since a version may be a reply to an earlier one. Submissions without a
    version, such as of a branch, count.
    """
    kept = [each for each in found if each.outcome is not Outcome.CANCELED and each.version in {version, None}]
    finished = [each for each in kept if each.state is SubmissionState.FINISHED]
    return max(finished or kept, key=lambda each: each.id, default=None)


def check_of(submission: SubmissionSummary, lab_url: str) -> CheckResult:
    """Return the result of a submission: the worst of its targets, and of its own failure."""
    statuses: list[Status] = [status_of(each) for each in submission.targets]
    failure = submission.failure
    if failure is not None:
        statuses.append(status_of_failure(failure.kind))
    if submission.state is not SubmissionState.FINISHED:
        statuses.append("warn")
    said = [f"{_name(each)}: {text_of(each)}" for each in submission.targets]
    worst: Status = max(statuses, key=ORDER.index) if statuses else "warn"
    first = next((text for text, each in zip(said, statuses, strict=False) if each == worst), "")
    summary = first or f"submission {submission.id}, {submission.state.value}"
    if failure is not None:
        summary = f"{failure.kind.value}: {failure.summary}"
    elif submission.state is not SubmissionState.FINISHED:
        summary = f"in progress: {submission.done_boots} of {submission.total_boots} boots"
    head = f"submission {submission.id} by {submission.owner} on {submission.tree}"
    url = f"{lab_url.rstrip('/')}/r/{submission.id}"
    return CheckResult(TOOL, worst, _line(summary), url, "\n".join(map(_line, [head, *said])))


def as_documents(results: Sequence[CheckResult]) -> list[dict[str, str]]:
    """Return the results as `b4 review` reads them."""
    return [asdict(each) for each in results]


def as_complaints(result: CheckResult | None) -> list[str]:
    """Return the lines that `b4 prep --check` shows: none for a result that passes."""
    if result is None:
        return [f"WARNING: {UNSEEN}"]
    if result.status == "pass":
        return []
    return [f"{'ERROR' if result.status == 'fail' else 'WARNING'}: {result.summary} ({result.url})"]


def _name(target: TargetSummary) -> str:
    kind = kind_of(target)
    return f"{target.plan} on {target.device_type}{f' ({kind})' if kind else ''}"


def _line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
