"""Offers of free devices to queued runs."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeviceHealth, JobKind
from wqlab_server.models import Device, Lease
from wqlab_server.pipeline.assign_devices import assign_devices
from wqlab_server.storage.db import fetch_dict

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def offers(lab: LabUnderTest) -> dict[int, str]:
    """Return run -> device of the offers."""
    with lab.transaction() as session:
        return fetch_dict(session, select(Lease.run_id, Lease.device_name))


def test_free_device_is_offered_once_and_its_lab_is_notified(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    assert offers(lab) == {}, "no device is good yet"
    lab.mark_all_good()
    assert assign_devices(lab.sessions, lab.settings) == 1
    (run,) = lab.runs(submission_id)
    assert offers(lab) == {run.id: "single-1"}
    assert [message.id for message in lab.sent if message.task == JobKind.RUN] == [run.id]
    assert assign_devices(lab.sessions, lab.settings) == 0


def test_run_waits_while_every_device_is_suspect(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    with lab.transaction() as session:
        for device in session.scalars(select(Device)):
            device.health = DeviceHealth.SUSPECT
    assert assign_devices(lab.sessions, lab.settings) == 0
