"""The tests of a file run in one process, so that a fixture of the file is set up once."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("test", range(12))
def test_file_has_one_process(test: int, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    if worker_id == "master":
        pytest.skip("this run has one process")
    record = tmp_path_factory.getbasetemp().parent / "processes-of-one-file"  # common to the processes of a run
    with record.open("a") as file:
        file.write(f"{worker_id}\n")
    assert set(record.read_text().split()) == {worker_id}
