"""Share the boots of a claimed run through the server: `backends.instrumented.sharing.OtherHosts`."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.shared_boots import ShareAnswer, ShareBoots

from ..backends.instrumented.sharing import Offer
from .server import JobRef, Server


class ServerOfOtherHosts:
    """The server that passes boots of the run `ref` to other hosts than `host`. `server` is used for nothing else."""

    def __init__(self, server: Server, ref: JobRef, host: str) -> None:
        self._server = server
        self._ref = ref
        self._host = host

    def share(self, offer: Offer) -> ShareAnswer:
        body = ShareBoots(
            fence=self._ref.fence, host=self._host, emulator=offer.emulator, limit_s=offer.limit_s,
            boots=offer.boots, initramfs=offer.initramfs, layouts=offer.layouts,
        )  # fmt: skip
        return self._server.share_boots(self._ref, body)

    def upload(self, path: Path, name: str) -> Artifact:
        return self._server.upload(self._ref, path, ArtifactKind.BOOT_FILE, name)

    def fetch(self, artifact: Artifact, folder: Path) -> Path:
        return self._server.fetch(artifact, folder)

    def interrupt(self) -> None:
        self._server.interrupted.set()
