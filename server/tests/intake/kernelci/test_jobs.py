"""Jobs from KernelCI's scheduler: claimed, measured and reported once, also after crashes and lost answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.messages import Failure
from wqlab_server.intake.kernelci import poll as poll_module
from wqlab_server.intake.kernelci.api import KernelCi, KernelCiError, NotFound, Refused
from wqlab_server.models import KernelCiCursor, KernelCiJob, Submission
from wqlab_server.models.kernelci import KernelCiState
from wqlab_server.pipeline import kernelci
from wqlab_server.storage.db import transaction
from wqlab_server.storage.live_data import LiveData

from ...support.lab import LabUnderTest
from .fake_api import COMMIT, RUNTIME, TOKEN, KernelCiApi, job_definition

pytestmark = pytest.mark.integration

RULES = """\
trees: {mainline: {tree: lab-tree, base: v6.17}}
tests: {wqlab-locks: {plan: locks}, wqlab-none: {plan: no-such-plan}}
platforms: {board: single}
"""


@pytest.fixture
def api() -> Iterator[KernelCiApi]:
    with KernelCiApi() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Intake:
    """A lab that takes jobs from `api`."""

    def __init__(self, lab: LabUnderTest, api: KernelCiApi, folder: Path) -> None:
        (folder / "token").write_text(f"{TOKEN}\n")
        (folder / "kernelci.yaml").write_text(RULES)
        self.lab, self.api = lab, api
        self.settings = lab.settings.model_copy(
            update={
                "kernelci_url": api.url,
                "kernelci_token_file": folder / "token",
                "kernelci_runtime": RUNTIME,
                "kernelci_jobs_file": folder / "kernelci.yaml",
            }
        )
        self.data = LiveData(lab.settings.data_dir)

    def poll(self) -> None:
        """Poll when everything is due."""
        with transaction(self.lab.sessions) as session:
            session.execute(update(KernelCiJob).values(due_at=func.now() - timedelta(seconds=1)))
        assert kernelci.poll(self.lab.sessions, self.settings, self.data)

    def job(self, node_id: str) -> KernelCiJob:
        with transaction(self.lab.sessions) as session:
            return session.get_one(KernelCiJob, node_id)

    def submissions(self) -> list[Submission]:
        with transaction(self.lab.sessions) as session:
            return list(session.scalars(select(Submission).order_by(Submission.id)))


@pytest.fixture
def intake(lab: LabUnderTest, api: KernelCiApi, tmp_path: Path) -> Intake:
    lab.mark_all_good()
    return Intake(lab, api, tmp_path)


def test_job_is_claimed_measured_and_reported(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    before = dict(api.nodes[node_id])
    intake.poll()
    (submission,) = intake.submissions()
    assert submission.owner == "kernelci"
    assert submission.request.series is not None
    assert submission.request.series.git is not None
    assert submission.request.series.git.ref == COMMIT
    assert [(target.plan, target.device_type) for target in submission.request.targets] == [("locks", "single")]
    claimed = api.nodes[node_id]
    assert (claimed["state"], claimed["data"]["job_id"]) == ("available", intake.job(node_id).job_id)
    assert intake.job(node_id).state is KernelCiState.RUNNING
    intake.lab.finished(submission.id)
    intake.poll()
    done = api.nodes[node_id]
    assert done["state"] == "done"
    assert done["result"] == intake.job(node_id).result
    assert done["data"]["misc"]["wqlab"]["report"] == f"http://lab.test/r/{submission.id}"
    for field in ("created", "timeout", "treeid", "retry_counter", "parent", "path", "artifacts"):
        assert done[field] == before[field], "a PUT must not reset what it does not change"
    assert done["data"]["kernel_revision"] == before["data"]["kernel_revision"]
    assert intake.job(node_id).state is KernelCiState.REPORTED
    stored = [authorization for _, path, authorization in api.requests if path.startswith("/pull_labs_jobs/")]
    assert stored == [None], "the token is not sent to the storage"


def test_job_is_done_once(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    for _ in range(3):
        intake.poll()
    api.publish(api.nodes[node_id])
    intake.poll()
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    for _ in range(3):
        intake.poll()
    assert len(intake.submissions()) == 1
    assert [method for method, _, _ in api.requests].count("PUT") == 2, "claim and result"


def test_jobs_of_others_are_left_alone(intake: Intake, api: KernelCiApi) -> None:
    api.schedule(1, runtime="lava-somewhere")
    api.schedule(2, job_id="another-lab:7")
    ended = api.schedule(3)
    api.nodes[ended]["state"] = "done"
    gone = api.schedule(4)
    del api.nodes[gone]
    bare = api.schedule(5)
    api.nodes[bare]["artifacts"] = None
    intake.poll()
    assert intake.submissions() == []
    assert not [method for method, _, _ in api.requests if method == "PUT"]


def test_lost_answers_repeat_nothing(intake: Intake, api: KernelCiApi) -> None:
    """KernelCI did what was asked, and the lab did not hear of it: as if it had crashed in between."""
    node_id = api.schedule()
    api.drop_answers_to = "PUT"
    intake.poll()
    assert intake.job(node_id).state is KernelCiState.SEEN
    assert api.nodes[node_id]["data"]["job_id"] == intake.job(node_id).job_id
    intake.poll()
    assert intake.job(node_id).state is KernelCiState.RUNNING
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    api.drop_answers_to = "PUT"
    intake.poll()
    assert api.nodes[node_id]["state"] == "done"
    assert intake.job(node_id).state is KernelCiState.REPORTING
    assert "no connection" in intake.job(node_id).problem
    puts = len([method for method, _, _ in api.requests if method == "PUT"])
    intake.poll()
    assert intake.job(node_id).state is KernelCiState.REPORTED
    assert len([method for method, _, _ in api.requests if method == "PUT"]) == puts


def test_another_lab_that_claims_at_the_same_time_keeps_the_job(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    api.after_put = lambda node: node["data"].update(job_id="another-lab:7")
    intake.poll()
    assert intake.submissions() == []
    job = intake.job(node_id)
    assert (job.state, job.reason) == (KernelCiState.LOST, "claimed by another-lab:7")
    assert api.nodes[node_id]["state"] == "available"


@pytest.mark.parametrize(
    ("definition", "data", "reason"),
    [
        (job_definition(environment={"platform": "rpi"}), {}, "no rule for platform 'rpi'; there are: board"),
        (job_definition(tests=[{"id": "ltp", "type": "ltp"}]), {}, "no rule for test 'ltp'"),
        (job_definition(tests=[{"id": "wqlab-none", "type": "wqlab"}]), {}, "no plan 'no-such-plan'"),
        (b"job_name: a LAVA job\n", {}, "did not answer with JSON"),
        (b"[]", {}, "the job definition is not a JSON object"),
        (b" " * ((1 << 20) + 1), {}, "sent more than 1048576 bytes"),
        (None, {"kernel_revision": None}, "no kernel revision with url, tree and commit"),
    ],
)
def test_reason_why_a_job_cannot_be_done_is_written_back(
    intake: Intake, api: KernelCiApi, definition: Any, data: dict[str, Any], reason: str
) -> None:
    node_id = api.schedule(definition=definition, **data)
    intake.poll()
    node, job = api.nodes[node_id], intake.job(node_id)
    assert (node["state"], node["result"]) == ("done", "incomplete")
    assert node["data"]["error_code"] == "invalid_job_params"
    assert reason in node["data"]["error_msg"]
    assert (job.state, job.reason) == (KernelCiState.REPORTED, node["data"]["error_msg"])
    assert intake.submissions() == []


def test_definition_that_cannot_be_fetched_is_an_infrastructure_error(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    api.files.clear()
    for attempt in range(1, 8):
        intake.poll()
        job = intake.job(node_id)
        assert (job.state, job.attempts) == (KernelCiState.CLAIMED, attempt)
        assert "answered 404" in job.problem
    intake.poll()
    assert api.nodes[node_id]["data"]["error_code"] == "Infrastructure"
    assert "the job definition cannot be fetched" in intake.job(node_id).reason


def finish_by_timeout(api: KernelCiApi, node_id: str, **more: Any) -> None:
    """End the node as KernelCI's timeout service does."""
    node = api.nodes[node_id]
    node |= {"state": "done", "result": "incomplete"} | more
    node["data"] |= {"error_code": "node_timeout", "error_msg": "Node timed-out"} if not more else {}


