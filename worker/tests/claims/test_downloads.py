"""Downloads over connections that break."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact
from wqlab_worker.claims.downloads import ArtifactCorrupt

from .fakelab import server


class FlakyDownloads:
    """A server of one artifact whose connection breaks after each number of bytes in `breaks`."""

    def __init__(self, data: bytes, *breaks: int, ranges: bool = True) -> None:
        self.data, self.breaks, self.ranges = data, list(breaks), ranges
        self.ranges_requested: list[str | None] = []
        self.sent = 0

    @property
    def artifact(self) -> Artifact:
        digest = hashlib.sha256(self.data).hexdigest()
        return Artifact(sha256=digest, size=len(self.data), kind=ArtifactKind.KERNEL, name="bzImage")

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.ranges_requested.append(requested := request.headers.get("Range"))
        start = 0
        if requested and self.ranges and request.headers["If-Range"] == f'"{self.artifact.sha256}"':
            start = int(requested.removeprefix("bytes=").removesuffix("-"))
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


def test_interrupted_download_is_resumed(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, 20_000)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.ranges_requested == [None, "bytes=20000-", "bytes=40000-"]
    assert lab.sent == len(DATA), "no byte is sent twice"
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]


def test_download_is_resumed_by_another_process(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000)
    with pytest.raises(httpx.TransportError):
        server(lab, retry_s=0).fetch(lab.artifact, tmp_path)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.ranges_requested[-1] == "bytes=20000-"


def test_slow_download_with_progress_continues(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, *[10_000] * 5)
    assert server(lab, retry_s=1.5).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert len(lab.ranges_requested) == 6


def test_server_without_ranges_sends_whole_file(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, ranges=False)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("kept", [b"x" * 20_000, b"x" * len(DATA), DATA + b"more"])
def test_damaged_partial_file_is_downloaded_again(tmp_path: Path, kept: bytes) -> None:
    lab = FlakyDownloads(DATA)
    (tmp_path / f".partial-{lab.artifact.sha256}").write_bytes(kept)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.ranges_requested[-1] is None


def test_concurrent_sessions_download_artifact_once(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: server(lab).fetch(lab.artifact, tmp_path).read_bytes(), range(6)))
    assert found == [DATA] * 6
    assert lab.ranges_requested == [None]
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]


def test_download_ends_at_the_declared_size(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA)
    declared = lab.artifact.model_copy(update={"size": 1500})
    with pytest.raises(ArtifactCorrupt, match="more than its 1500 bytes"):
        server(lab).fetch(declared, tmp_path)
    assert lab.sent < 10_000
    assert not list(tmp_path.iterdir())
