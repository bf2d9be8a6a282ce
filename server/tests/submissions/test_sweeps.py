"""Submissions with a sweep: validation, targets, devices, retry and quote."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import DeviceHealth, Outcome, SubmissionState
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import Target
from wqlab_server.http.problems import ApiProblem
from wqlab_server.lab.service import change_pool, pool_changes
from wqlab_server.models import Device, Submission
from wqlab_server.submissions import service
from wqlab_server.submissions.quote_service import make_quote
from wqlab_server.submissions.validate import mistakes

from ..support.datafolder import add_instrumented
from ..support.lab import SERIES, LabUnderTest

SWEEP = {"vary": "l3", "values": [1, 2, 4], "base": {"cpus": 8}}
NAMES = ["instrumented-8c-1l3-1n", "instrumented-8c-2l3-1n", "instrumented-8c-4l3-1n"]

pytestmark = pytest.mark.integration


@pytest.fixture
def counting(lab: LabUnderTest) -> LabUnderTest:
    """Return a lab with an instrumented device type."""
    add_instrumented(lab.settings.data_dir)
    lab.app.state.data._checked_at = float("-inf")
    assert lab.data.generated_lab == "local"
    return lab


def get(lab: LabUnderTest, path: str) -> Any:
    response = lab.client.get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {lab.token}"})
    assert response.status_code == 200, response.text
    return response.json()


def request(*targets: dict[str, Any], sweep: dict[str, Any] | None = SWEEP, **more: Any) -> SubmissionRequest:
    content = {"series": SERIES, "tree": "lab-tree", "targets": list(targets) or [{"plan": "locks"}], "sweep": sweep}
    return SubmissionRequest.model_validate(content | more)


def found(lab: LabUnderTest, asked: SubmissionRequest) -> dict[str, str]:
    return {each["pointer"]: each["detail"] for each in mistakes(asked, lab.data)}


def test_each_point_is_a_target_with_a_run_of_its_own(counting: LabUnderTest) -> None:
    response = counting.client.post(
        "/api/v1/submissions",
        json=request().model_dump(mode="json"),
        headers={"Authorization": f"Bearer {counting.token}"},
    )
    assert response.status_code == 201, response.text
    view = response.json()
    assert [each["device_type"] for each in view["request"]["targets"]] == NAMES
    assert view["request"]["sweep"] == SWEEP | {
        "base": {"cpus": 8, "l3": None, "nodes": None, "shard": None}, "costs": None,
    }  # fmt: skip
    runs = counting.runs(view["id"])
    assert [(run.target, run.device_type, run.plan.is_instrumented) for run in runs] == [
        (index, name, True) for index, name in enumerate(NAMES)
    ]
    assert [run.device_spec.topology.l3_domains for run in runs] == [1, 2, 4]


def test_tick_adds_the_devices_and_keeps_them(counting: LabUnderTest) -> None:
    """The next tick creates the devices. A reload of the files, or a restart, neither removes nor changes them."""
    with counting.transaction() as session:
        submission = service.create(session, counting.data, counting.settings, request(), "dev")
        session.flush()
        changes = pool_changes(session, counting.data)
        assert [change.name for change in changes] == ["counted-1", *(f"{name}-1" for name in NAMES)]
        for change in changes:
            change_pool(session, change)
    assert counting.device(f"{NAMES[0]}-1").backend == "instrumented"
    counting.mark_all_good()
    with counting.transaction() as session:
        for run in counting.runs(submission.id):
            session.delete(session.merge(run))
    with counting.transaction() as session:
        assert pool_changes(session, load_data(counting.settings.data_dir)) == [], "known by their devices alone"
    assert counting.device(f"{NAMES[0]}-1").health is DeviceHealth.GOOD


def test_devices_go_with_the_last_instrumented_type(counting: LabUnderTest) -> None:
    with counting.transaction() as session:
        service.create(session, counting.data, counting.settings, request(), "dev")
        session.flush()
        for change in pool_changes(session, counting.data):
            change_pool(session, change)
    (counting.settings.data_dir / "device-types/counted.yaml").unlink()
    with counting.transaction() as session:
        changes = pool_changes(session, load_data(counting.settings.data_dir))
        assert {change.name for change in changes if change.facts is None} == {"counted-1", *(f"{n}-1" for n in NAMES)}


def test_two_sweeps_share_the_device_of_a_common_point(counting: LabUnderTest) -> None:
    other = request(sweep={"vary": "cpus", "values": [4, 8], "base": {"l3": 2}})
    with counting.transaction() as session:
        for asked in (request(), other):
            service.create(session, counting.data, counting.settings, asked, "dev")
        session.flush()
        for change in pool_changes(session, counting.data):
            change_pool(session, change)
        types = session.scalars(select(Device.device_type).where(Device.backend == "instrumented")).all()
    assert sorted(types) == sorted(["counted", *NAMES, "instrumented-4c-2l3-1n"])


def test_lab_that_cannot_emulate_its_types_refuses_generated_ones(counting: LabUnderTest) -> None:
    with counting.transaction() as session:
        service.create(session, counting.data, counting.settings, request(), "dev")
        session.flush()
        for change in pool_changes(session, counting.data):
            change_pool(session, change)
    reason = "counted: no qemu-system-x86_64; install the package qemu-system-x86"
    counting.worker.post("labs/local/capacity", {"capacity": 2, "refused": {"counted": reason}}, 204)
    device = counting.device(f"{NAMES[0]}-1")
    assert (device.health, device.health_reason) == (DeviceHealth.QUARANTINED, f"{reason} (lab local)")
    counting.worker.post("labs/local/capacity", {"capacity": 2, "refused": {}}, 204)
    assert counting.device(f"{NAMES[0]}-1").health is DeviceHealth.UNKNOWN


def test_settings_study_over_a_sweep_has_a_short_title(counting: LabUnderTest) -> None:
    study = request({"plan": "affinity"}, series=None).model_copy(update={"sweep": request().sweep})
    with counting.transaction() as session:
        (counting.settings.data_dir / "testplans/affinity/run.sh").write_text("run_fio\n")
        data = load_data(counting.settings.data_dir)
        made = service.create(session, data, counting.settings, study, "dev")
        assert made.title == "settings study: affinity over l3=1,2,4"


def test_retry_measures_the_same_points(counting: LabUnderTest) -> None:
    with counting.transaction() as session:
        first = service.create(session, counting.data, counting.settings, request(), "dev")
        first.state, first.outcome = SubmissionState.FINISHED, Outcome.CANCELED
        session.flush()
        again = service.retry(session, counting.data, counting.settings, first.id, "dev")
        assert again.request == first.request
    assert [run.device_type for run in counting.runs(again.id)] == NAMES


def test_idempotency_key_finds_the_submission_of_a_sweep(counting: LabUnderTest) -> None:
    with counting.transaction() as session:
        made = [
            service.create(session, counting.data, counting.settings, request(), "dev", idempotency_key="ci-7").id
            for _ in range(2)
        ]
    assert made[0] == made[1]
    other = request(sweep=SWEEP | {"values": [1, 2]})
    with counting.transaction() as session, pytest.raises(ApiProblem, match="used for another request"):
        service.create(session, counting.data, counting.settings, other, "dev", idempotency_key="ci-7")


def test_generated_type_is_a_target_like_any_other(counting: LabUnderTest) -> None:
    number = counting.submit(f"locks@{NAMES[1]}")
    with counting.transaction() as session:
        assert session.get_one(Submission, number).request.sweep is None
    wrong = request({"plan": "locks", "device_type": "instrumented-8c-3l3-1n"}, sweep=None)
    assert found(counting, wrong)["/targets/0/device_type"].startswith(
        "no device type 'instrumented-8c-3l3-1n'; cpus=8 do not divide into l3=3"
    )


@pytest.mark.parametrize(
    ("asked", "pointer", "detail"),
    [
        (request(sweep=SWEEP | {"values": [1, 3]}), "/sweep/values/1", "cpus=8 do not divide into l3=3"),
        (request(sweep=SWEEP | {"values": [4]}), "/sweep/values", "l3 has 1 value"),
        (request(sweep=SWEEP | {"costs": "x"}), "/sweep/costs", "no cost profile device-types/costs/x.yaml"),
        (
            request({"plan": "locks", "device_type": "single"}),
            "/targets/0/device_type",
            "single is no point of the sweep, which chooses instrumented device types itself; leave the device type "
            "out (--target locks), or submit this target without the sweep",
        ),
        (
            request({"plan": "affinity"}),
            "/targets/0/plan",
            "plan affinity marks no window in which an instrumented device counts, so a sweep of it has no figures; "
            "choose one of locks",
        ),
        (request({"plan": "health-check"}), "/targets/0/plan", "plan health-check compares no kernels"),
        (request({"plan": "lock"}), "/targets/0/plan", "no plan 'lock'; did you mean locks?"),
        (request({"plan": "locks"}, {"plan": "locks"}), "/targets/1", "locks is already target 0"),
        (request({"plan": "locks"}, sweep=None), "/targets/0/device_type", "no device type is given"),
        (request(backend="labgrid"), "/backend", "has no device with backend labgrid, only with instrumented"),
        (
            request({"plan": "locks", "scenarios": ["nothing"]}),
            "/targets/0/scenarios/0",
            "plan locks has no scenario 'nothing'",
        ),
    ],
)
def test_mistakes_name_the_thing_and_the_fix(
    counting: LabUnderTest, asked: SubmissionRequest, pointer: str, detail: str
) -> None:
    assert detail in found(counting, asked)[pointer]


def test_number_of_targets_is_limited_with_the_points(counting: LabUnderTest) -> None:
    asked = request(sweep={"vary": "cpus", "values": [4, 8, 12, 16, 20, 24, 28, 32]})
    assert found(counting, asked) == {}
    many = asked.model_copy(update={"targets": [Target(plan=f"plan-{number}") for number in range(5)]})
    assert found(counting, many)["/sweep/values"].startswith("40 targets with this sweep; a submission has at most 32")


def test_lab_without_an_instrumented_type_has_no_sweeps(lab: LabUnderTest) -> None:
    detail = found(lab, request())["/sweep"]
    assert "no instrumented x86-64 device type" in detail
    assert "instrumented-tiny.yaml" in detail


def test_quote_has_a_line_for_each_point(counting: LabUnderTest) -> None:
    with counting.transaction() as session:
        quote = make_quote(session, counting.data, counting.settings, request(), "dev")
        assert quote.errors == []
        assert [(each.index, each.device_type, each.blocks) for each in quote.targets] == [(0, n, 10) for n in NAMES]
        assert all("3 tests share the level of 5 %" in each.notes[0] for each in quote.targets)
        assert [each.device_counts.unknown for each in quote.targets] == [1, 1, 1], "the next tick adds the devices"
        assert not any("no run can start" in note for each in quote.targets for note in each.notes)
        wrong = make_quote(session, counting.data, counting.settings, request(sweep=SWEEP | {"values": [1, 3]}), "dev")
    assert wrong.targets == []
    assert [error.pointer for error in wrong.errors] == ["/sweep/values/1"]


def test_device_types_list_generated_types_that_were_used(counting: LabUnderTest) -> None:
    assert not any(each["generated"] for each in get(counting, "device-types"))
    counting.submit(*(f"locks@{name}" for name in NAMES))
    listed = get(counting, "device-types")
    assert [each["name"] for each in listed if each["generated"]] == NAMES
    assert [each["name"] for each in listed][-3:] == NAMES, "behind the types of the folder"
    assert [each["topology"]["l3_per_socket"] for each in listed][-3:] == [1, 2, 4]
