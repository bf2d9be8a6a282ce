"""Measure the list of submissions with 100,000 rows.

    python benchmarks/list_submissions.py [--rows 100000]

Fills a separate database, requests pages as the API does, and prints for each page which index PostgreSQL uses, how
many rows of the table it reads, and how much faster that is than a sequential scan. Row counts are the same on every
machine; times are measured in the same minute and serve only for the ratio, because machines are shared.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Outcome, SubmissionState, Verdict
from wqlab_server import migrations
from wqlab_server.storage.db import make_engine, make_factory
from wqlab_server.submissions.queries import Filter, Sort, page

POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")
REPEATS = 5
LIMIT = 50
SPARE = 4 * LIMIT
"""Rows that a page may always read, even if they are more than twice the rows that match its filter."""

Ask = tuple[str, Filter, Sort, float | None]
"""Description, filter, order, and the position in the list where the page begins (0.5: the middle)."""
PAGES: list[Ask] = [
    ("first page", Filter(), Sort.NEWEST, None),
    ("a page from the middle", Filter(), Sort.NEWEST, 0.5),
    ("by title, from the middle", Filter(), Sort.TITLE, 0.5),
    ("by owner, from the middle", Filter(), Sort.OWNER, 0.5),
    ("by end, from the middle", Filter(), Sort.ENDED, 0.5),
    ("what runs now", Filter(active=True), Sort.NEWEST, None),
    ("a rare word", Filter(q="numbered 54321"), Sort.NEWEST, None),
    ("a common word", Filter(q="workqueue"), Sort.NEWEST, None),
    ("a word that nothing has", Filter(q="nonesuch"), Sort.NEWEST, None),
    ("an author", Filter(author="author77@"), Sort.NEWEST, None),
    ("an owner's", Filter(owner="owner7"), Sort.NEWEST, None),
    ("a rare tree", Filter(tree="rare"), Sort.NEWEST, None),
    ("a rare verdict", Filter(verdict=Verdict.FAILED), Sort.NEWEST, None),
    ("a common verdict", Filter(verdict=Verdict.EQUIVALENT), Sort.NEWEST, None),
    ("plan on a type, with a verdict", Filter(plan="plan3", device_type="type3", verdict=Verdict.REGRESSION),
     Sort.NEWEST, None),
    ("a rare outcome, by title", Filter(outcome=Outcome.CANCELED), Sort.TITLE, None),
    ("still applying", Filter(state=SubmissionState.APPLYING), Sort.NEWEST, None),
]  # fmt: skip

# Each row has a series of 4 kB; nine of ten submissions are finished, one in 2,000 is running.
FILL = """
INSERT INTO submissions (request, owner, title, series_key, author, tree, priority, facets, state, outcome, exit_code,
                         event_seq, created_at, finished_at)
SELECT jsonb_build_object('series', jsonb_build_object('mbox', jsonb_build_object('text', repeat(md5(n::text), 128))),
                          'tree', 't', 'targets', '[]'::jsonb),
       'owner' || n % 97,
       '[PATCH ' || n % 9 || '] workqueue: change ' || md5(n::text) || ' numbered ' || n,
       'workqueue: change ' || n / 3,
       'Author ' || n % 501 || ' <author' || n % 501 || '@example.org>',
       CASE WHEN n % 5000 = 0 THEN 'rare' ELSE 'tree' || n % 4 END,
       50 + n % 3,
       ARRAY['plan:plan' || n % 7, 'type:type' || n % 5, 'target:plan' || n % 7 || '@type' || n % 5,
             'verdict:' || CASE WHEN n % 4000 = 0 THEN 'failed' WHEN n % 11 = 0 THEN 'regression'
                                WHEN n % 3 = 0 THEN 'improvement' ELSE 'equivalent' END],
       CASE WHEN n % 2000 = 0 THEN 'applying' ELSE 'finished' END,
       CASE WHEN n % 2000 = 0 THEN NULL WHEN n % 3001 = 0 THEN 'canceled' WHEN n % 13 = 0 THEN 'failed'
            ELSE 'passed' END,
       0, 3,
       now() - (:rows - n) * interval '5 minutes',
       CASE WHEN n % 2000 = 0 THEN NULL ELSE now() - (:rows - n - n % 50) * interval '5 minutes' END
FROM generate_series(1, :rows) AS n
"""


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


def timed_ms(work: Callable[[], object]) -> float:
    """Return the median time of several calls, after one that fills caches."""
    work()
    took = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


def statements_of(session: Session, work: Callable[[], object]) -> list[tuple[str, Any]]:
    """Return the statements that `work` sends to the database."""
    sent: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        sent.append((statement, parameters))

    engine = session.get_bind()
    event.listen(engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return sent


def plan_of(session: Session, statement: str, parameters: Any) -> tuple[str, int]:
    """Return how the plan reads the table, and how many of its rows it reads."""
    cursor = session.connection().connection.cursor()
    cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
    row = cursor.fetchone()
    assert row is not None, "EXPLAIN returns one row"
    (found,) = row
    plan = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
    ways, rows = [], 0
    for node in nodes(plan):
        if node.get("Relation Name") == "submissions" and "Init" not in node.get("Parent Relationship", ""):
            rows += int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
            ways.append(node.get("Index Name") or ("the table" if node["Node Type"] == "Seq Scan" else ""))
        elif node["Node Type"] == "Bitmap Index Scan":
            ways.append(node["Index Name"])
    return ", ".join(dict.fromkeys(way for way in ways if way)), rows


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    much = 0
    with database() as engine:
        with engine.begin() as connection:
            connection.execute(text(FILL), {"rows": rows})
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE submissions"))
        print(f"{rows:,} submissions; pages of {LIMIT}; medians of {REPEATS}, including the count of all matches")
        print(f"{'page':<32} {'found':>7} {'ms':>7} {'by table':>9} {'ratio':>6} {'rows read':>9}  by")
        for name, filter_, sort, part in PAGES:
            after = None if part is None else int(rows * part)
            with make_factory(engine)() as session:

                def ask(
                    session: Session = session, filter_: Filter = filter_, sort: Sort = sort, after: Any = after
                ) -> Any:
                    session.expunge_all()
                    return page(session, filter_, sort, after, LIMIT)

                _, total, _ = ask()
                took = timed_ms(ask)
                plans = [plan_of(session, *sent) for sent in statements_of(session, ask)]
                way, read = plans[-1][0], max(rows_read for _, rows_read in plans)
                for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
                    session.execute(text(f"SET LOCAL enable_{kind} = off"))
                without = timed_ms(ask)
                much += read > max(2 * total, SPARE)
                print(f"{name:<32} {total:>7} {took:>7.2f} {without:>9.2f} {without / took:>6.1f} {read:>9}  {way}")
    print(f"pages that read more than twice the matching rows, and more than {SPARE}, to find or count them: {much}")
    return 1 if much else 0


if __name__ == "__main__":
    sys.exit(main())
