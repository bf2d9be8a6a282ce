"""Endpoints for the bundle of a submission, and for the key that signs bundles."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import iterate_in_threadpool

from wqlab_contracts.bundle import SIGNATURE_NAMESPACE
from wqlab_contracts.enums import SubmissionState

from ..http.auth import Reader
from ..http.deps import AppSettings, Db, Store
from ..http.limits import SlotStream, slow_responses
from ..http.paging import Id
from ..http.problems import ApiProblem, documented, not_found
from ..http.sse import guarded
from ..models import Submission
from ..settings import Settings
from ..storage.signing import SigningError, SigningKey
from .bundle import BundleWriter

router = APIRouter(tags=["reports"], responses=documented(422, 429))

_BUNDLE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bundle, a ZIP file",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_KEY: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The public key in one line, as in a file of `ssh-keygen`",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get(
    "/submissions/{submission_id}/bundle",
    response_class=StreamingResponse,
    responses={**_BUNDLE, **documented(401, 403, 404, 409, 503)},
)
def get_bundle(
    *,
    submission_id: Id,
    request: Request,
    session: Db,
    store: Store,
    settings: AppSettings,
    _: Reader,
    kernels: Annotated[bool, Query(description="Include the kernels, several hundred MB")] = False,
) -> StreamingResponse:
    """Everything that the verdicts of a finished submission depend on, signed by the lab's key. `wqlab replay` derives
    the verdicts again from it."""
    submission = session.get(Submission, submission_id)
    if submission is None:
        raise not_found("submission", submission_id)
    if submission.state is not SubmissionState.FINISHED:
        raise ApiProblem(
            409, f"submission {submission_id} is {submission.state}: its bundle exists once it is finished"
        )
    key = _signing_key(settings, check=True)
    writer = BundleWriter(request.app.state.sessions, store, key, settings.public_url, submission_id, kernels)
    return SlotStream(
        request,
        slow_responses(request).bundles,
        guarded(request, _in_threads(writer.chunks())),
        media_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="wqlab-{submission_id}.bundle.zip"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )


@router.get("/lab-key", response_class=PlainTextResponse, responses={**_KEY, **documented(503)})
def get_lab_key(settings: AppSettings) -> Response:
    """The public key of this lab's signatures. It is served to everyone."""
    return PlainTextResponse(f"{_signing_key(settings).public} wqlab\n")


async def _in_threads(chunks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for chunk in iterate_in_threadpool(chunks):
        yield chunk


def _signing_key(settings: Settings, *, check: bool = False) -> SigningKey:
    """Return the lab's key. With `check`, sign nothing with it, because a stream cannot report an error at its end."""
    try:
        key = SigningKey.read(settings.signing_key_file)
        if check:
            key.sign(b"", f"{SIGNATURE_NAMESPACE}-check")
        return key
    except SigningError as error:
        raise ApiProblem(503, str(error)) from None
