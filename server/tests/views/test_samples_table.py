"""Samples of a run as a table."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import Arm
from wqlab_server.models import Run
from wqlab_server.storage.db import transaction
from wqlab_server.views.samples_table import samples_of

from ..support.scene import Scene

pytestmark = pytest.mark.integration


def test_table_has_all_samples_of_valid_boots(scene: Scene) -> None:
    scene.devices()
    run_id = scene.measured(scene.submission(), {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.boot(run_id, block=1, attempt=7, valid=False, values={"locks": 1.0})
    scene.boot(run_id, block=1, attempt=8, values={"undefined": 1.0})
    with transaction(scene.sessions) as session:
        samples = samples_of(session, session.get_one(Run, run_id))
    assert samples is not None
    assert len(samples) == 4 * 2 * 2 * 3, "boots, metrics, settings, repetitions"
    assert set(samples.metric.words) == {"locks", "bw"}
    assert samples.value.min() == 5.0


def test_run_without_samples_has_no_table(scene: Scene) -> None:
    scene.devices()
    run_id = scene.run_id(scene.submission())
    with transaction(scene.sessions) as session:
        assert samples_of(session, session.get_one(Run, run_id)) is None
