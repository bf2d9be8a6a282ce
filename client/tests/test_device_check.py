"""`wqlab device check` against a lab that reports steps one at a time."""

from __future__ import annotations

from commandline import Wqlab
from example_views import at
from fakelab import FakeLab, Reply, Request

from wqlab_contracts.api.queue import DeviceCheck
from wqlab_contracts.enums import DeviceStep, ErrorKind, Outcome, StepOutcome
from wqlab_contracts.messages import CheckStep, Failure

FIX = "Read the console after `Starting new kernel`."
SILENT = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the variant did not come up", advice=FIX)


def step(name: DeviceStep, outcome: StepOutcome, text: str, failure: Failure | None = None) -> CheckStep:
    return CheckStep(at=at(1), step=name, outcome=outcome, text=text, failure=failure)


def check(
    *steps: CheckStep, changes: int, outcome: Outcome | None = None, failure: Failure | None = None
) -> DeviceCheck:
    return DeviceCheck(
        id=4,
        device="ryzen-1",
        by="dev",
        created_at=at(0),
        finished_at=None if outcome is None else at(9),
        outcome=outcome,
        failure=failure,
        steps=list(steps),
        doing="" if outcome else "cold boot",
        health_run_id=7,
        changes=changes,
    )


POWER = step(DeviceStep.POWER, StepOutcome.OK, "switched off and on")


def serve_checks(lab: FakeLab, *states: DeviceCheck) -> list[str]:
    """Answer each request with the next state; return the list that collects the `seen` of each request."""
    requested: list[str] = []

    def answer(request: Request) -> Reply:
        requested.append(request.query["seen"])
        return Reply(body=states[len(requested) - 1])

    lab.serve("/devices/ryzen-1/check", check(changes=0), "POST", status=202)
    lab.answers[("GET", "/api/v1/devices/ryzen-1/checks/4")] = answer
    return requested


def test_each_step_is_printed_once_when_it_ends(wqlab: Wqlab, lab: FakeLab) -> None:
    console = step(DeviceStep.CONSOLE, StepOutcome.OK, "38148 bytes read")
    requested = serve_checks(
        lab,
        check(POWER, changes=3),
        check(POWER, changes=4),
        check(POWER, console, changes=9, outcome=Outcome.PASSED),
    )
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 0
    assert result.out == (
        "ok      power          switched off and on\n"
        "ok      console        38148 bytes read\n"
        "ryzen-1 passed the check\n"
    )
    assert requested == ["0", "3", "4"], "each request asks for changes after the last one seen"


def test_failed_step_prints_kind_and_fix_and_exits_with_infrastructure(wqlab: Wqlab, lab: FakeLab) -> None:
    failed = step(DeviceStep.KEXEC, StepOutcome.FAILED, SILENT.summary, SILENT)
    skipped = step(DeviceStep.TOPOLOGY, StepOutcome.SKIPPED, "needs kexec")
    serve_checks(lab, check(POWER, failed, skipped, changes=5, outcome=Outcome.FAILED, failure=SILENT))
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 4
    assert result.out == (
        "ok      power          switched off and on\n"
        "failed  kexec          infrastructure: the variant did not come up\n"
        f"        fix            {FIX}\n"
        "skipped topology       needs kexec\n"
        "ryzen-1 failed the check: kexec\n"
    )


def test_canceled_check_has_no_result(wqlab: Wqlab, lab: FakeLab) -> None:
    reason = Failure(kind=ErrorKind.CANCELED, summary="ryzen-1 was quarantined: smoke (dev)")
    serve_checks(lab, check(POWER, changes=5, outcome=Outcome.CANCELED, failure=reason))
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 4
    assert result.out.endswith("ended without a result: ryzen-1 was quarantined: smoke (dev)\n")


def test_json_prints_one_document_at_the_end(wqlab: Wqlab, lab: FakeLab) -> None:
    ended = check(POWER, changes=5, outcome=Outcome.PASSED)
    serve_checks(lab, ended)
    assert DeviceCheck.model_validate_json(wqlab("device", "check", "ryzen-1", "--json").out) == ended
    lab.requests.clear()
    assert "is queued" in wqlab("device", "check", "ryzen-1", "--no-wait").out
    assert [request.method for request in lab.requests] == ["POST"]