def test_result_that_comes_after_kernelcis_timeout_replaces_it(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    intake.poll()
    finish_by_timeout(api, node_id)
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    intake.poll()
    node = api.nodes[node_id]
    assert node["result"] == intake.job(node_id).result != "incomplete"
    assert node["data"]["error_code"] is None


def test_job_that_kernelci_ended_is_lost(intake: Intake, api: KernelCiApi) -> None:
    first, second = api.schedule(1), api.schedule(2)
    intake.poll()
    finish_by_timeout(api, first, result="fail")
    del api.nodes[second]
    for submission in intake.submissions():
        intake.lab.finished(submission.id)
    intake.poll()
    assert intake.job(first).reason == "KernelCI ended the job: fail"
    assert "Node not found" in intake.job(second).reason
    assert {intake.job(each).state for each in (first, second)} == {KernelCiState.LOST}


def test_lab_failure_is_incomplete(intake: Intake, api: KernelCiApi) -> None:
    node_id = api.schedule()
    intake.poll()
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the device lost power")
    with transaction(intake.lab.sessions) as session:
        session.get_one(Submission, submission.id).failure = lost
    intake.poll()
    node = api.nodes[node_id]
    assert (node["result"], node["data"]["error_code"]) == ("incomplete", "Infrastructure")
    assert node["data"]["error_msg"] == "the device lost power"


def test_public_lab_links_its_report(intake: Intake, api: KernelCiApi) -> None:
    intake.settings = intake.settings.model_copy(update={"public_reading": True})
    node_id = api.schedule()
    intake.poll()
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    intake.poll()
    assert api.nodes[node_id]["artifacts"]["test_log"] == f"http://lab.test/r/{submission.id}.txt"
    assert api.nodes[node_id]["artifacts"]["job_definition"].endswith(".json")


def test_quota_lets_jobs_wait(intake: Intake, api: KernelCiApi) -> None:
    intake.settings = intake.settings.model_copy(update={"quota_waiting": 1})
    nodes = [api.schedule(number) for number in (1, 2)]
    intake.poll()
    assert [intake.job(each).state for each in nodes] == [KernelCiState.RUNNING, KernelCiState.CLAIMED]
    assert intake.job(nodes[1]).problem.startswith("waiting: ")
    intake.lab.finished(intake.submissions()[0].id)
    intake.poll()
    assert intake.job(nodes[1]).state is KernelCiState.RUNNING


def test_api_that_is_down_loses_nothing(intake: Intake, api: KernelCiApi) -> None:
    first = api.schedule(1)
    intake.poll()
    (submission,) = intake.submissions()
    intake.lab.finished(submission.id)
    second = api.schedule(2)
    api.down = True
    with pytest.raises(KernelCiError, match="answered 503: down"):
        intake.poll()
    assert intake.job(first).state is KernelCiState.REPORTING
    api.down = False
    intake.poll()
    assert intake.job(first).state is KernelCiState.REPORTED
    assert intake.job(second).state is KernelCiState.RUNNING


def test_token_without_rights_is_explained(intake: Intake, api: KernelCiApi) -> None:
    api.groups.clear()
    node_id = api.schedule()
    intake.poll()
    job = intake.job(node_id)
    assert job.state is KernelCiState.SEEN
    assert "answered 401: Unauthorized to complete the operation" in job.problem
    assert "runtime:RUNTIME:node-editor" in job.problem


@pytest.mark.parametrize("step", [timedelta(milliseconds=1), timedelta()])
def test_pages_of_events_are_read_to_the_end(
    intake: Intake, api: KernelCiApi, step: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of 3 events; with step 0 groups of two events have the same time, also at the end of a page."""
    monkeypatch.setattr("wqlab_server.intake.kernelci.api.EVENTS_PAGE", 3)
    monkeypatch.setattr(poll_module, "EVENTS_PAGE", 3)
    for number in range(1, 9):
        node_id = api.schedule(number, event=False)
        api.publish(api.nodes[node_id], step if number % 2 else timedelta(milliseconds=1))
    with KernelCi(api.url, TOKEN) as connection:
        assert poll_module.read_events(intake.lab.sessions, intake.settings, connection) == 8
        assert poll_module.read_events(intake.lab.sessions, intake.settings, connection) == 0
    with transaction(intake.lab.sessions) as session:
        cursor = session.scalars(select(KernelCiCursor)).one()
        assert cursor.read_until.replace(tzinfo=None) == api.now


def test_event_that_appears_late_is_read(intake: Intake, api: KernelCiApi) -> None:
    api.schedule(1)
    intake.poll()
    late = api.schedule(2, event=False)
    api.publish(api.nodes[late], -timedelta(seconds=5))
    intake.poll()
    assert intake.job(late).state is KernelCiState.RUNNING


def test_two_processes_do_not_poll_at_the_same_time(intake: Intake, api: KernelCiApi) -> None:
    api.schedule()
    with transaction(intake.lab.sessions) as session:
        assert session.scalar(select(func.pg_try_advisory_xact_lock(kernelci._LOCK)))
        assert not kernelci.poll(intake.lab.sessions, intake.settings, intake.data)
    assert api.requests == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [("kernelci_url", "WQLAB_KERNELCI_URL"), ("kernelci_jobs_file", "WQLAB_KERNELCI_JOBS_FILE")],
)
def test_missing_settings_are_named(intake: Intake, missing: str, message: str) -> None:
    changed = intake.settings.model_copy(update={missing: None})
    with pytest.raises(kernelci.NotConfigured, match=message):
        kernelci.poll(intake.lab.sessions, changed, intake.data)
    assert intake.settings.kernelci_token_file is not None
    intake.settings.kernelci_token_file.write_text("\n")
    with pytest.raises(kernelci.NotConfigured, match="contains no token"):
        kernelci.poll(intake.lab.sessions, intake.settings, intake.data)


def test_definitions_are_fetched_from_safe_places_only(api: KernelCiApi) -> None:
    with KernelCi(api.url, TOKEN) as connection:
        for url in (
            "http://10.0.0.1/a.json",
            "https://user:word@files.example.org/a",
            "file:///etc/passwd",
            "https://[",
        ):
            with pytest.raises(Refused, match="has no"):
                connection.definition(url)
        assert api.requests == []
        with pytest.raises(NotFound):
            connection.node("0" * 24)
    with KernelCi("https://api.example.org/latest", TOKEN) as other, pytest.raises(Refused):
        other.definition(f"{api.url}/a.json")


def test_a_definition_at_a_private_address_is_not_fetched(api: KernelCiApi) -> None:
    refusal = pytest.raises(Refused, match=r"internal\.example is the private address 10\.1\.2\.3")
    with KernelCi(api.url, TOKEN, find=lambda host, port: ["10.1.2.3"]) as client, refusal:
        client.definition("https://internal.example/job.json")
