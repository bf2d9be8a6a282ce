"""The Celery application of the server. A task is a nudge: the pipeline decides what there is to do.

celery -A wqlab_server.tasks worker -Q server
celery -A wqlab_server.tasks beat
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from celery.signals import after_setup_logger, beat_init

from wqlab_contracts import logs
from wqlab_contracts.celery_names import ADVANCE, SERVER_QUEUE, TICK

from .pipeline import advance as pipeline
from .pipeline import assign_devices
from .pipeline import tick as pipeline_tick
from .settings import Settings, settings
from .storage.celery_client import Sender, celery_app
from .storage.db import SessionFactory, make_engine, make_factory
from .storage.live_data import LiveData

_settings = settings()
app = celery_app(_settings.broker_url)
app.conf.beat_schedule = {
    TICK: {
        "task": TICK,
        "schedule": _settings.tick_s,
        # A tick that could not be taken in time is worth nothing: the next one does all its work.
        "options": {"queue": SERVER_QUEUE, "expires": max(2 * _settings.tick_s, 5.0)},
    }
}


class _Process:
    """What a worker process keeps open, made at its first task: connections do not survive Celery's fork."""

    settings: Settings = _settings

    @cached_property
    def sessions(self) -> SessionFactory:
        return make_factory(make_engine(self.settings.database_url), Sender(app))

    @cached_property
    def data(self) -> LiveData:
        return LiveData(self.settings.data_dir)


process = _Process()


@after_setup_logger.connect  # type: ignore[untyped-decorator]
def log_as_ever(**_: Any) -> None:
    logs.configure()


@beat_init.connect  # type: ignore[untyped-decorator]
def begin(**_: Any) -> None:
    pipeline_tick.say_all_again(process.sessions)


@app.task(name=ADVANCE)  # type: ignore[untyped-decorator]
def advance(submission_id: int) -> None:
    pipeline.advance(process.sessions, process.settings, submission_id)
    assign_devices.give_devices(process.sessions, process.settings)


@app.task(name=TICK)  # type: ignore[untyped-decorator]
def tick(*_: Any) -> None:
    pipeline_tick.tick(process.sessions, process.settings, process.data)
