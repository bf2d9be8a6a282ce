"""Runs: one plan on one device with every boot, its console and its samples."""

from __future__ import annotations

import io
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from wqlab_comparison.csvfile import COLUMNS, write_csv
from wqlab_contracts.api.steps import CellValues
from wqlab_contracts.api.submissions import BootView, RunView, SampleRow
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import Artifact

from ..http.auth import Reader
from ..http.deps import Db, Store
from ..http.downloads import BINARY, StoredBytes, send
from ..http.paging import MAX_ID, Id, plain_text
from ..http.problems import ApiProblem, documented
from ..http.sse import guarded, notifications_of
from ..models import Run
from ..views.build import boot_view, run_view
from ..views.load import run_rows
from ..views.samples_table import samples_of
from . import queries, values
from .console import console

router = APIRouter(prefix="/runs", tags=["runs"], responses=documented(401, 403, 404, 422, 429))

_CONSOLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The console's bytes", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
_SAMPLES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}


class SampleFormat(StrEnum):
    JSON = "json"
    CSV = "csv"


@router.get("/{run_id}")
def get_run(run_id: Id, session: Db, _: Reader) -> RunView:
    """One run with its boots and findings."""
    return run_view(run_rows(session, [queries.get(session, run_id)])[0])


@router.get("/{run_id}/boots")
def list_run_boots(run_id: Id, session: Db, _: Reader) -> list[BootView]:
    """Every boot in the order they happened, those of discarded blocks too."""
    queries.get(session, run_id)
    return [boot_view(row) for row in queries.boots(session, run_id)]


@router.get("/{run_id}/artifacts")
def list_run_artifacts(run_id: Id, session: Db, _: Reader) -> list[Artifact]:
    """What the run's boots left behind besides consoles and samples, such as the raw output of the plan's script."""
    return queries.artifacts(session, queries.get(session, run_id))


@router.get("/{run_id}/artifacts/{sha256}", response_class=StoredBytes, responses=BINARY)
def get_run_artifact(
    run_id: Id, sha256: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")], session: Db, store: Store, _: Reader
) -> StoredBytes:
    """One of the run's artifacts, by its hash."""
    return send(store, queries.artifact_by_hash(session, queries.get(session, run_id), sha256))


@router.get("/{run_id}/console", response_class=StreamingResponse, responses=_CONSOLE)
def get_run_console(
    *,
    run_id: Id,
    request: Request,
    session: Db,
    _: Reader,
    boot: Annotated[int | None, Query(ge=1, le=MAX_ID, description="A boot's id; the newest when left out")] = None,
    offset: Annotated[int, Query(ge=0, le=2**53, description="Byte to start at")] = 0,
    follow: Annotated[bool, Query(description="Stay until the boot has ended")] = False,
) -> StreamingResponse:
    """A boot's console, byte for byte as the device printed it. Resume with `offset` = bytes already received."""
    run = queries.get(session, run_id)
    row = queries.boot(session, run, boot)
    state = request.app.state
    return StreamingResponse(
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
    scenario: Annotated[str, Query(max_length=100)],
    metric: Annotated[str, Query(max_length=100)],
    setting: Annotated[str | None, Query(max_length=500, description="Every setting when left out")] = None,
) -> CellValues:
    """What one cell's figures are drawn from: each boot's value of a metric with the repetitions it stands for."""
    for name, text in (("scenario", scenario), ("metric", metric), ("setting", setting)):
        if text is not None:
            plain_text(name, text)
    return values.of_cell(session, queries.get(session, run_id), scenario, metric, setting)


@router.get("/{run_id}/samples", response_model=list[SampleRow], responses=_SAMPLES)
def get_samples_of(
    *,
    run_id: Id,
    session: Db,
    _: Reader,
    format: Annotated[SampleFormat, Query(description="`csv` is what `wqlab compare` reads")] = SampleFormat.JSON,
    discarded: Annotated[bool, Query(description="JSON only: also boots whose block was repeated")] = False,
) -> Response | list[SampleRow]:
    """Every repetition of every valid boot."""
    run = queries.get(session, run_id)
    if format is SampleFormat.JSON:
        return queries.sample_rows(session, run.id, discarded)
    if discarded:
        detail = "CSV is for comparing, and discarded boots are not compared; ask for JSON"
        raise ApiProblem(422, detail, errors=[{"parameter": "discarded", "in": "query", "detail": detail}])
    name = f"run-{run.id}-{run.plan_name}-{run.device_type}{'' if run.state is JobState.FINISHED else '-so-far'}.csv"
    return Response(
        _csv(session, run),
        media_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _csv(session: Db, run: Run) -> str:
    samples = samples_of(session, run)
    if samples is None:
        return ",".join(COLUMNS) + "\n"
    text = io.StringIO()
    write_csv(samples, text)
    return text.getvalue()
