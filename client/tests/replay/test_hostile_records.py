"""Records with correct hashes that contradict themselves or are invalid: an error, never a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bundles import read_files, with_manifest, write_files

from wqlab_client.replay.archive import BundleError, open_bundle
from wqlab_client.replay.checks import Result
from wqlab_client.replay.derive import Replay, replay
from wqlab_comparison import SamplesError

pytestmark = pytest.mark.integration
RUN = "runs/2/run.json"
SAMPLES = "runs/2/samples.csv"
MUTATIONS = 150
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    10**18,
    1e300,
    -0.5,
    "",
    "x" * 5000,
    "\x1b[2J",
    "baseline",
    [],
    {},
    [None],
    [[]],
]


def replayed(path: Path) -> Replay:
    with open_bundle(path) as bundle:
        return replay(bundle)


@pytest.fixture
def files(improvement: Path) -> dict[str, bytes]:
    found = read_files(improvement)
    assert {RUN, SAMPLES} <= found.keys()
    return found


Write = Callable[[dict[str, bytes]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return lambda files: write_files(tmp_path / "changed.zip", with_manifest(files))


def with_json(files: dict[str, bytes], name: str, change: Callable[[Any], None]) -> dict[str, bytes]:
    document = json.loads(files[name])
    change(document)
    return files | {name: json.dumps(document).encode()}


def test_missing_and_foreign_records_are_refused(files: dict[str, bytes], write: Write) -> None:
    def without(name: str) -> dict[str, bytes]:
        return {other: content for other, content in files.items() if other != name}

    cases = [
        (without("report.json"), r"no report\.json"),
        (without(RUN), r"it has the runs \[\], its report the runs \[2\]"),
        (without(SAMPLES), "no runs/2/samples.csv"),
        (files | {"runs/3/run.json": files[RUN]}, "it has the runs"),
        (with_json(files, RUN, lambda run: run.update(run_id=7)), "is of run 7"),
        (with_json(files, RUN, lambda run: run.update(target=3)), "which was not requested"),
        (
            with_json(files, "report.json", lambda report: report["submission"].update(id=9)),
            "report is of submission 9",
        ),
        (files | {"report.json": b"{}"}, r"report\.json is invalid"),
        (files | {SAMPLES: b"a,b\n1,2\n"}, "runs/2/samples.csv:1: no column"),
        (files | {SAMPLES: files[SAMPLES].replace(b",5.0\n", b",inf\n")}, "is not a finite number"),
        (files | {SAMPLES: files[SAMPLES] + b"\xff\n"}, "not UTF-8"),
        (files | {SAMPLES: files[SAMPLES] * 2}, "column"),
        (
            files | {SAMPLES: files[SAMPLES] + files[SAMPLES].splitlines(keepends=True)[2]},
            "given twice|cannot be compared",
        ),
    ]
    for changed, match in cases:
        with pytest.raises(BundleError, match=match):
            replayed(write(changed))


def test_samples_without_rows_differ_from_the_report(files: dict[str, bytes], write: Write) -> None:
    found = replayed(write(files | {SAMPLES: files[SAMPLES].splitlines(keepends=True)[0]}))
    assert found.count(Result.DIFFERS) >= 3


def nodes(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value in a JSON document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield document, key
        if isinstance(value, dict | list):
            yield from nodes(value)


@pytest.mark.parametrize("name", [RUN, "report.json"])
def test_random_changes_give_an_error_or_a_result(files: dict[str, bytes], write: Write, name: str) -> None:
    """The manifest has the hash of each change, so that only the checks of the records see it."""
    chance = random.Random(20)
    results: dict[str, int] = {"refused": 0, "differs": 0, "agrees": 0}
    for _ in range(MUTATIONS):
        document = json.loads(files[name])
        container, key = chance.choice(list(nodes(document)))
        container[key] = chance.choice(VALUES)
        try:
            found = replayed(write(files | {name: json.dumps(document).encode()}))
        except BundleError:
            results["refused"] += 1
        else:
            results["differs" if found.count(Result.DIFFERS) else "agrees"] += 1
    assert min(results.values()) > 0, results


def test_random_samples_give_an_error_or_a_result(files: dict[str, bytes], write: Write) -> None:
    chance = random.Random(20)
    rows = [line.split(",") for line in files[SAMPLES].decode().splitlines()]
    for _ in range(MUTATIONS):
        changed = [list(row) for row in rows]
        changed[chance.randrange(1, len(rows))][chance.randrange(len(rows[0]))] = str(chance.choice(VALUES))
        try:
            replayed(write(files | {SAMPLES: "\n".join(",".join(row) for row in changed).encode()}))
        except BundleError:
            continue
        except SamplesError:
            pytest.fail("an error of the samples reached the caller")
