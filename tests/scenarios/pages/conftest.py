"""Pages that the API serves alone, without workers and devices, over rows that a test writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser

from wqlab_lab import web
from wqlab_server.app import create_app
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory

from ..browser import Person
from ..conftest import ROOT

sys.path[:0] = [str(ROOT), str(ROOT / "worker/tests")]

from server.tests.conftest import (  # noqa: E402
    data_dir,
    database_url,
    engine,
    live,
    migrated,
    postgres,
    real_passwords,
    redis,
    scene,
    scene_data_dir,
    secrets,
    sessions,
    settings,
    signing_key,
    stores,
    unused_port,
)
from server.tests.support.live_server import Live  # noqa: E402
from server.tests.support.people import PASSWORD  # noqa: E402

__all__ = [
    "data_dir", "database_url", "engine", "live", "migrated", "postgres", "real_passwords", "redis", "scene",
    "scene_data_dir", "secrets", "sessions", "settings", "signing_key", "stores", "unused_port",
]  # fmt: skip

MakePerson = Callable[[str], Person]


@pytest.fixture
def lab_settings(settings: Settings, scene_data_dir: Path, redis: str) -> Settings:
    """Return settings with a data folder of the test's own and the built pages."""
    pages = web.build(Path(os.environ["WQLAB_CACHE"]))
    return settings.model_copy(update={"data_dir": scene_data_dir, "web_dir": pages, "broker_url": redis})


@pytest.fixture
def app(sessions: SessionFactory, lab_settings: Settings) -> FastAPI:
    return create_app(lab_settings, sessions)


@pytest.fixture
def person(live: Live, chromium: Browser) -> Iterator[MakePerson]:
    """Return a function that signs in the user of a scope, which is also the user's name, in a new browser."""
    people: list[Person] = []

    def make(name: str) -> Person:
        made = Person(chromium, live.url)
        people.append(made)
        made.sign_in(name, PASSWORD)
        return made

    yield make
    errors = [error for each in people for error in each.errors]
    for each in people:
        each.close()
    assert not errors, f"errors on the browsers' consoles: {errors}"
