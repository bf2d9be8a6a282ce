"""Whose series a device starts: its rule counts when a run starts, and for whom a series is."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DecisionReason, DecisionState, ErrorKind, JobKind, Outcome
from wqlab_contracts.messages import ClaimRequest
from wqlab_server.jobs.errors import NotClaimable
from wqlab_server.jobs.kinds import Context
from wqlab_server.jobs.protocol import claim
from wqlab_server.pipeline.job_kinds import KINDS
from wqlab_server.storage.live_data import LiveData

from ..support.datafolder import ARCHIVES, FILES, write_data_folder
from ..support.lab import LabUnderTest
from ..support.watched_list import EPOCHS, List, mails

pytestmark = pytest.mark.integration

OPEN = FILES["device-types/single.yaml"]


def named(*people: str) -> str:
    """Return the file of a device that only takes the series of `people`."""
    return OPEN.replace("{name: single-1}", f"{{name: single-1, series_of: named, people: [{', '.join(people)}]}}")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_data_folder(folder)
    return folder


def restrict(lab: LabUnderTest, data_dir: Path, *people: str) -> None:
    """Let the operator restrict the device while the server runs; the server reads the change at once."""
    (data_dir / "device-types/single.yaml").write_text(named(*people))
    lab.app.state.data = LiveData(data_dir)


def waiting(lab: LabUnderTest) -> int:
    """Return a submission whose run waits until its device is good."""
    number = lab.submit("locks@single", owner="mallory")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    return number


def test_a_waiting_run_ends_when_its_device_becomes_stricter(lab: LabUnderTest, data_dir: Path) -> None:
    number = waiting(lab)
    restrict(lab, data_dir, "ada")
    lab.mark_all_good()
    done = lab.finished(number)
    assert done.outcome is Outcome.FAILED and not lab.worker.runs
    (run,) = lab.runs(number)
    assert run.failure is not None and run.failure.kind is ErrorKind.USER
    assert "single-1 of single takes only" in run.failure.summary


def test_a_run_that_is_offered_does_not_start_on_a_stricter_device(lab: LabUnderTest, data_dir: Path) -> None:
    number = waiting(lab)
    lab.mark_all_good()
    lab.work(ADVANCE)
    lab.tick()
    (run,) = lab.runs(number)
    assert run.device_name == "single-1"
    restrict(lab, data_dir, "ada")
    context = lab.app.state
    with lab.transaction() as session, pytest.raises(NotClaimable, match="takes only"):
        claim(Context(session, context.settings, context.data), KINDS, run.id, ClaimRequest(worker="w", lab="local"))


def test_a_named_person_and_an_open_device_wait_on(lab: LabUnderTest, data_dir: Path) -> None:
    number = waiting(lab)
    restrict(lab, data_dir, "mallory")
    lab.mark_all_good()
    assert lab.finished(number).outcome is Outcome.PASSED


class TestOnBehalf:
    """What a rule takes from a list is the series of whoever mailed it, not of the rule's owner."""

    @pytest.fixture
    def data_dir(self, tmp_path: Path) -> Path:
        folder = tmp_path / "data"
        write_data_folder(folder)
        (folder / "intake/archives.yaml").write_text(ARCHIVES + EPOCHS + "    dkim_checked: true\n")
        return folder

    def test_a_rule_of_a_named_person_opens_no_device(self, lab: LabUnderTest, data_dir: Path) -> None:
        restrict(lab, data_dir, "dev")
        wq = List(lab)
        wq.watch()
        wq.arrive(*mails())
        assert wq.submissions() == []
        row = wq.decision()
        assert (row.state, row.reason) == (DecisionState.NOT_TAKEN, DecisionReason.INVALID)
        assert "single-1 of single takes only" in row.detail

    def test_a_waiting_series_of_a_rule_is_not_its_owners(self, lab: LabUnderTest, data_dir: Path) -> None:
        wq = List(lab)
        wq.watch()
        wq.arrive(*mails())
        (made,) = wq.submissions()
        lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
        restrict(lab, data_dir, "dev")
        lab.tick()
        (run,) = lab.runs(made.id)
        assert run.outcome is Outcome.FAILED
