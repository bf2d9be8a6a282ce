"""Celery queue names, task names and configuration.

A message carries one id only: it prompts a worker to ask the server, and PostgreSQL decides what is due.
"""

from .enums import JobKind

SERVER_QUEUE = "server"
BUILD_QUEUE = "build"
APPLY_QUEUE = "apply"
"""For applying series, and for reading branches and heads of forges. Separate from builds: the first health check of a
device must not wait minutes for another kernel to compile."""
LOOKUP_QUEUE = "lookup"
"""For branches and threads. Separate from builds, because a user waits for a lookup and a build takes minutes."""
LIST_QUEUE = "lists"
"""Separate from lookups: the first read of a list takes minutes."""
OUTBOX_QUEUE = "outbox"
"""Separate from the server's pipeline, which must not wait for a receiver that does not answer."""

TICK = "wqlab.tick"
ADVANCE = "wqlab.advance"
JOB = "wqlab.job"
"""The task of every worker, whatever the kind of the job."""
DELIVER = "wqlab.deliver"
LIST_REPLY = "wqlab.list_reply"
FORGE_SYNC = "wqlab.forge_sync"
FORGE_POLL = "wqlab.forge_poll"

JOB_QUEUES = {
    JobKind.APPLY: APPLY_QUEUE,
    JobKind.BUILD: BUILD_QUEUE,
    JobKind.LIST_BRANCHES: LOOKUP_QUEUE,
    JobKind.FIND_THREAD: LOOKUP_QUEUE,
    JobKind.READ_BRANCH: APPLY_QUEUE,
    JobKind.READ_HEAD: APPLY_QUEUE,
    JobKind.LIST_COMMITS: APPLY_QUEUE,
    JobKind.READ_LIST: LIST_QUEUE,
    JobKind.PREVIEW_WATCH: LIST_QUEUE,
}
"""Queue of each kind of job but runs, whose queue is that of their device's lab."""


def lab_queue(lab: str) -> str:
    """Return the queue name of a lab."""
    return f"lab.{lab}"


# --- labs elsewhere: a broker user each -------------------------------------------------------------------------------

LAB_USER = "lab-"


def lab_user(lab: str) -> str:
    """Return the Redis user of a lab host that is not the server's own machine."""
    return f"{LAB_USER}{lab}"


def lab_grants(lab: str) -> tuple[str, ...]:
    """Return the Redis ACL rules of that user: take messages from its own queue only.

    No other key, channel, script or write. A worker needs `LAB_CELERY_CONFIG` to run with these rights.
    """
    return ("resetkeys", f"~{lab_queue(lab)}", "resetchannels", "-@all", "+ping", "+brpop")


TRANSPORT_OPTIONS: dict[str, object] = {
    # No copy of each message under keys that every worker shares: a lost message is sent again. If Redis does not
    # answer in time when such a copy is deleted, kombu 5.7 takes no further message and stays connected.
    "ack_emulation": False,
}
"""Options of the broker's connection that every program has."""

LAB_CELERY_CONFIG: dict[str, object] = {
    # Commands to workers travel through keys and channels that every worker shares.
    "worker_enable_remote_control": False,
    "broker_transport_options": {
        **TRANSPORT_OPTIONS,
        # One key per queue, not one per priority.
        "priority_steps": [0],
        # Notice a dead connection within a minute.
        "health_check_interval": 10,
        "socket_connect_timeout": 10.0,
        "socket_keepalive": True,
    },
}
"""Additions to `CELERY_CONFIG` for a lab worker with its own broker user. Its command line also needs
`--without-mingle --without-gossip --without-heartbeat`, because those contact all workers."""


CELERY_CONFIG: dict[str, object] = {
    "task_serializer": "json",
    "accept_content": ["json"],
    # Acknowledge on receipt: the work of a lost worker is found by its expired claim, not by its message. With
    # unacknowledged messages the worker ends when Redis goes away: kombu 5.7 requeues through a closed connection.
    "task_acks_late": False,
    # No worker holds back a message that another worker could take now.
    "worker_prefetch_multiplier": 1,
    "worker_disable_prefetch": True,
    "task_ignore_result": True,
    "broker_transport_options": TRANSPORT_OPTIONS,
    "broker_connection_retry_on_startup": True,
    "worker_hijack_root_logger": False,
    "task_default_queue": SERVER_QUEUE,
    "worker_send_task_events": False,
}
