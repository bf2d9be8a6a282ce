"""Jobs and console storage of runs."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.specs import Emulation
from wqlab_server.models import Apply, ConsoleChunk, Device, Run
from wqlab_server.runs.service import make_job

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_console_chunks_may_overlap_but_leave_no_gap(lab: LabUnderTest, run: RunSession) -> None:
    key = run.first_key
    run.send(run.boot_events(key)[0])
    assert run.console(key, 0, b"hello ")["next_offset"] == 6
    assert run.console(key, 0, b"hello ")["next_offset"] == 6, "a repeated chunk"
    assert run.console(key, 10, b"later")["next_offset"] == 6, "a gap: send from 6"
    assert run.console(key, 4, b"o world\x00\xff") == {"next_offset": 13, "truncated": False}
    with lab.transaction() as session:
        chunks = session.scalars(select(ConsoleChunk.data).order_by(ConsoleChunk.offset)).all()
    assert b"".join(chunks) == b"hello world\x00\xff"


def test_console_above_the_size_limit_is_truncated(lab: LabUnderTest, run: RunSession) -> None:
    object.__setattr__(lab.settings, "console_limit", 8)
    key = run.first_key
    run.send(run.boot_events(key)[0])
    assert run.console(key, 0, b"123456") == {"next_offset": 6, "truncated": False}
    assert run.console(key, 6, b"7890") == {"next_offset": 8, "truncated": True}
    assert run.console(key, 8, b"90") == {"next_offset": 8, "truncated": True}


def test_console_above_the_rate_limit_is_truncated(lab: LabUnderTest, run: RunSession) -> None:
    object.__setattr__(lab.settings, "console_rate", 16)
    key = run.first_key
    run.send(run.boot_events(key)[0])
    answer = run.console(key, 0, b"x" * 1000)
    assert answer["truncated"] is True
    assert 16 <= answer["next_offset"] < 1000


def test_job_has_one_kernel_per_arm(run: RunSession) -> None:
    assert set(run.job.kernels) == set(PAIR)
    assert run.job.kernels[Arm.BASELINE].build_id_gnu != run.job.kernels[Arm.CANDIDATE].build_id_gnu


def test_job_of_an_instrumented_device_names_the_functions_of_the_series(lab: LabUnderTest, run: RunSession) -> None:
    assert run.job.touched == []
    with lab.transaction() as session:
        row = session.get_one(Run, run.job.run_id)
        apply = session.scalars(select(Apply).where(Apply.submission_id == row.submission_id)).one()
        assert apply.result is not None
        apply.result = apply.result.model_copy(update={"touched": ["flush_one"]})
        row.device_spec = row.device_spec.model_copy(
            update={"emulation": Emulation(memory_mib=512, clock="instruction")}
        )
        session.flush()
        device = session.get_one(Device, row.device_name)
        assert make_job(session, row, device).touched == ["flush_one"]
