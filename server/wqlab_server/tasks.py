"""The Celery application of the server. A task only wakes the pipeline, which finds its work in the database.

celery -A wqlab_server.tasks worker -Q server
celery -A wqlab_server.tasks worker -Q outbox
celery -A wqlab_server.tasks beat
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from celery.signals import after_setup_logger, beat_init

from wqlab_contracts import logs
from wqlab_contracts.celery_names import ADVANCE, DELIVER, FORGE_POLL, FORGE_SYNC, LIST_REPLY, SERVER_QUEUE, TICK

from .intake.forges import poll as forge_poll
from .intake.forges import sync as forge_sync
from .outbox import send as outbox
from .pipeline import advance as pipeline
from .pipeline import assign_devices, list_replies
from .settings import Settings, settings
from .storage.celery_client import Sender, celery_app
from .storage.db import SessionFactory, make_engine, make_factory
from .storage.live_data import LiveData
from .tick import tick as whole_lab
from .tick.schedule import TickSchedule

_settings = settings()
app = celery_app(_settings.broker_url)
app.conf.beat_schedule = {
    TICK: {
        "task": TICK,
        "schedule": TickSchedule(_settings.tick_s),
        # A tick that was not run in time is dropped: the next one does all its work.
        "options": {"queue": SERVER_QUEUE, "expires": max(2 * _settings.tick_s, 5.0)},
    }
}


class _Process:
    """Connections of a worker process, opened at its first task because connections do not survive Celery's fork."""

    settings: Settings = _settings

    @cached_property
    def sessions(self) -> SessionFactory:
        return make_factory(make_engine(self.settings.database_url), Sender(app))

    @cached_property
    def data(self) -> LiveData:
        return LiveData(self.settings.data_dir)


process = _Process()


@after_setup_logger.connect  # type: ignore[untyped-decorator]
def configure_logging(**_: Any) -> None:
    logs.configure()


@beat_init.connect  # type: ignore[untyped-decorator]
def reset_nudges(**_: Any) -> None:
    """Send the messages for all waiting jobs again when the server starts."""
    whole_lab.reset_nudges(process.sessions)


@app.task(name=ADVANCE)  # type: ignore[untyped-decorator]
def advance(submission_id: int) -> None:
    pipeline.advance(process.sessions, process.settings, submission_id)
    assign_devices.assign_devices(process.sessions, process.settings)


@app.task(name=TICK)  # type: ignore[untyped-decorator]
def tick(*_: Any) -> None:
    whole_lab.tick(process.sessions, process.settings, process.data)


@app.task(name=DELIVER)  # type: ignore[untyped-decorator]
def deliver(delivery_id: int) -> None:
    outbox.deliver(process.sessions, process.settings, delivery_id)


@app.task(name=FORGE_SYNC)  # type: ignore[untyped-decorator]
def sync_forge(change_id: int) -> None:
    forge_sync.sync(process.sessions, process.settings, change_id)


@app.task(name=FORGE_POLL)  # type: ignore[untyped-decorator]
def poll_forge(repository_id: int) -> None:
    forge_poll.poll(process.sessions, process.settings, repository_id)


@app.task(name=LIST_REPLY)  # type: ignore[untyped-decorator]
def handle_list_reply(reply_id: int) -> None:
    list_replies.handle(process.sessions, process.settings, process.data.current(), reply_id)
