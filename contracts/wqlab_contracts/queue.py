"""The only place that knows Celery queue and task names.

A message carries one id and nothing else: it nudges a worker to look, and PostgreSQL decides what there is to do.
"""

SERVER_QUEUE = "server"
BUILD_QUEUE = "build"
LOOKUP_QUEUE = "lookup"
"""Apart from builds: somebody sits in front of a form, and a build takes minutes."""

TICK = "wqlab.tick"
ADVANCE = "wqlab.advance"
APPLY = "wqlab.apply"
BUILD = "wqlab.build"
RUN = "wqlab.run"
LOOKUP = "wqlab.lookup"


def lab_queue(lab: str) -> str:
    return f"lab.{lab}"


CELERY_CONFIG: dict[str, object] = {
    "task_serializer": "json",
    "accept_content": ["json"],
    # A message is done with when it is received: what a lost worker leaves is found by its claim, not by its message.
    # An unacknowledged one ends the worker when Redis goes away: kombu 5.7 puts it back through a closed connection.
    "task_acks_late": False,
    # Nobody keeps a message for later that another worker could take now.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    "task_ignore_result": True,
    "broker_connection_retry_on_startup": True,
    "worker_hijack_root_logger": False,
    "task_default_queue": SERVER_QUEUE,
    "worker_send_task_events": False,
}
