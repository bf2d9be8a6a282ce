"""The Celery tasks of the worker. A message carries only an id; the server decides what to do with it."""

from __future__ import annotations

import ssl
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, worker_ready
from kombu import Queue  # type: ignore[attr-defined]

from wqlab_contracts import celery_names, logs

from . import protection, reaper, retention
from .claims import jobs
from .retention import has_room_for_a_job
from .settings import settings
from .workspace import Workspace

app = Celery("wqlab_worker")
app.conf.update(celery_names.CELERY_CONFIG)


@app.on_configure.connect  # type: ignore[untyped-decorator]
def _configure(sender: Any, **_: Any) -> None:
    """Configure the broker when Celery first needs it, so that an import of this module needs no settings."""
    configured = settings()
    sender.conf.broker_url = configured.broker_url
    if configured.broker_url.startswith("rediss://"):
        authorities = {} if configured.ca_file is None else {"ssl_ca_certs": str(configured.ca_file)}
        sender.conf.broker_use_ssl = {"ssl_cert_reqs": ssl.CERT_REQUIRED, **authorities}
    if configured.has_lab_broker_user:
        sender.conf.update(celery_names.LAB_CELERY_CONFIG)
        # The server has declared the queue; this user may not.
        sender.conf.task_queues = [Queue(celery_names.lab_queue(configured.lab), no_declare=True)]  # type: ignore[no-untyped-call]


@after_setup_logger.connect  # type: ignore[untyped-decorator]
def _configure_logging(**_: Any) -> None:
    """Keep the project's log format instead of Celery's."""
    logs.configure()


@app.task(name=celery_names.JOB, bind=True)  # type: ignore[untyped-decorator]
def job(task: Any, id: int) -> None:
    """Process a job. A lookup needs hardly any space; whoever waits for it should not wait for space."""
    delivery = task.request.delivery_info or {}
    is_lookup = delivery.get("routing_key") == celery_names.LOOKUP_QUEUE
    if is_lookup or has_room_for_a_job(Workspace(settings().cache)):
        jobs.process(id, settings())


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_protection(sender: Any, **_: Any) -> None:
    """Prepare and log the limits on submitted code in a worker that applies series or builds kernels."""
    if {celery_names.APPLY_QUEUE, celery_names.BUILD_QUEUE} & set(sender.app.amqp.queues.consume_from):
        protection.start()


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_lab_duties(sender: Any, **_: Any) -> None:
    """Start the thread of retention, and in a worker that serves this lab's devices that of the reaper."""
    keeper = retention.Keeper(Workspace(settings().cache), settings().state, retention.Limits.from_environment())
    retention.start(keeper, jobs.connect_server(settings()).publish_storage)
    if celery_names.lab_queue(settings().lab) in sender.app.amqp.queues.consume_from:
        reaper.start(settings(), jobs.connect_server(settings()), sender.controller.concurrency)
