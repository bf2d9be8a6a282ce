"""`wqlab-lab storage`, and the pins that keep a lab's golden systems."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wqlab_lab import storage
from wqlab_lab.paths import ADMIN, LabPaths

ANSWER = {
    "machines": [
        {
            "machine": "server",
            "reported_at": "2026-11-25T14:00:00Z",
            "areas": [
                {
                    "name": "artifacts", "summary": "kernels and logs", "bytes": 830 << 20, "pinned_bytes": 40 << 20,
                    "limit_bytes": 50 << 30, "keep_s": 90 * 86400, "free_bytes": 1 << 30, "reserve_bytes": 2 << 30,
                    "next_deletion_at": "2026-12-24T08:00:00Z", "problem": "pinned files exceed the limit",
                }
            ],
        }
    ],
    "pinned": [7, 3],
}  # fmt: skip


class Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert (self.path, self.headers["Authorization"]) == ("/api/v1/lab/storage", "Bearer wql_admin")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def running(paths: LabPaths) -> Iterator[LabPaths]:
    (paths.keys / f"{ADMIN}.token").write_text("wql_admin\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        (paths.run / "api.port").write_text(str(server.server_port))
        yield paths
        server.shutdown()
        thread.join()


def test_running_lab_says_limits_pins_and_dates(running: LabPaths) -> None:
    text = storage.report(running, running=True)
    assert text.splitlines()[0] == "server, at 2026-11-25 14:00 UTC"
    [row] = [" ".join(line.split()) for line in text.splitlines() if line.startswith("  artifacts ")]
    assert row == (
        "artifacts 830.0 MiB 50.0 GiB, 90 days 40.0 MiB 1.0 GiB (at least 2.0 GiB) 2026-12-24 kernels and logs"
    )
    assert "artifacts: pinned files exceed the limit" in text
    assert "pinned submissions: 7, 3" in text
    assert json.loads(storage.report(running, running=True, as_json=True)) == ANSWER


def test_api_that_does_not_answer_is_an_error(running: LabPaths) -> None:
    (running.run / "api.port").write_text("1")
    with pytest.raises(storage.StorageError, match="does not say what uses the storage"):
        storage.report(running, running=True)


def test_folders_of_a_stopped_lab_are_measured(paths: LabPaths) -> None:
    (paths.state / "artifacts" / "a").write_bytes(b"x" * (3 << 20))
    (paths.cache / "sources").mkdir(parents=True)
    text = storage.report(paths, running=False)
    assert "state/artifacts" in text
    assert "3.0 MiB" in text
    assert "cache/sources" in text
    assert "the lab is not running" in text


def test_pins_name_golden_systems_and_pages(paths: LabPaths) -> None:
    golden = {"x86_64": {"kernel": str(paths.cache / "builds/k/kernel"), "rootfs": "/r.cpio", "key": "k"}}
    paths.golden.write_text(json.dumps(golden))
    paths = replace(paths, data=Path(__file__).resolve().parents[2])
    paths.write_pins()
    [file] = (paths.cache / "pins").glob("*.json")
    pins = json.loads(file.read_text())
    assert pins["state"] == str(paths.state)
    assert {golden["x86_64"]["kernel"], "/r.cpio", str(paths.cache / "mirrors" / f"{paths.golden_tree}.git")} <= set(
        pins["paths"]
    )
    paths.remove_pins()
    assert not file.exists()
