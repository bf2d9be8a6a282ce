"""Pack the source files of a kernel, so that its reports can show the lines that they are about."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import structlog

from ..sandbox import MIB, TOOLS, Sandbox
from .build_log import SOURCE
from .reproduce import BUILD, OUT

log = structlog.get_logger()

NAME = "sources.zip"
LIMIT = 64 * MIB
"""Largest archive in bytes; that of a `measure` kernel has 14 MiB."""
TIME_LIMIT_S = 120.0


def pack(sandbox: Sandbox) -> None:
    """Write OUT/sources.zip in the `sandbox` that has built a kernel.

    A build without it is usable: reports then show no source. Raises InfrastructureError if the sandbox cannot be set
    up.
    """
    script = Path(__file__).with_name("pack_sources.py")
    packing = replace(
        sandbox,
        read_only={**sandbox.read_only, "/pack.py": script},
        limits=replace(sandbox.limits, wall_s=TIME_LIMIT_S, log_bytes=64 << 10),
    )
    output = io.BytesIO()
    finished = packing.run(
        [f"{TOOLS}/bin/python", "-I", "/pack.py", SOURCE, BUILD, f"{OUT}/{NAME}", str(LIMIT)], log=output
    )
    if finished.exit_code or finished.stopped:
        log.warning(
            "source files not packed",
            exit_code=finished.exit_code,
            stopped=finished.stopped,
            output=output.getvalue()[-500:].decode(errors="replace"),
        )
