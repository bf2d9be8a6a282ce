"""The artifact store in a folder and in a bucket of a real S3 server."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import anyio
import obstore
import pytest

from wqlab_server.settings import Settings
from wqlab_server.storage.artifacts import (
    ArtifactMismatch,
    ArtifactStore,
    ArtifactTooLarge,
    StoreMisconfigured,
    StoreUnavailable,
)

from .conftest import BUCKET, S3Server

pytestmark = pytest.mark.integration

LARGE = bytes(range(256)) * (80 << 10)  # 20 MiB: several parts of a multipart upload


def settings_of(folder: Path, **more: object) -> Settings:
    return Settings(
        database_url="postgresql+psycopg:///none", broker_url="memory://", data_dir=folder,
        artifact_dir=folder / "artifacts", **more,
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture(params=["folder", "s3"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "folder":
        return settings_of(tmp_path, artifact_limit=32 << 20)
    s3: S3Server = request.getfixturevalue("s3")
    return settings_of(
        tmp_path,
        artifact_limit=32 << 20,
        artifact_url=f"s3://{BUCKET}/{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]}",
        artifact_options=s3.options(tmp_path),
    )


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore.of(settings)


def streamed(store: ArtifactStore, sha256: str, start: int, end: int) -> bytes:
    async def read() -> bytes:
        return b"".join([piece async for piece in store.stream(sha256, start, end)])

    return anyio.run(read)


def left_behind(settings: Settings) -> list[str]:
    return [path.name for path in settings.artifact_dir.rglob(".partial-*")]


@pytest.mark.parametrize("content", [b"", b"x", LARGE], ids=["empty", "a byte", "20 MiB"])
def test_stored_content_is_read_back(store: ArtifactStore, settings: Settings, content: bytes) -> None:
    sha256, size = store.put_bytes(content)
    assert (sha256, size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert store.has(sha256)
    assert store.size(sha256) == len(content)
    assert store.read(sha256) == content
    assert streamed(store, sha256, 0, len(content)) == content
    assert left_behind(settings) == []
    assert store.put_bytes(content) == (sha256, size), "storing again is harmless"
    assert ArtifactStore.of(settings).read(sha256) == content


def test_stream_returns_exactly_the_range(store: ArtifactStore) -> None:
    sha256, _ = store.put_bytes(LARGE)
    for start, end in ((0, 1), (5 << 20, (5 << 20) + 300_000), (len(LARGE) - 7, len(LARGE)), (3, 3)):
        assert streamed(store, sha256, start, end) == LARGE[start:end]


def test_missing_artifact_is_not_found(store: ArtifactStore) -> None:
    assert not store.has("0" * 64)
    for ask in (store.size, store.read):
        with pytest.raises(FileNotFoundError):
            ask("0" * 64)


def test_artifact_is_invisible_until_its_hash_is_verified(store: ArtifactStore, settings: Settings) -> None:
    sha256 = hashlib.sha256(LARGE).hexdigest()
    with store.writer(sha256) as writer:
        writer.write(LARGE[:-1])
        assert not store.has(sha256), "during an upload"
        with pytest.raises(ArtifactMismatch, match="20971519 bytes"):
            writer.commit()
    assert not store.has(sha256)
    with pytest.raises(ZeroDivisionError), store.writer(sha256) as writer:
        writer.write(LARGE)
        _ = 1 / 0
    assert not store.has(sha256), "after an aborted upload"
    with pytest.raises(ArtifactTooLarge, match="33554432 bytes"):
        store.put(sha256, [LARGE, LARGE])
    assert not store.has(sha256)
    assert left_behind(settings) == []


def test_concurrent_writers_store_the_same_artifact(store: ArtifactStore) -> None:
    sha256, answers = hashlib.sha256(LARGE).hexdigest(), []
    threads = [threading.Thread(target=lambda: answers.append(store.put(sha256, [LARGE]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [len(LARGE)] * 4
    assert store.read(sha256) == LARGE


def test_bucket_content_survives_a_server_restart(s3: S3Server, tmp_path: Path) -> None:
    store = ArtifactStore.of(
        settings_of(tmp_path, artifact_url=f"s3://{BUCKET}/kept", artifact_options=s3.options(tmp_path))
    )
    sha256, _ = store.put_bytes(LARGE)
    assert obstore.head(s3.bucket(), f"kept/{sha256[:2]}/{sha256}")["size"] == len(LARGE)
    s3.kill()
    try:
        with pytest.raises(StoreUnavailable, match=f"s3://{BUCKET}/kept cannot be used"):
            store.size(sha256)
        with pytest.raises(StoreUnavailable):
            store.put_bytes(b"lost")
        with pytest.raises(StoreUnavailable):
            store.check()
    finally:
        s3.start()
    store.check()
    assert store.read(sha256) == LARGE


def test_credentials_are_read_from_the_environment(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in s3.options(tmp_path).read_text().splitlines()[1:]:
        monkeypatch.setenv(*line.split("=", 1))
    store = ArtifactStore.of(settings_of(tmp_path, artifact_url=f"s3://{BUCKET}/environment"))
    assert store.read(store.put_bytes(b"hello")[0]) == b"hello"


def test_wrong_credentials_are_reported_as_unavailable(s3: S3Server, tmp_path: Path) -> None:
    options = s3.options(tmp_path, aws_secret_access_key="wrong")
    store = ArtifactStore.of(settings_of(tmp_path, artifact_url=f"s3://{BUCKET}", artifact_options=options))
    for ask in (store.check, lambda: store.size("0" * 64), lambda: store.put_bytes(b"x")):
        with pytest.raises(StoreUnavailable, match=f"s3://{BUCKET} cannot be used"):
            ask()


@pytest.mark.parametrize(
    ("url", "options", "complaint"),
    [
        ("https://bucket", None, "write s3://BUCKET"),
        ("s3://", None, "write s3://BUCKET"),
        ("s3://bucket", "nonsense\n", "line 1: write NAME=value"),
        ("s3://bucket", "aws_secret=x\n", "aws_secret"),
        ("s3://bucket", "secret=x\n", "line 1: secret does not begin with AWS_"),
        ("s3://bucket", None, ""),
    ],
)
def test_invalid_setting_is_named_in_the_error(tmp_path: Path, url: str, options: str | None, complaint: str) -> None:
    path = tmp_path / "options"
    if options is not None:
        path.write_text(options)
    elif not complaint:
        complaint = "No such file"
    given = path if options is not None or complaint == "No such file" else None
    with pytest.raises(StoreMisconfigured, match=complaint):
        ArtifactStore.of(settings_of(tmp_path, artifact_url=url, artifact_options=given))
