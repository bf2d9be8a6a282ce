"""Checks of the lab's work: tick, queue, leases and devices, as the database has them."""

from __future__ import annotations

from collections.abc import Iterator

from .checks import Check, State, Subject

TICK_LIMIT_S = 60
QUEUE_LIMIT_S = 3600
LEASE_LIMIT_S = 12 * 3600
OVERDUE_LIMIT_S = 60
_WAITING_RUNS = """
SELECT count(*) AS n, extract(epoch FROM clock_timestamp() - min(j.created_at))::int AS age,
       (array_agg(j.submission_id ORDER BY j.created_at))[1] AS submission
  FROM jobs j LEFT JOIN leases l ON l.run_id = j.id WHERE j.kind = 'run' AND j.state = 'queued' AND l.run_id IS NULL
"""
_WAITING_JOBS = """
SELECT k.kind AS job, count(j.id) AS n, extract(epoch FROM clock_timestamp() - min(j.created_at))::int AS age
  FROM (VALUES ('apply'), ('build')) k (kind) LEFT JOIN jobs j ON j.kind = k.kind AND j.state = 'queued'
 GROUP BY k.kind ORDER BY k.kind
"""
_LEASES = """
SELECT device_name AS device, run_id AS run, extract(epoch FROM clock_timestamp() - created_at)::int AS age,
       extract(epoch FROM clock_timestamp() - expires_at)::int AS overdue
  FROM leases ORDER BY created_at
"""
_LAST_TICK = "SELECT extract(epoch FROM clock_timestamp() - finished_at)::int AS age, seconds FROM last_tick"


def tick(subject: Subject) -> Iterator[Check]:
    """Check when the last tick ended, and which items failed in ticks of the last minutes."""
    restart = f"`{subject.control} restart beat server`; logs: server.log, beat.log"
    rows = subject.query(_LAST_TICK)
    if not rows:
        yield Check("tick", State.FAILED, "no tick has ended yet", restart)
    elif rows[0]["age"] > TICK_LIMIT_S:
        yield Check("tick", State.FAILED, f"the last one ended {_span(rows[0]['age'])} ago; runs do not go on", restart)
    else:
        yield Check("tick", State.OK, f"ended {rows[0]['age']} s ago, took {rows[0]['seconds']:.1f} s")
    failed = subject.query(
        "SELECT what, item, error FROM tick_faults WHERE last_at > clock_timestamp() - interval '10 minutes' "
        "ORDER BY last_at DESC LIMIT 5"
    )
    for row in failed:
        seen = f"fails in every tick: {row['error'][:200]}"
        yield Check(
            f"tick: {row['what']} {row['item']}", State.WARNING, seen, "traceback: server.log, tick_item_failed"
        )


def queue(subject: Subject) -> Iterator[Check]:
    """Check how long jobs have waited for a worker, and runs for a device."""
    for row in subject.query(_WAITING_JOBS):
        action = f"`{subject.control} restart {row['job']}`; log: {row['job']}.log"
        yield _waiting(f"queue {row['job']}", row["n"], row["age"], action)
    [row] = subject.query(_WAITING_RUNS)
    action = f"`wqlab show {row['submission']}` says what a run waits for"
    yield _waiting("queue run", row["n"], row["age"], action if row["submission"] else "`wqlab devices`")


def _waiting(name: str, count: int, age: int | None, action: str) -> Check:
    if not count or age is None:
        return Check(name, State.OK, "nothing waits")
    late = age > QUEUE_LIMIT_S
    seen = f"{count} waiting, the first for {_span(age)}"
    return Check(name, State.WARNING if late else State.OK, seen, action if late else "")


def leases(subject: Subject) -> Iterator[Check]:
    """Check that expired leases are ended, and for how long devices have been leased."""
    rows = subject.query(_LEASES)
    late = [row for row in rows if row["overdue"] > OVERDUE_LIMIT_S]
    for row in late:
        seen = (
            f"the lease of {row['device']} for run {row['run']} expired {_span(row['overdue'])} ago and was not ended"
        )
        yield Check("leases", State.FAILED, seen, "the tick ends it: see the check tick")
    if late:
        return
    long = [row for row in rows if row["age"] > LEASE_LIMIT_S]
    for row in long:
        seen = f"run {row['run']} has had {row['device']} for {_span(row['age'])}"
        yield Check("leases", State.WARNING, seen, "look at the run's console; `wqlab cancel` frees the device")
    if not long:
        oldest = f", the oldest for {_span(rows[0]['age'])}" if rows else ""
        yield Check("leases", State.OK, f"{len(rows)} devices leased{oldest}")


def devices(subject: Subject) -> Iterator[Check]:
    """Check the health of the devices."""
    rows = subject.query("SELECT name, lab, health, health_reason FROM devices WHERE retired_at IS NULL ORDER BY name")
    counts = {health: sum(row["health"] == health for row in rows) for health in ("good", "unknown")}
    if not rows:
        yield Check("devices", State.FAILED, "the lab has none", "add a file to device-types/, then `make up`")
        return
    seen = f"{counts['good']} of {len(rows)} good, {counts['unknown']} not checked yet"
    if counts["good"]:
        yield Check("devices", State.OK, seen)
    elif counts["unknown"]:
        first = next(row["name"] for row in rows if row["health"] == "unknown")
        yield Check("devices", State.WARNING, seen, f"check one now: `wqlab device check {first}`")
    else:
        yield Check("devices", State.FAILED, f"{seen}: nothing can run", "repair the devices below")
    for row in rows:
        name = f"device {row['name']}"
        if row["health"] == "quarantined":
            action = f"repair it, then `wqlab devices release {row['name']}`"
            yield Check(name, State.WARNING, f"quarantined: {row['health_reason']}", action)
        elif row["health"] == "suspect":
            action = f"a health check comes before its next run; now: `wqlab device check {row['name']}`"
            yield Check(name, State.WARNING, f"suspect: {row['health_reason']}", action)


def _span(seconds: int) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
