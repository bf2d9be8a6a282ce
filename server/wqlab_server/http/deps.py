"""FastAPI dependencies of the endpoints: database session, settings, data folder, artifact store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from ..settings import Settings
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, transaction
from ..storage.live_data import LiveData


def _session(request: Request) -> Iterator[Session]:
    factory: SessionFactory = request.app.state.sessions
    with transaction(factory) as session:
        yield session


def _settings(request: Request) -> Settings:
    found: Settings = request.app.state.settings
    return found


def _data(request: Request) -> LiveData:
    found: LiveData = request.app.state.data
    return found


def _store(request: Request) -> ArtifactStore:
    found: ArtifactStore = request.app.state.store
    return found


# scope="function": committed before the response is sent, so that the client's next request sees the change.
Db = Annotated[Session, Depends(_session, scope="function")]
"""One transaction per request: committed when the endpoint returns, rolled back when it raises."""
AppSettings = Annotated[Settings, Depends(_settings)]
Data = Annotated[LiveData, Depends(_data)]
Store = Annotated[ArtifactStore, Depends(_store)]
