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


# --- labs elsewhere: a broker user each -------------------------------------------------------------------------------

LAB_USER = "lab-"


def lab_user(lab: str) -> str:
    """The Redis user of a lab host that is not the server's own machine."""
    return f"{LAB_USER}{lab}"


def lab_grants(lab: str) -> tuple[str, ...]:
    """All that this user may do, as Redis's ACL rules: take messages from its own queue. No other key, no channel, no
    script, nothing that writes. `LAB_CELERY_CONFIG` is what a worker needs to be content with it."""
    return ("resetkeys", f"~{lab_queue(lab)}", "resetchannels", "-@all", "+ping", "+brpop")


LAB_CELERY_CONFIG: dict[str, object] = {
    # Commands to workers travel through keys and channels that every worker shares.
    "worker_enable_remote_control": False,
    "broker_transport_options": {
        # Kombu would keep a copy of each message under keys that every worker shares. A lost message is said again.
        "ack_emulation": False,
        # One key a queue, not one for each priority.
        "priority_steps": [0],
        # A line that went silent is noticed within a minute.
        "health_check_interval": 10,
        "socket_connect_timeout": 10.0,
        "socket_keepalive": True,
    },
}
"""What a lab worker with a broker user of its own adds to `CELERY_CONFIG`. Its command line also needs
`--without-mingle --without-gossip --without-heartbeat`: those talk to all workers."""


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
