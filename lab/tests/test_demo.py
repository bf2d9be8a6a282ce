"""The demo waits for the emulator of modelled devices."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wqlab_lab.demo import wait_for_model


@pytest.mark.parametrize(("status", "built"), [(0, True), (4, False)])
def test_wait_reports_what_the_build_prints_and_how_it_ends(tmp_path: Path, status: int, built: bool) -> None:
    builder = tmp_path / "python"
    builder.write_text(f'#!/bin/sh\necho "$@"\necho building\nexit {status}\n')
    builder.chmod(0o755)
    paths = cast("Any", SimpleNamespace(environment=lambda: {"PATH": f"{tmp_path}:/usr/bin:/bin"}))
    lines: list[str] = []
    assert wait_for_model(paths, lines.append) is built
    assert lines == ["-u -m wqlab_bench.model.build_qemu", "building"]
