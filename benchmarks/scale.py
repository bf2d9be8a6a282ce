"""Measure a tick with 1,000 devices in 20 labs and 10,000 queued runs, and count the devices of each submitter.

    python benchmarks/scale.py [--runs 10000] [--devices 1000] [--labs 20] [--rounds 200]

Runs the server's code against a separate PostgreSQL: device types from a data folder, submissions and runs as rows,
ticks as in the server. Workers are simulated by their changes in the database: before each tick one device of 200 ends
its run, as happens in three seconds when runs take ten minutes. One submitter has half of the queue.
"""

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from sqlalchemy import Engine, Table, select, text
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import ApplyResult, Source, Target
from wqlab_server import migrations
from wqlab_server.estimates import lab_snapshot
from wqlab_server.models import Apply, Job, Run, Submission
from wqlab_server.pipeline import assign_devices
from wqlab_server.pipeline.due import due_submissions
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, SessionFactory, make_engine, make_factory, transaction
from wqlab_server.storage.live_data import LiveData
from wqlab_server.submissions import service as submissions
from wqlab_server.tick import tick

ROOT = Path(__file__).resolve().parents[1]
POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")
TYPES = 5
SUBMITTERS = 50
HEAVY = "submitter0"
"""Submitter with half of the queue."""


@dataclass(frozen=True)
class Size:
    runs: int
    devices: int
    labs: int
    rounds: int


