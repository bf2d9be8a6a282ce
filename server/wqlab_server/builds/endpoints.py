"""REST endpoints of builds: details, log, configuration and artifacts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.enums import ArtifactKind

from ..http.auth import Reader
from ..http.deps import Db, Store
from ..http.downloads import BINARY, TEXT, StoredBytes, send
from ..http.paging import Id
from ..http.problems import documented
from ..views.build import build_view
from . import queries

router = APIRouter(prefix="/builds", tags=["builds"], responses=documented(401, 403, 404, 422, 429))


@router.get("/{build_id}")
def get_build(build_id: Id, session: Db, _: Reader) -> BuildView:
    """Return one build; `new_warnings` are the warnings that its baseline does not have."""
    build = queries.get(session, build_id)
    return build_view(build, new_warnings=queries.own_warnings(session, build))


@router.get("/{build_id}/log", response_class=StoredBytes, responses=TEXT)
def get_build_log(build_id: Id, session: Db, store: Store, _: Reader) -> StoredBytes:
    """Download the complete log of the build."""
    build = queries.get(session, build_id)
    return send(store, queries.artifact_of_kind(build, ArtifactKind.BUILD_LOG), build.files_deleted_at)


@router.get("/{build_id}/config", response_class=StoredBytes, responses=TEXT)
def get_build_config(build_id: Id, session: Db, store: Store, _: Reader) -> StoredBytes:
    """Download the kernel's .config as it was built."""
    build = queries.get(session, build_id)
    return send(store, queries.artifact_of_kind(build, ArtifactKind.CONFIG), build.files_deleted_at)


@router.get("/{build_id}/artifacts/{sha256}", response_class=StoredBytes, responses=BINARY)
def get_build_artifact(
    build_id: Id, sha256: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")], session: Db, store: Store, _: Reader
) -> StoredBytes:
    """Download one of the files listed in the build's `artifacts`, by its SHA-256."""
    build = queries.get(session, build_id)
    return send(store, queries.artifact_by_hash(build, sha256), build.files_deleted_at)
