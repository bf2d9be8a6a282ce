"""Web server of one run for its LAVA lab."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_worker.backends.lava.receiver import Receiver
from wqlab_worker.backends.unattended.boot_files import ResultsUnreadable


@pytest.fixture
def notified() -> threading.Event:
    return threading.Event()


@pytest.fixture
def receiver(tmp_path: Path, notified: threading.Event) -> Iterator[Receiver]:
    with Receiver("127.0.0.1", "127.0.0.1", notified.set) as receiver:
        (tmp_path / "kernel").write_bytes(b"image")
        receiver.offer("kernel", tmp_path / "kernel")
        yield receiver


def send(url: str, boot: str, data: bytes) -> int:
    headers = {"X-Sha256": hashlib.sha256(data).hexdigest()}
    return httpx.post(
        f"{url}/results/{boot}", content=base64.urlsafe_b64encode(data), headers=headers, timeout=None
    ).status_code


def test_job_fetches_files_and_sends_results_of_each_boot_once(receiver: Receiver, notified: threading.Event) -> None:
    job = receiver.open_job(["first", "second"])
    results = job.results(receiver.url())
    assert httpx.get(job.file("kernel"), timeout=None).content == b"image"
    assert httpx.get(job.file("other"), timeout=None).status_code == 404
    assert send(results["first"], "first", b"archive") == 200
    assert notified.is_set()
    assert send(results["first"], "first", b"archive") == 200, "the device repeats a request whose response it lost"
    assert receiver.result("first") == b"archive"
    assert receiver.result("second") is None
    assert httpx.post(job.callback, timeout=None).status_code == 200


def test_two_differing_results_of_a_boot_are_both_refused(receiver: Receiver) -> None:
    """The job is public in LAVA, with the secrets of all its boots."""
    job = receiver.open_job(["first", "second"])
    results = job.results(receiver.url())["second"]
    assert send(results, "second", b"forged") == 200
    assert send(results, "second", b"archive") == 409
    with pytest.raises(ResultsUnreadable, match="two different archives were sent"):
        receiver.result("second")
    receiver.open_job(["second"])
    assert receiver.result("second") is None


def test_secret_of_a_boot_takes_results_of_that_boot_only(receiver: Receiver) -> None:
    job = receiver.open_job(["first", "second"])
    results = job.results(receiver.url())
    assert send(results["first"], "second", b"forged") == 404
    assert send(results["first"], "third", b"forged") == 404
    assert send(f"{job.server}/{job.secret}", "second", b"forged") == 404
    assert httpx.get(f"{results['first']}/files/kernel", timeout=None).status_code == 404
    assert receiver.result("second") is None


def test_secrets_of_a_job_are_invalid_after_its_end(receiver: Receiver, notified: threading.Event) -> None:
    leaked = receiver.open_job(["first"])
    results = leaked.results(receiver.url())["first"]
    receiver.close_job()

    def uses() -> list[int]:
        return [
            httpx.get(leaked.file("kernel"), timeout=None).status_code,
            send(results, "first", b"forged"),
            httpx.post(leaked.callback, timeout=None).status_code,
        ]

    assert uses() == [404, 404, 404]
    again = receiver.open_job(["first"])
    assert uses() == [404, 404, 404], "the next job has other secrets, also for a boot of the same name"
    assert httpx.get(again.file("kernel"), timeout=None).status_code == 200
    assert not notified.is_set()
    assert receiver.result("first") is None
