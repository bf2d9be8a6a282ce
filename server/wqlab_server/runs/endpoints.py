"""REST endpoints of runs: boots, artifacts, consoles, samples and values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from wqlab_contracts.api.runs import RunView, SampleRow
from wqlab_contracts.api.steps import CellValues
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import Artifact

from ..http.auth import Reader
from ..http.deps import Db, Store
from ..http.downloads import BINARY, StoredBytes, deleted, send
from ..http.limits import SlotStream, slow_responses
from ..http.paging import MAX_ID, NO_NUL, Id
from ..http.problems import ApiProblem, documented
from ..http.sse import guarded, notifications_of
from ..views.build import run_view
from ..views.load import run_rows
from . import export, queries, values
from .console import console

router = APIRouter(prefix="/runs", tags=["runs"], responses=documented(401, 403, 404, 422, 429))

_CONSOLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The console's bytes", "content": {"text/plain": {"schema": {"type": "string"}}}},
    **documented(410),
}
_SAMPLES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}},
    **documented(rules="`discarded` with `format=csv`"),
}


class SampleFormat(StrEnum):
    JSON = "json"
    CSV = "csv"


@router.get("/{run_id}")
def get_run(run_id: Id, session: Db, _: Reader) -> RunView:
    """Return one run with its boots and findings."""
    return run_view(run_rows(session, [queries.get(session, run_id)])[0])


@router.get("/{run_id}/artifacts")
def list_run_artifacts(run_id: Id, session: Db, _: Reader) -> list[Artifact]:
    """List the files that the run's boots produced, such as the raw output of the plan's script."""
    return queries.artifacts(session, queries.get(session, run_id))


@router.get("/{run_id}/artifacts/{sha256}", response_class=StoredBytes, responses=BINARY)
def get_run_artifact(
    run_id: Id, sha256: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")], session: Db, store: Store, _: Reader
) -> StoredBytes:
    """Download one of the run's artifacts, by its SHA-256."""
    run = queries.get(session, run_id)
    return send(store, queries.artifact_by_hash(session, run, sha256), run.files_deleted_at)


@router.get("/{run_id}/console", response_class=StreamingResponse, responses={**_CONSOLE, **documented(503)})
def get_run_console(
    *,
    run_id: Id,
    request: Request,
    session: Db,
    _: Reader,
    boot: Annotated[int | None, Query(ge=1, le=MAX_ID, description="Id of a boot. Default: the newest boot")] = None,
    offset: Annotated[int, Query(ge=0, le=2**53, description="First byte to return")] = 0,
    follow: Annotated[bool, Query(description="Keep streaming until the boot has ended")] = False,
) -> StreamingResponse:
    """Return the stored bytes of a boot's console, unchanged. To resume, set `offset` to the number
    of bytes already received."""
    run = queries.get(session, run_id)
    row = queries.boot(session, run, boot)
    if run.consoles_deleted_at is not None:
        raise deleted(f"the console of boot {row.id}", run.consoles_deleted_at)
    state = request.app.state
    return SlotStream(
        request,
        slow_responses(request).streams,
        guarded(
            request,
            console(
                state.sessions,
                notifications_of(request),
                boot=row,
                submission_id=run.submission_id,
                offset=offset,
                follow=follow,
            ),
        ),
        media_type="text/plain",
        headers={
            "X-Content-Type-Options": "nosniff",
            "X-Wqlab-Boot": str(row.id),
            "X-Wqlab-Truncated": "true" if row.console_truncated else "false",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
        },
    )


@router.get("/{run_id}/values")
def get_cell_values(
    *,
    run_id: Id,
    session: Db,
    _: Reader,
    scenario: Annotated[str, Query(max_length=100, pattern=NO_NUL)],
    metric: Annotated[str, Query(max_length=100, pattern=NO_NUL)],
    setting: Annotated[str | None, Query(max_length=500, pattern=NO_NUL, description="Default: every setting")] = None,
) -> CellValues:
    """Return the values behind one cell of the report: each boot's value of a metric and its repetitions."""
    return values.cell_values(session, queries.get(session, run_id), scenario, metric, setting)


@router.get("/{run_id}/samples", response_model=list[SampleRow], responses={**_SAMPLES, **documented(503)})
def get_samples_of(
    *,
    run_id: Id,
    request: Request,
    session: Db,
    _: Reader,
    format: Annotated[
        SampleFormat, Query(description="`csv` is the input format of `wqlab compare`")
    ] = SampleFormat.JSON,
    discarded: Annotated[bool, Query(description="JSON only: include boots of discarded blocks")] = False,
) -> Response:
    """Return every repetition of every valid boot."""
    run = queries.get(session, run_id)
    sessions, slots = request.app.state.sessions, slow_responses(request).reports
    if format is SampleFormat.JSON:
        rows = export.samples_json(sessions, run.id, discarded=discarded)
        return SlotStream(request, slots, rows, media_type="application/json", headers={})
    if discarded:
        detail = "CSV is the input of comparisons, which leave discarded boots out; request format=json"
        raise ApiProblem(422, detail, errors=[{"parameter": "discarded", "in": "query", "detail": detail}])
    name = f"run-{run.id}-{run.plan_name}-{run.device_type}{'' if run.state is JobState.FINISHED else '-so-far'}.csv"
    return SlotStream(
        request,
        slots,
        export.samples_csv(sessions, run),
        media_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