@contextmanager
def database() -> Iterator[Engine]:
    """Start a separate PostgreSQL server with an empty, migrated database."""
    with tempfile.TemporaryDirectory(prefix="wqlab-bench-") as folder:
        data = Path(folder) / "data"
        subprocess.run(
            [POSTGRES_BIN / "initdb", "-D", data, "-U", "wqlab", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        options = f"-k {folder} -h '' -c fsync=off -c shared_buffers=256MB"
        log = Path(folder) / "log"
        subprocess.run(
            [POSTGRES_BIN / "pg_ctl", "-D", data, "-o", options, "-l", log, "-w", "start"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            engine = make_engine(f"postgresql+psycopg://wqlab@/postgres?host={folder}")
            migrations.upgrade(engine)
            yield engine
            engine.dispose()
        finally:
            subprocess.run(
                [POSTGRES_BIN / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip


def data_folder(folder: Path, devices: int, labs: int) -> Path:
    """Load the repository's data folder with five device types whose units are distributed over the labs."""
    for name in ("device-types", "kernels", "testplans", "intake"):
        shutil.copytree(ROOT / name, folder / name)
    model = yaml.safe_load((ROOT / "device-types/ryzen-3900x.yaml").read_text())
    for path in (folder / "device-types").glob("*.yaml"):
        if path.stem != "common":
            path.unlink()
    for kind in range(TYPES):
        units = [{"name": f"device-{n}", "lab": f"lab-{n % labs}"} for n in range(kind, devices, TYPES)]
        spec = {**model, "name": f"type-{kind}", "units": units}
        (folder / "device-types" / f"type-{kind}.yaml").write_text(yaml.safe_dump(spec))
    return folder


def copy(table: Table, model: int, number: str, count: int, **columns: str) -> str:
    """Return SQL that copies row `model` of `table` `count` times. `number` and `columns` are expressions of `n`."""
    names = [column.name for column in table.columns if column.computed is None and column.name != "id"]
    values = ", ".join(columns.get(name, f"model.{name}") for name in names)
    return (
        f"INSERT INTO {table.name} (id, {', '.join(names)}) SELECT {number}, {values} "
        f"FROM {table.name} AS model, generate_series(1, {count}) AS n WHERE model.id = {model}"
    )


def fill(factory: SessionFactory, data: LiveData, settings: Settings, runs: int) -> None:
    """Insert `runs` submissions with one queued run each, applied and built, and good devices."""
    request = SubmissionRequest(
        series=None, tree=data.current().default_tree, targets=[Target(plan="dm-crypt-affinity", device_type="type-0")]
    )
    owner = f"'submitter' || CASE WHEN n % 2 = 0 THEN 0 ELSE 1 + (n / 2) % {SUBMITTERS - 1} END"
    with transaction(factory) as session:
        submissions.create(session, data.current(), settings, request, HEAVY)
        apply = session.scalars(select(Apply)).one()
        base = Source(tree=apply.payload.tree, base_commit="0" * 40, tree_oid="0" * 40, commit="0" * 40, release="6.12")
        apply.state, apply.outcome = JobState.FINISHED, Outcome.PASSED
        apply.result = ApplyResult(outcome=Outcome.PASSED, baseline=base, toolchain="gcc 12.2.0")
        session.flush()
        session.execute(text("UPDATE submissions SET state = 'running' WHERE id = 1"))
        run = session.scalars(select(Run)).one()
        session.execute(text("UPDATE jobs SET state = 'queued' WHERE kind = 'run'"))
        of_submission = {"submission_id": "n + 1", "owner": owner}
        created = f"now() - ({runs} - n) * interval '1 second'"
        device_type, priority = f"'type-' || n % {TYPES}", "50 + n % 3 * 10"
        for table, model, number, columns in (
            (Submission.__table__, 1, "n + 1", {"owner": owner}),
            (Job.__table__, apply.id, "2 * n + 1", of_submission),
            (Job.__table__, run.id, "2 * n + 2", {**of_submission, "created_at": created}),
            (Run.__table__, run.id, "2 * n + 2", {"device_type": device_type, "priority": priority}),
        ):
            assert isinstance(table, Table)
            session.execute(text(copy(table, model, number, runs - 1, **columns)))
        session.execute(text("UPDATE devices SET health = 'good', health_checked_at = now()"))
        session.execute(text("ANALYZE"))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def go_on(engine: Engine, share: float) -> None:
    """Simulate the workers: a share of the devices becomes free again, the others are measuring."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "WITH ended AS (DELETE FROM leases WHERE device_name IN (SELECT device_name FROM leases "
                "ORDER BY md5(device_name || clock_timestamp()) LIMIT (SELECT ceil(count(*) * :share) FROM leases)) "
                "RETURNING run_id), done AS (UPDATE jobs SET state = 'finished', outcome = 'passed', "
                "finished_at = now() WHERE id IN (SELECT run_id FROM ended) RETURNING submission_id) "
                "UPDATE submissions SET state = 'finished', outcome = 'passed' "
                "WHERE id IN (SELECT submission_id FROM done)"
            ),
            {"share": share},
        )
        # Assigned runs are claimed, and their workers send heartbeats.
        connection.execute(text("UPDATE leases SET holder = 'worker', expires_at = now() + interval '1 hour'"))
        connection.execute(
            text(
                "UPDATE jobs SET state = 'running', expires_at = now() + interval '1 hour' "
                "WHERE id IN (SELECT run_id FROM leases)"
            )
        )


def devices_of(engine: Engine) -> Counter[str]:
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT owner, count(*) AS devices FROM leases JOIN jobs ON jobs.id = leases.run_id GROUP BY owner")
        )
        return Counter({row.owner: row.devices for row in rows})


def measure(engine: Engine, folder: Path, size: Size) -> None:
    sent: list[Message] = []
    factory = make_factory(engine, sent.append)
    settings = Settings(
        database_url=engine.url.render_as_string(hide_password=False),
        broker_url="redis://nobody",
        data_dir=data_folder(folder, size.devices, size.labs),
        artifact_dir=folder / "artifacts",
    )
    data = LiveData(settings.data_dir)
    print(f"{size.devices} devices enter the pool: {seconds(lambda: tick.tick(factory, settings, data)):.2f} s")
    fill(factory, data, settings, size.runs)
    first = seconds(lambda: tick.tick(factory, settings, data))
    print(f"first tick, all devices free: {first:.2f} s, {sum(devices_of(engine).values())} devices assigned")
    ticks, given, served = [], [], Counter(devices_of(engine))
    for _ in range(size.rounds):
        go_on(engine, share=1 / 200)
        before = devices_of(engine)
        ticks.append(seconds(lambda: tick.tick(factory, settings, data)))
        given.append(sum((devices_of(engine) - before).values()))
        served += devices_of(engine) - before
    print(
        f"{size.rounds} ticks that give {statistics.median(given):.0f} devices each: "
        f"median {statistics.median(ticks):.2f} s, longest {max(ticks):.2f} s"
    )
    idle = [seconds(lambda: tick.tick(factory, settings, data)) for _ in range(5)]
    print(f"a tick without free devices: {statistics.median(idle):.2f} s; of it")
    reads: dict[str, Callable[[Session], object]] = {
        "submissions that could advance": due_submissions,
        "the whole queue, as the pages show it": lambda session: lab_snapshot.load(session, settings),
    }
    for what, read in reads.items():
        with transaction(factory) as session:
            print(f"  {what}: {1000 * seconds(partial(read, session)):.0f} ms")
    print(f"  devices for runs: {1000 * seconds(lambda: assign_devices.assign_devices(factory, settings)):.0f} ms")
    light = [served[f"submitter{n}"] for n in range(1, SUBMITTERS)]
    print(
        f"devices given to {HEAVY}, who has half of the queue: {served[HEAVY]}; "
        f"to each of {len(light)} others: {min(light)} to {max(light)}"
    )
    with engine.connect() as connection:
        oldest = connection.execute(
            text(
                "SELECT owner = :heavy AS heavy, count(*) AS runs "
                "FROM (SELECT owner, state FROM jobs WHERE kind = 'run' ORDER BY created_at LIMIT :given) AS oldest "
                "WHERE state = 'queued' GROUP BY 1"
            ),
            {"heavy": HEAVY, "given": sum(served.values())},
        )
        left = {row.heavy: row.runs for row in oldest}
    print(
        f"of as many runs as got a device, those that were submitted first: {left.get(True, 0)} of {HEAVY} and "
        f"{left.get(False, 0)} of others still wait"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--devices", type=int, default=1_000)
    parser.add_argument("--labs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wqlab-bench-") as folder, database() as engine:
        measure(engine, Path(folder), Size(options.runs, options.devices, options.labs, options.rounds))


if __name__ == "__main__":
    main()
