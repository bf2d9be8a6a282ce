"""Measure the pages of the history with 100,000 runs, 10,000,000 samples and lines of 5,000 points.

    python benchmarks/history.py [--runs 100000] [--samples 10000000]

Fills a separate database with rows, sends the requests of each page to the API in this process, and prints the median
and the 95th percentile of the answers (aims: a list under 50 ms, a stored report under 100 ms, a chart of 5,000 points
under 200 ms), and the time to add one head to a line. Times are of one machine at one moment.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient
from list_submissions import database
from sqlalchemy import Engine, select, text

sys.path.insert(0, str(Path(__file__).parents[1] / "report/tests"))

from report_examples import improvement

from wqlab_report.formats import render_json
from wqlab_server.app import create_app
from wqlab_server.history.shifts import open_shifts
from wqlab_server.models import HistoryLine
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, make_factory, transaction

TREES = 20
POINTS = 5_000
"""Points of a line: as many as heads of a tree."""
REPEATS = 40
ROOT = Path(__file__).resolve().parents[1]
TARGETS = 12
"""Targets of the stored report."""
PAGES = {
    "50 lines": "history/lines?limit=50",
    "lines of one tree": "history/lines?tree=tree3",
    "primary lines of one type": "history/lines?device_type=t2&role=primary",
    "50 shifts": "history/shifts?limit=50",
    "50 submissions": "submissions?limit=50",
    "50 submissions that have a word": "submissions?limit=50&q=head+77",
    f"chart of {POINTS:,} points": "history/lines/1",
    f"stored report with {TARGETS} targets, JSON": "submissions/1/report",
    f"stored report with {TARGETS} targets, text": "submissions/1/report?format=text",
    f"stored report with {TARGETS} targets, HTML": "submissions/1/report?format=html",
}
"""What is asked for, and the path of the request."""

FILL = [
    """INSERT INTO devices (name, device_type, lab, health, health_reason, facts)
    SELECT 'd' || n, 't' || n % 5, 'local', 'good', '', '{}'
    FROM generate_series(0, 19) AS n""",
    """INSERT INTO submissions (id, request, owner, title, series_key, author, tree, priority, facets, state, outcome,
    exit_code, event_seq, finished_at)
    SELECT n, '{"series": null, "tree": "linux", "targets": [{"plan": "locks", "device_type": "t0"}]}', 'bot',
    'head ' || n, '', '', 'linux', 30, '{}', 'finished', 'passed', 0, 0, now()
    FROM generate_series(1, :runs) AS n""",
    """INSERT INTO jobs (id, kind, submission_id, owner, state, outcome, attempts)
    SELECT n, 'run', n, 'bot', 'finished', 'passed', 1 FROM generate_series(1, :runs) AS n""",
    """INSERT INTO runs (id, purpose, target, priority, device_type, device_spec, plan_name, plan, profile, files,
    recipe, fragments, modules, seed, blocks, verdict, headline, compared_at, device_name)
    SELECT n, 'measure', 0, 30, 't' || n % 5, '{}', 'locks', '{}', '{}', '{}', '{}', '{}', '{}', 1, '[]',
    'equivalent', '', now(), 'd' || n % 20
    FROM generate_series(1, :runs) AS n""",
    """INSERT INTO boots (id, run_id, block, position, arm, attempt, device_name, fence, state, outcome, valid,
    environment, commands, started_at, console_bytes, console_truncated)
    SELECT n, n, 0, 0, 'baseline', 0, 'd0', n, 'finished', 'passed', true, '{}', '{}', now(), 0, false
    FROM generate_series(1, :runs) AS n""",
    """INSERT INTO samples (run_id, boot_id, scenario, setting, repetition, metric, value, warmup)
    SELECT n, n, 'high', 'scope=cache', k, 'locks_per_flush', 34, false
    FROM generate_series(1, :runs) AS n, generate_series(1, :each) AS k""",
    """INSERT INTO watches (name, spec, from_file, enabled_at, problem, created_by, changed_by)
    SELECT 'tree' || n, '{}', false, now(), '', 'ada', 'ada' FROM generate_series(0, :trees - 1) AS n""",
    """INSERT INTO watched_heads (id, watch, ref, name, commit, state, reason, seen_at, verdicts, devices,
    cut, ranged, in_history_at)
    SELECT n, 'tree' || n % :trees, 'for-next', 'for-next', lpad(to_hex(n), 40, '0'), 'measured', '', now(), '[]',
    '{}', '', false, now() FROM generate_series(1, :runs) AS n""",
    "INSERT INTO history_environments (digest, facts) VALUES ('0', '{}')",
    """INSERT INTO history_lines (watch, ref, plan_name, device_type, scenario, setting, metric, unit, scale,
    direction, role, evidence, delta, points, recent, levels, last_at)
    SELECT 'tree' || t, 'for-next', 'locks', 't' || d, 'high', 'scope=cache', 'm' || m, 'locks', 'ratio',
    'lower_is_better', CASE WHEN m = 0 THEN 'primary' ELSE 'secondary' END, 'mechanism', 1, :points, '[]', '[]', now()
    FROM generate_series(0, :trees - 1) AS t, generate_series(0, 4) AS d, generate_series(0, 1) AS m""",
    """INSERT INTO history_points (line_id, head_id, run_id, environment_id, value, stddev, n, effect, ci_low, ci_high,
    verdict, cut, at)
    SELECT l.id, h.id, h.id, 1, 1000 + 5 * random() + CASE WHEN h.id > :runs / 2 THEN 30 ELSE 0 END, 3, 10, 0.1, -0.2,
    0.4, 'equivalent', '', now() + h.id * interval '1 minute'
    FROM history_lines AS l JOIN watched_heads AS h ON h.watch = l.watch""",
    """INSERT INTO history_shifts (line_id, before_id, after_id, source, state, suspected_effect, reason,
    owner, notes, changed_by)
    SELECT l.id, min(h.id) + 20 * k, min(h.id) + 20 * k + 20, 'level', 'confirmed', 3, '', '', '', ''
    FROM history_lines AS l JOIN watched_heads AS h ON h.watch = l.watch, generate_series(1, 10) AS k
    GROUP BY l.id, k""",
    "ANALYZE",
]


def fill(engine: Engine, runs: int, samples: int) -> None:
    """Write all rows."""
    values = {"runs": runs, "each": max(1, samples // runs), "trees": TREES, "points": runs // TREES}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in FILL:
            start = time.perf_counter()
            used = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement), used)
            print(f"  {' '.join(statement.split()[:3]):<36} {time.perf_counter() - start:6.1f} s", flush=True)
        report = improvement()
        report = report.model_copy(update={"targets": report.targets * TARGETS})
        connection.execute(
            text("INSERT INTO kept_reports (submission_id, document) VALUES (1, :document)"),
            {"document": render_json(report)},
        )


def timed(what: str, work: Callable[[], object]) -> None:
    """Print the median and the 95th percentile of several calls, after one that fills caches."""
    work()
    took = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        took.append((time.perf_counter() - start) * 1000)
    p95 = statistics.quantiles(took, n=20)[-1]
    print(f"{what:<58} median {statistics.median(took):7.1f} ms, p95 {p95:7.1f} ms", flush=True)


def time_pages(factory: SessionFactory, settings: Settings) -> None:
    """Print how long the API takes for the requests of the pages."""

    def asked(client: TestClient, path: str) -> Callable[[], object]:
        return lambda: client.get(f"/api/v1/{path}").raise_for_status()

    for what, path in PAGES.items():
        with TestClient(create_app(settings, factory)) as client:  # each has the requests of a new client
            timed(what, asked(client, path))


def time_addition(factory: SessionFactory) -> None:
    """Print how long it takes to compute what a new head changes of a line, apart from its own row."""
    with transaction(factory) as session:
        line = session.scalars(select(HistoryLine).order_by(HistoryLine.id).limit(1)).one()
        timed(f"levels and shifts when a point is added to {line.points}", lambda: open_shifts(session, line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=TREES * POINTS)
    parser.add_argument("--samples", type=int, default=10_000_000)
    options = parser.parse_args()
    with database() as engine, tempfile.TemporaryDirectory() as folder:
        fill(engine, options.runs, options.samples)
        settings = Settings(
            database_url=engine.url.render_as_string(hide_password=False),
            broker_url="redis://nobody",
            data_dir=ROOT,
            artifact_dir=Path(folder),
            public_reading=True,
        )
        factory = make_factory(engine, lambda _: None)
        time_pages(factory, settings)
        time_addition(factory)


if __name__ == "__main__":
    main()
