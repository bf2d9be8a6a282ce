"""Calls that read reports and signed bundles."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LabUnavailable
from .connection import API, Connection
from .submissions import submission_path

if TYPE_CHECKING:
    from wqlab_contracts.api.report import Report

KEY_BYTES = 10_000
"""Bytes of the response that are read; a public key is much shorter."""


class ReportFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    MMTESTS = "mmtests"
    KCIDB = "kcidb"
    PROFILE = "profile"
    MAIL = "mail"


class ReportCalls(Connection):
    """Calls on reports and bundles."""

    def report(self, submission_id: int) -> Report:
        from wqlab_contracts.api.report import Report

        path, what = submission_path(submission_id)
        return self._get(Report, f"{path}/report", f"report of {what}", {"format": ReportFormat.JSON})

    def report_text(self, submission_id: int, report_format: ReportFormat) -> str:
        """Return the report as the server renders it."""
        path, what = submission_path(submission_id)
        response = self._transport.call(
            "GET",
            f"{path}/report",
            what=f"report of {what}",
            params={"format": report_format},
            headers={"Accept": "*/*"},
        )
        return response.content.decode("utf-8", errors="replace")

    def bundle(self, submission_id: int, target: Path, *, kernels: bool = False) -> int:
        """Save the bundle of a finished submission as `target` and return its size in bytes.

        `target` is created only when the whole bundle has been received. Raises LabUnavailable if it ends early.
        """
        path, what = submission_path(submission_id)
        staged = target.with_name(f".{target.name}.{os.getpid()}.part")
        size = 0
        try:
            with (
                self._transport.stream(
                    f"{path}/bundle", what=f"bundle of {what}", params={"kernels": "true" if kernels else None}
                ) as response,
                staged.open("wb") as file,
            ):
                for chunk in response.iter_bytes():
                    size += file.write(chunk)
            _check_complete(staged, what)
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)
        return size

    def lab_key(self) -> str:
        """Return the public key that signs the lab's bundles, in the format of OpenSSH: `ssh-ed25519 BASE64 NAME`."""
        content = b""
        with self._transport.stream(f"{API}/lab-key", what="the lab's key") as response:
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > KEY_BYTES:
                    break
        return content[:KEY_BYTES].decode("utf-8", errors="replace")


def _check_complete(staged: Path, what: str) -> None:
    """Raise LabUnavailable if the file is no whole bundle: the server ends a stream when the token is revoked."""
    from ..replay.archive import BundleError, open_bundle

    try:
        with open_bundle(staged):
            pass
    except BundleError as error:
        reason = error.summary.removeprefix(f"{staged}: ")
        raise LabUnavailable(f"bundle of {what}: the download is incomplete ({reason})", "download it again") from None
