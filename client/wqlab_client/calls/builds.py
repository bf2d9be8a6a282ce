"""Calls that read builds, runs and their files."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.runs import RunView, SampleRow
from wqlab_contracts.messages import Artifact

from ..errors import LabUnavailable, StreamSilent
from ..transport import Params
from .connection import API, Connection


class BuildCalls(Connection):
    """Calls on builds."""

    def build(self, build_id: int) -> BuildView:
        return self._get(BuildView, f"{API}/builds/{build_id}", f"build {build_id}")

    def build_log(self, build_id: int) -> str:
        response = self._transport.call(
            "GET", f"{API}/builds/{build_id}/log", what=f"log of build {build_id}", headers={"Accept": "text/plain"}
        )
        return response.content.decode("utf-8", errors="replace")

    def build_config(self, build_id: int) -> str:
        """Return the .config that the kernel was built with."""
        response = self._transport.call(
            "GET",
            f"{API}/builds/{build_id}/config",
            what=f"configuration of build {build_id}",
            headers={"Accept": "text/plain"},
        )
        return response.content.decode("utf-8", errors="replace")

    def download(self, build_id: int, artifact: Artifact, target: Path) -> None:
        """Save a build's artifact as `target`, which is created only when size and SHA-256 match.

        Raises LabUnavailable if they do not match.
        """
        what = f"artifact {artifact.name} of build {build_id}"
        staged = target.with_name(f".{target.name}.{os.getpid()}.part")
        digest, size = hashlib.sha256(), 0
        try:
            with (
                self._transport.stream(f"{API}/builds/{build_id}/artifacts/{artifact.sha256}", what=what) as response,
                staged.open("wb") as file,
            ):
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > artifact.size:
                        break
                    digest.update(chunk)
                    file.write(chunk)
            if size != artifact.size or digest.hexdigest() != artifact.sha256:
                raise LabUnavailable(
                    f"{what}: the downloaded file does not match the announced size and SHA-256", "download it again"
                )
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)


class RunCalls(Connection):
    """Calls on runs."""

    def run(self, run_id: int) -> RunView:
        return self._get(RunView, f"{API}/runs/{run_id}", f"run {run_id}")

    def console(
        self,
        run_id: int,
        boot_id: int,
        *,
        offset: int = 0,
        follow: bool = False,
        give_up_s: float = 600.0,
    ) -> Iterator[bytes]:
        """Yield a boot's console from byte `offset`; with `follow`, until the boot ends, across lost connections."""
        what = f"console of run {run_id}, boot {boot_id}"
        failures, lost_at = 0, None
        while True:
            params: Params = {"boot": boot_id, "offset": offset, "follow": "true" if follow else None}
            try:
                with self._transport.stream(f"{API}/runs/{run_id}/console", what=what, params=params) as response:
                    failures, lost_at = 0, None
                    for chunk in response.iter_bytes():
                        offset += len(chunk)
                        yield chunk
                return
            except LabUnavailable as error:
                if follow and isinstance(error, StreamSilent):
                    continue  # a device may print nothing for a minute
                failures += 1
                now = time.monotonic()
                lost_at = now if lost_at is None else lost_at
                limit_reached = now - lost_at > give_up_s if follow else failures >= self._transport.retry.attempts
                if limit_reached:
                    raise
                self._transport.wait(self._transport.retry.wait_s(failures), error.summary)

    def samples(self, run_id: int) -> list[SampleRow]:
        path = f"{API}/runs/{run_id}/samples"
        return self._get(list[SampleRow], path, f"samples of run {run_id}", {"format": "json"})

    def samples_csv(self, run_id: int) -> str:
        """Return the run's samples as CSV, the input format of `wqlab compare`."""
        response = self._transport.call(
            "GET",
            f"{API}/runs/{run_id}/samples",
            what=f"samples of run {run_id}",
            params={"format": "csv"},
            headers={"Accept": "text/csv"},
        )
        return response.text

    def run_artifacts(self, run_id: int) -> list[Artifact]:
        """Return the artifacts of the run's boots, such as the raw output of the plan's script."""
        return self._get(list[Artifact], f"{API}/runs/{run_id}/artifacts", f"artifacts of run {run_id}")

    def run_artifact(self, run_id: int, artifact: Artifact) -> bytes:
        """Return an artifact's bytes, at most a few MiB. Raises LabUnavailable if their SHA-256 is wrong."""
        what = f"artifact {artifact.name} of run {run_id}"
        path = f"{API}/runs/{run_id}/artifacts/{artifact.sha256}"
        response = self._transport.call("GET", path, what=what, headers={"Accept": "*/*"})
        if hashlib.sha256(response.content).hexdigest() != artifact.sha256:
            raise LabUnavailable(
                f"{what}: the downloaded file does not match the announced size and SHA-256", "try again"
            )
        return response.content
