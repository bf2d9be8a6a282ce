"""A volume without space: the tests of `full_volume_cases.py` run on a small tmpfs, so that ENOSPC is the kernel's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

VOLUME_BYTES = 4 << 20


def test_lab_on_a_full_volume(tmp_path: Path) -> None:
    (volume := tmp_path / "volume").mkdir()
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", str(VOLUME_BYTES), "--tmpfs", volume),
            *("--setenv", "WQLAB_TEST_VOLUME", volume, "--setenv", "WQLAB_TEST_VOLUME_BYTES", str(VOLUME_BYTES)),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            Path(__file__).with_name("full_volume_cases.py"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout, "the cases ran"
    assert "skipped" not in done.stdout
