"""Artifacts are fetched whole, however often the line breaks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact

from .fakelab import server


class FlakyDownloads:
    """A server of one artifact whose connection breaks after some bytes, as often as it is told to."""

    def __init__(self, data: bytes, *breaks: int, ranges: bool = True) -> None:
        self.data, self.breaks, self.ranges = data, list(breaks), ranges
        self.asked: list[str | None] = []
        self.sent = 0

    @property
    def artifact(self) -> Artifact:
        digest = hashlib.sha256(self.data).hexdigest()
        return Artifact(sha256=digest, size=len(self.data), kind=ArtifactKind.KERNEL, name="bzImage")

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(asked := request.headers.get("Range"))
        start = 0
        if asked and self.ranges and request.headers["If-Range"] == f'"{self.artifact.sha256}"':
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        return httpx.Response(206 if start else 200, content=self._pieces(start))

    def _pieces(self, start: int) -> Iterator[bytes]:
        end = start + self.breaks.pop(0) if self.breaks else len(self.data)
        for at in range(start, end, 1000):
            piece = self.data[at : min(at + 1000, end)]
            self.sent += len(piece)
            yield piece
        if end < len(self.data):
            raise httpx.ReadError("cut off")


DATA = bytes(range(256)) * 200


def test_a_download_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, 20_000)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked == [None, "bytes=20000-", "bytes=40000-"]
    assert lab.sent == len(DATA), "no byte came twice"
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]


def test_a_download_goes_on_in_another_process_of_the_worker(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000)
    with pytest.raises(httpx.TransportError):
        server(lab, patience_s=0).fetch(lab.artifact, tmp_path)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked[-1] == "bytes=20000-"


def test_a_line_that_moves_is_not_given_up(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, *[10_000] * 5)
    assert server(lab, patience_s=0.8).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert len(lab.asked) == 6


def test_a_server_without_ranges_is_asked_for_all_of_it(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, ranges=False)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("kept", [b"x" * 20_000, b"x" * len(DATA), DATA + b"more"])
def test_a_damaged_beginning_is_found_out_and_fetched_again(tmp_path: Path, kept: bytes) -> None:
    lab = FlakyDownloads(DATA)
    (tmp_path / f".partial-{lab.artifact.sha256}").write_bytes(kept)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked[-1] is None


def test_sessions_that_want_the_same_at_once_fetch_it_once(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: server(lab).fetch(lab.artifact, tmp_path).read_bytes(), range(6)))
    assert found == [DATA] * 6
    assert lab.asked == [None]
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]
