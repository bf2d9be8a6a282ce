"""Calls that create, list and change submissions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TypedDict, Unpack, cast

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.quotes import Quota
from wqlab_contracts.api.submissions import SubmissionRequest, SubmissionSummary, SubmissionView
from wqlab_contracts.enums import Outcome, SubmissionState

from ..transport import Retry, decode
from .connection import API, Connection


class SubmissionFilter(TypedDict, total=False):
    """Filters of a submission list; `q` is text to search for."""

    state: SubmissionState | None
    outcome: Outcome | None
    tree: str | None
    owner: str | None
    plan: str | None
    device_type: str | None
    series_key: str | None
    message_id: str | None
    q: str | None


class SubmissionCalls(Connection):
    """Calls on submissions."""

    def submit(self, request: SubmissionRequest, idempotency_key: str | None = None) -> SubmissionView:
        """Create a submission.

        The request carries an Idempotency-Key, so that repeating it after a lost answer never creates a second
        submission. Pass your own key (such as a CI job's id) so that a rerun of that job returns the same submission.
        """
        return self._post(
            SubmissionView,
            f"{API}/submissions",
            "submit",
            body=request.model_dump_json().encode(),
            headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())},
        )

    def submissions(self, *, page_size: int = 50, **filters: Unpack[SubmissionFilter]) -> Iterator[SubmissionSummary]:
        """Yield all submissions that match, newest first; pages are fetched as they are consumed."""
        cursor = None
        while True:
            page = self.submissions_page(limit=page_size, cursor=cursor, **filters)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return

    def submissions_page(
        self, *, cursor: str | None = None, limit: int = 50, **filters: Unpack[SubmissionFilter]
    ) -> Page[SubmissionSummary]:
        """Return one page of the submissions that match, newest first; `cursor` is the `next` of the page before."""
        chosen = cast("dict[str, str | None]", filters)
        params: dict[str, str | int | None] = {**chosen, "cursor": cursor, "limit": limit}
        return self._get(Page[SubmissionSummary], f"{API}/submissions", "list submissions", params)

    def submission(self, submission_id: int, *, retry: Retry | None = None) -> SubmissionView:
        path, what = submission_path(submission_id)
        return self._get(SubmissionView, path, what, retry=retry)

    def cancel(self, submission_id: int) -> SubmissionView:
        path, what = submission_path(submission_id)
        return self._post(SubmissionView, f"{path}/cancel", f"cancel {what}")

    def retry(self, submission_id: int, *, blocks: int | None = None) -> SubmissionView:
        """Submit the same request again, with another number of blocks if given, and return the new submission.

        Not retried when the answer is lost.
        """
        path, what = submission_path(submission_id)
        query = "" if blocks is None else f"?blocks={blocks}"
        return self._post(SubmissionView, f"{path}/retry{query}", f"retry {what}", repeatable=False)

    def pin(self, submission_id: int) -> SubmissionView:
        """Keep the submission's kernels, logs and consoles, whatever their age."""
        path, what = submission_path(submission_id)
        return decode(SubmissionView, self._transport.call("PUT", f"{path}/pin", what=f"pin {what}"), f"pin {what}")

    def unpin(self, submission_id: int) -> SubmissionView:
        path, what = submission_path(submission_id)
        return decode(
            SubmissionView, self._transport.call("DELETE", f"{path}/pin", what=f"unpin {what}"), f"unpin {what}"
        )

    def series(self, submission_id: int) -> str:
        """Return the series under test as an mbox, which `git am` applies on top of the base commit."""
        path, what = submission_path(submission_id)
        response = self._transport.call(
            "GET", f"{path}/series", what=f"series of {what}", headers={"Accept": "text/plain"}
        )
        return response.content.decode("utf-8", errors="surrogateescape")

    def mbox(self, submission_id: int) -> str:
        """Return the mbox of a submission as it was submitted."""
        path, what = submission_path(submission_id)
        response = self._transport.call("GET", f"{path}/mbox", what=f"mbox of {what}", headers={"Accept": "text/plain"})
        return response.content.decode("utf-8", errors="surrogateescape")

    def quotas(self) -> list[Quota]:
        """Return one's quotas with what is left; empty for maintainers and administrators."""
        return self._get(list[Quota], f"{API}/quota", "quotas")


def submission_path(submission_id: int) -> tuple[str, str]:
    """Return the path of a submission, and its name for messages."""
    return f"{API}/submissions/{submission_id}", f"submission {submission_id}"
