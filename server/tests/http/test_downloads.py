"""Downloads of artifacts: media types and file names that no browser executes."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact
from wqlab_server.http.downloads import send
from wqlab_server.http.problems import ApiProblem
from wqlab_server.settings import Settings
from wqlab_server.storage.artifacts import ArtifactStore

pytestmark = pytest.mark.integration


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore.of(settings)


@pytest.mark.parametrize(
    ("kind", "name", "media_type", "disposition"),
    [
        (ArtifactKind.BUILD_LOG, "build.log", "text/plain; charset=utf-8", 'inline; filename="build.log"'),
        (ArtifactKind.METADATA, "meta.json", "application/json", 'attachment; filename="meta.json"'),
        (ArtifactKind.RAW_OUTPUT, "a b.html", "application/octet-stream", "attachment; filename*=utf-8''a%20b.html"),
    ],
)
def test_response_has_media_type_and_file_name(
    store: ArtifactStore, kind: ArtifactKind, name: str, media_type: str, disposition: str
) -> None:
    sha256, size = store.put_bytes(b"<script>alert(1)</script>")
    response = send(store, Artifact(sha256=sha256, size=size, kind=kind, name=name))
    assert response.headers["content-type"] == media_type
    assert response.headers["content-disposition"] == disposition
    assert response.headers["x-content-type-options"] == "nosniff"


def test_missing_artifact_is_not_found(store: ArtifactStore) -> None:
    with pytest.raises(ApiProblem) as caught:
        send(store, Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.CONFIG, name="config"))
    assert caught.value.status == 404
