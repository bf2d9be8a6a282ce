"""`wqlab device check` against a lab that tells its steps one by one."""

from __future__ import annotations

from commandline import Wqlab
from fakelab import FakeLab, Reply, Seen, at

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
        noise_run_id=None,
        changes=changes,
    )


POWER = step(DeviceStep.POWER, StepOutcome.OK, "switched off and on")


def served(lab: FakeLab, *tellings: DeviceCheck) -> list[str]:
    """Answers the questions for more in turn; the list of what was known at each."""
    asked: list[str] = []

    def answer(seen: Seen) -> Reply:
        asked.append(seen.query["seen"])
        return Reply(body=tellings[len(asked) - 1])

    lab.serve("/devices/ryzen-1/check", check(changes=0), "POST", status=202)
    lab.answers[("GET", "/api/v1/devices/ryzen-1/checks/4")] = answer
    return asked


def test_each_step_is_printed_once_as_it_ends(wqlab: Wqlab, lab: FakeLab) -> None:
    noise = step(DeviceStep.NOISE, StepOutcome.OK, "no difference seen: noise floor 0.2 %")
    asked = served(
        lab,
        check(POWER, changes=3),
        check(POWER, changes=4),
        check(POWER, noise, changes=9, outcome=Outcome.PASSED),
    )
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 0
    assert result.out == (
        "ok      power          switched off and on\n"
        "ok      noise          no difference seen: noise floor 0.2 %\n"
        "ryzen-1 is fit for work\n"
    )
    assert asked == ["0", "3", "4"], "it asks for what is newer than it knows"


def test_a_failed_step_has_its_kind_and_fix_and_the_exit_code_of_infrastructure(wqlab: Wqlab, lab: FakeLab) -> None:
    failed = step(DeviceStep.KEXEC, StepOutcome.FAILED, SILENT.summary, SILENT)
    skipped = step(DeviceStep.TOPOLOGY, StepOutcome.SKIPPED, "needs kexec")
    served(lab, check(POWER, failed, skipped, changes=5, outcome=Outcome.FAILED, failure=SILENT))
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 4
    assert result.out == (
        "ok      power          switched off and on\n"
        "failed  kexec          infrastructure: the variant did not come up\n"
        f"        fix            {FIX}\n"
        "skipped topology       needs kexec\n"
        "ryzen-1 is not fit for work: kexec\n"
    )


def test_a_walk_that_was_cut_short_is_no_answer(wqlab: Wqlab, lab: FakeLab) -> None:
    why = Failure(kind=ErrorKind.CANCELED, summary="ryzen-1 was quarantined: smoke (dev)")
    served(lab, check(POWER, changes=5, outcome=Outcome.CANCELED, failure=why))
    result = wqlab("device", "check", "ryzen-1")
    assert result.code == 4
    assert result.out.endswith("did not come to an answer: ryzen-1 was quarantined: smoke (dev)\n")


def test_json_is_one_document_at_the_end(wqlab: Wqlab, lab: FakeLab) -> None:
    ended = check(POWER, changes=5, outcome=Outcome.PASSED)
    served(lab, ended)
    assert DeviceCheck.model_validate_json(wqlab("device", "check", "ryzen-1", "--json").out) == ended
    lab.seen.clear()
    assert "ordered" in wqlab("device", "check", "ryzen-1", "--no-wait").out
    assert [seen.method for seen in lab.seen] == ["POST"]
