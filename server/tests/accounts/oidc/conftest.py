"""The application and a browser; each module has a provider of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from wqlab_server.app import create_app
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory

from ...support.live_server import Live


@pytest.fixture
def app(sessions: SessionFactory, settings: Settings, scene_data_dir: Path) -> FastAPI:
    return create_app(settings.model_copy(update={"data_dir": scene_data_dir}), sessions)


@pytest.fixture
def browser(live: Live) -> Iterator[httpx.Client]:
    with live.client(None) as client:
        yield client
