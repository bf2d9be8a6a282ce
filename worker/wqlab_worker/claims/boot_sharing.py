"""Share the boots of a claimed run through the server: `backends.instrumented.sharing.OtherHosts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.shared_boots import SeededBoot, ShareAnswer, ShareBoots

from .server import JobRef, Server


class ServerOfOtherHosts:
    """The server that passes boots of the run `ref` to other hosts than `host`. `server` is used for nothing else."""

    def __init__(self, server: Server, ref: JobRef, host: str) -> None:
        self._server = server
        self._ref = ref
        self._host = host

    def share(
        self,
        boots: Sequence[SeededBoot],
        initramfs: Mapping[Arm, str],
        layouts: Mapping[Arm, str],
        emulator: str,
        limit_s: float,
    ) -> ShareAnswer:
        body = ShareBoots(
            fence=self._ref.fence, host=self._host, emulator=emulator, limit_s=limit_s, boots=list(boots),
            initramfs=dict(initramfs), layouts=dict(layouts),
        )  # fmt: skip
        return self._server.share_boots(self._ref, body)

    def upload(self, path: Path, name: str) -> Artifact:
        return self._server.upload(self._ref, path, ArtifactKind.BOOT_FILE, name)

    def fetch(self, artifact: Artifact, folder: Path) -> Path:
        return self._server.fetch(artifact, folder)

    def interrupt(self) -> None:
        self._server.interrupted.set()
