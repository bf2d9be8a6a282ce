"""Send messages to workers with Celery's client."""

from __future__ import annotations

import structlog
from celery import Celery

from wqlab_contracts.celery_names import CELERY_CONFIG, TRANSPORT_OPTIONS

from .db import Message

log = structlog.get_logger(__name__)

_TIMEOUT_S = 2.0


def celery_app(broker_url: str) -> Celery:
    """Return a Celery client with short timeouts."""
    app = Celery("wqlab_server", broker=broker_url, set_as_current=False)
    app.conf.update(CELERY_CONFIG)
    app.conf.update(
        broker_connection_timeout=_TIMEOUT_S,
        broker_transport_options=TRANSPORT_OPTIONS
        | {"socket_connect_timeout": _TIMEOUT_S, "socket_timeout": _TIMEOUT_S},
    )
    return app


class Sender:
    """Send messages; a failure is only logged, because the rows are stored and a tick sends the message again."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def __call__(self, message: Message) -> None:
        arguments = () if message.id is None else (message.id,)
        try:
            self._app.send_task(message.task, args=arguments, queue=message.queue, retry=False, ignore_result=True)
        except Exception as error:
            # Any error of kombu, redis or the socket: the commit has happened and must not be reported as failed.
            log.warning("message_not_sent", task=message.task, id=message.id, queue=message.queue, error=repr(error))
