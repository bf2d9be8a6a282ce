"""The worker's Celery tasks: a message carries an id, the server decides what there is to do with it."""

from __future__ import annotations

import ssl
from typing import Any

from celery import Celery
from celery.signals import after_setup_logger, worker_ready
from kombu import Queue  # type: ignore[attr-defined]

from wqlab_contracts import celery_names, logs

from . import reaper
from .claims import jobs
from .settings import settings

app = Celery("wqlab_worker")
app.conf.update(celery_names.CELERY_CONFIG)


@app.on_configure.connect  # type: ignore[untyped-decorator]
def _configure(sender: Any, **_: Any) -> None:
    """Late, so that this module can be imported without a worker's environment."""
    known = settings()
    sender.conf.broker_url = known.broker_url
    if known.broker_url.startswith("rediss://"):
        trusted = {} if known.ca_file is None else {"ssl_ca_certs": str(known.ca_file)}
        sender.conf.broker_use_ssl = {"ssl_cert_reqs": ssl.CERT_REQUIRED, **trusted}
    if known.own_broker_user:
        sender.conf.update(celery_names.LAB_CELERY_CONFIG)
        # Declaring a queue writes; the server has done it.
        sender.conf.task_queues = [Queue(celery_names.lab_queue(known.lab), no_declare=True)]  # type: ignore[no-untyped-call]


@after_setup_logger.connect  # type: ignore[untyped-decorator]
def _log_as_ever(**_: Any) -> None:
    logs.configure()


@app.task(name=celery_names.APPLY)  # type: ignore[untyped-decorator]
def apply(id: int) -> None:
    jobs.apply(id, settings())


@app.task(name=celery_names.BUILD)  # type: ignore[untyped-decorator]
def build(id: int) -> None:
    jobs.build(id, settings())


@app.task(name=celery_names.LOOKUP)  # type: ignore[untyped-decorator]
def lookup(id: int) -> None:
    jobs.lookup(id, settings())


@app.task(name=celery_names.RUN)  # type: ignore[untyped-decorator]
def run(id: int) -> None:
    jobs.run(id, settings())


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_lab_duties(sender: Any, **_: Any) -> None:
    """In the worker that serves this lab's devices, not in build workers."""
    if celery_names.lab_queue(settings().lab) in sender.app.amqp.queues.consume_from:
        reaper.start(settings(), jobs.server_of(settings()), sender.controller.concurrency)
