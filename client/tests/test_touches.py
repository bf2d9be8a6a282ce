"""`wqlab touches`, and `wqlab submit --what-it-touches`: targets that the lab proposes for a series."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Wqlab
from example_views import at, submission
from fakelab import FakeLab, Reply, problem

from wqlab_client.calls import touches as calls
from wqlab_contracts.api.devices import DeviceCounts
from wqlab_contracts.api.quotes import QuoteBasis, TargetQuote
from wqlab_contracts.api.series import BranchInspection
from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.api.touches import LeftOutPlan, TargetProposal, TouchedFile, Touches
from wqlab_contracts.enums import ErrorKind, ExitCode, JobState, Outcome, SubmissionState
from wqlab_contracts.messages import Failure, Target
from wqlab_contracts.specs.touches import DeviceKind

WQ = "kernel/workqueue.c"
SETTINGS = ["scope=cache,strict=0", "scope=cpu,strict=0"]


def quote(index: int, device_s: float, basis: QuoteBasis) -> TargetQuote:
    return TargetQuote(
        index=index, plan="p", device_type="t", emulated=True, blocks=2, boots=4, settings=1, boot_s=60,
        device_s=device_s, basis=basis, measured_boots=0, basis_text="", detectable=None, queue_position=1,
        ahead_runs=0, ahead_boots=0, device_counts=DeviceCounts(good=1, busy=0, suspect=0, unknown=0, quarantined=0),
        starts_at=None, ends_at=None, notes=[],
    )  # fmt: skip


FOUND = Touches(
    proposals=[
        TargetProposal(
            target=Target(plan="xfs-fsync", device_type="xeon-2s"),
            devices=[DeviceKind.MULTI_NODE],
            also_on=[],
            asks=["Does a flush take fewer locks?", "What does an fsync\ncost\x1b[31m with that?"],
            because=[TouchedFile(path=WQ, symbols=["flush_a", "flush_b", "flush_c", "flush_d"])],
            by_symbol=True,
            quote=quote(0, 600, QuoteBasis.MEASURED),
        ),
        TargetProposal(
            target=Target(plan="fan-out", device_type="ryzen-3900x", settings=SETTINGS),
            devices=[DeviceKind.MULTI_L3],
            also_on=["xeon-2s"],
            asks=["From how many issuers on are CPUs idle?"],
            because=[TouchedFile(path=WQ), TouchedFile(path="fs/aio.c"), TouchedFile(path="fs/x.c")],
            by_symbol=False,
            quote=quote(1, 7200, QuoteBasis.PLANNED),
        ),
    ],
    left_out=[LeftOutPlan(plan="hotplug", devices=[], why="this lab has no plan hotplug", because=[])],
    uncovered=["mm/a.c", "mm/b.c", "mm/c.c", "mm/d.c", "mm/e.c", "mm/f.c"],
    files=9,
    looked_at=9,
    device_s=7800,
    build_s=300,
)
SHOWN = """\
TARGET               DEVICE TIME  BECAUSE OF
xfs-fsync@xeon-2s    10 min       flush_a, flush_b, flush_c and 1 more in kernel/workqueue.c
    Does a flush take fewer locks?
    What does an fsync cost^[[31m with that?
fan-out@ryzen-3900x  about 2 h    kernel/workqueue.c; fs/aio.c and 1 more file
    From how many issuers on are CPUs idle?
    settings: scope=cache,strict=0; scope=cpu,strict=0
all of them:  about 2 h of device time, 5 min of kernel builds
not proposed: hotplug: this lab has no plan hotplug
no plan for:  mm/a.c, mm/b.c, mm/c.c, mm/d.c, mm/e.c and 1 more
"""
NOTHING = Touches(proposals=[], left_out=[], uncovered=["mm/a.c"], files=1, looked_at=1)


@pytest.fixture
def mbox(tmp_path: Path) -> str:
    path = tmp_path / "series.mbox"
    path.write_text("From x\nSubject: [PATCH] x\n\ndiff --git a/f b/f\n")
    return str(path)


def test_proposals_are_printed_with_cost_reason_and_finding(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", FOUND, "POST")
    ended = wqlab("touches", mbox, "--tree", "linux")
    assert (ended.code, ended.out) == (0, SHOWN)
    assert ended.err == f"submit them with `wqlab submit --mbox {mbox} --tree linux --what-it-touches`\n"
    (sent,) = lab.requests
    body = json.loads(sent.body)
    assert body["tree"] == "linux" and body["series"]["mbox"]["text"].startswith("From x")


def test_questions_fit_the_width(wqlab: Wqlab, lab: FakeLab, mbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.serve("/touches", FOUND, "POST")
    monkeypatch.setenv("COLUMNS", "42")
    lines = wqlab("touches", mbox).out.splitlines()
    assert max(len(line) for line in lines if line.startswith("    ")) <= 42
    assert "    settings: scope=cache,strict=0;" in lines


def test_unknown_times(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    (first, *_) = FOUND.proposals
    unknown = {"proposals": [first.model_copy(update={"quote": None})], "device_s": None, "build_s": None}
    lab.serve("/touches", FOUND.model_copy(update=unknown), "POST")
    out = wqlab("touches", mbox).out
    assert "xfs-fsync@xeon-2s  unknown" in out
    assert "all of them:  device time unknown; the time of their kernel builds is unknown" in out


def test_json_is_the_answer_of_the_server(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", FOUND, "POST")
    ended = wqlab("touches", mbox, "--json")
    assert Touches.model_validate_json(ended.out) == FOUND and ended.err == ""


def test_series_without_a_plan(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", NOTHING.model_copy(update={"files": 5000, "looked_at": 2000}), "POST")
    ended = wqlab("touches", mbox)
    assert ended.out == (
        "the lab proposes no target for what this series changes\n"
        "no plan for:  mm/a.c\n"
        "only the first 2000 of 5000 changed files were looked at\n"
    )
    assert ended.err == ""


def thread(state: JobState, failure: Failure | None = None) -> ThreadPreview:
    return ThreadPreview(
        message_id="a@x", revision=None, state=state, outcome=Outcome.FAILED if failure else None, failure=failure,
        thread=None, inspection=None, looked_at=at(0),
    )  # fmt: skip


def test_mailed_series_is_looked_for_first(wqlab: Wqlab, lab: FakeLab) -> None:
    replies = iter([thread(JobState.RUNNING), thread(JobState.FINISHED)])
    lab.answers["GET", "/api/v1/archives/thread"] = lambda _: Reply(body=next(replies))
    lab.serve("/touches", NOTHING, "POST")
    assert wqlab("touches", "--message-id", "https://lore.kernel.org/r/a@x").code == 0
    assert [request.method for request in lab.requests] == ["GET", "GET", "POST"]
    assert lab.requests[0].query["message_id"] == "a@x"


def test_mailed_series_that_is_in_no_archive(wqlab: Wqlab, lab: FakeLab) -> None:
    failure = Failure(kind=ErrorKind.USER, summary="no archive has a@x", advice="Check the Message-ID.")
    lab.serve("/archives/thread", thread(JobState.FINISHED, failure))
    ended = wqlab("touches", "--message-id", "a@x")
    assert ended.code == ExitCode.USAGE and "no archive has a@x" in ended.err and "Check the Message-ID." in ended.err


BRANCH = ("--git", "https://example.org/l.git", "--ref", "topic")


def reading(state: JobState, progress: str = "", failure: Failure | None = None) -> BranchInspection:
    return BranchInspection(
        url=BRANCH[1], ref="topic", base=None, tree="linux", state=state, progress=progress, outcome=None,
        failure=failure, base_commit=None, commit=None, inspection=None, looked_at=None,
    )  # fmt: skip


def test_branch_is_read_first_and_what_the_lab_does_is_shown(wqlab: Wqlab, lab: FakeLab) -> None:
    busy = reading(JobState.RUNNING, "fetching master\x1b[31m")
    replies = iter([reading(JobState.QUEUED), busy, busy, reading(JobState.FINISHED)])
    lab.answers["GET", "/api/v1/git/branches/inspection"] = lambda _: Reply(body=next(replies))
    lab.serve("/touches", FOUND, "POST")
    ended = wqlab("touches", *BRANCH, "--tree", "linux")
    assert (ended.code, ended.out) == (0, SHOWN)
    what = "read topic of https://example.org/l.git"
    assert ended.err.splitlines() == [
        f"{what}: waiting for a worker",
        f"{what}: fetching master^[[31m",
        "submit them with `wqlab submit --git https://example.org/l.git --ref topic --tree linux --what-it-touches`",
    ]
    query = lab.requests[0].query
    assert (query["url"], query["ref"], query["tree"]) == (BRANCH[1], "topic", "linux") and "base" not in query
    assert json.loads(lab.requests[-1].body)["series"]["git"] == {"url": BRANCH[1], "ref": "topic", "base": None}


def test_line_is_repeated_while_the_lab_does_the_same(
    wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = reading(JobState.RUNNING, "fetching master")
    replies = iter([busy, busy, reading(JobState.FINISHED)])
    lab.answers["GET", "/api/v1/git/branches/inspection"] = lambda _: Reply(body=next(replies))
    lab.serve("/touches", FOUND, "POST")
    monkeypatch.setattr(calls, "_REPEAT_S", 0.0)
    lines = wqlab("touches", *BRANCH).err.splitlines()
    assert lines[:-1] == ["read topic of https://example.org/l.git: fetching master"] * 2


def test_branch_that_cannot_be_read_or_takes_too_long(
    wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = "From /srv/linux\nfatal: couldn't find remote ref topic\n"
    failure = Failure(kind=ErrorKind.USER, summary="cannot fetch it", excerpt=gone, advice="Check the name.")
    lab.serve("/git/branches/inspection", reading(JobState.FINISHED, failure=failure))
    ended = wqlab("touches", *BRANCH)
    assert ended.code == ExitCode.USAGE and "Check the name." in ended.err
    assert "cannot fetch it (fatal: couldn't find remote ref topic)" in " ".join(ended.err.split())
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no worker began the reading of a branch", advice="")
    lab.serve("/git/branches/inspection", reading(JobState.FINISHED, failure=lost))
    assert wqlab("touches", *BRANCH).code == ExitCode.INFRASTRUCTURE
    monkeypatch.setattr(calls, "BRANCH_WAIT_S", 0.0)
    lab.serve("/git/branches/inspection", reading(JobState.QUEUED))
    ended = wqlab("touches", *BRANCH)
    assert (
        ended.code == ExitCode.INFRASTRUCTURE and "not finished after 0 s" in ended.err and "workers run" in ended.err
    )


def test_refusal_of_the_server_is_shown(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    detail = "the mbox contains no mail"
    lab.answers["POST", "/api/v1/touches"] = problem(422, detail, [{"pointer": "/series/mbox/text", "detail": detail}])
    ended = wqlab("touches", mbox)
    assert ended.code == ExitCode.USAGE and detail in ended.err


@pytest.mark.parametrize("arguments", [(), ("a.mbox", "--message-id", "a@x")])
def test_exactly_one_series_is_needed(wqlab: Wqlab, lab: FakeLab, arguments: tuple[str, ...]) -> None:
    ended = wqlab("touches", *arguments)
    assert ended.code == ExitCode.USAGE and "pass one of FILE, --message-id and --git" in ended.err
    assert lab.requests == []


# --- wqlab submit --what-it-touches ------------------------------------------------------------------------------


def submit(wqlab: Wqlab, *arguments: str) -> tuple[int, str, str]:
    ended = wqlab("submit", "--tree", "linux", "--what-it-touches", *arguments)
    return ended.code, ended.out, ended.err


def test_proposals_are_shown_and_submitted(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", FOUND, "POST")
    lab.serve("/submissions", submission(SubmissionState.APPLYING), "POST", status=201)
    code, _, err = submit(wqlab, "--mbox", mbox)
    assert code == 0 and err.startswith(SHOWN)
    sent = json.loads(lab.requests[-1].body)
    assert [(target["plan"], target["device_type"], target["settings"]) for target in sent["targets"]] == [
        ("xfs-fsync", "xeon-2s", None),
        ("fan-out", "ryzen-3900x", SETTINGS),
    ]


def test_proposals_for_a_branch_are_submitted(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/git/branches/inspection", reading(JobState.FINISHED))
    lab.serve("/touches", FOUND, "POST")
    code, out, _ = submit(wqlab, *BRANCH, "--base", "v6.12", "--dry-run")
    assert code == 0 and len(json.loads(out)["targets"]) == 2
    assert (lab.requests[0].query["base"], lab.requests[0].query["tree"]) == ("v6.12", "linux")


def test_own_targets_come_first_and_replace_proposed_ones(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", FOUND, "POST")
    own = ("--target", "fan-out@ryzen-3900x", "--setting", "scope=system,strict=0")
    code, out, _ = submit(wqlab, "--mbox", mbox, *own, "--dry-run")
    assert code == 0
    targets = json.loads(out)["targets"]
    assert [(target["plan"], target["settings"]) for target in targets] == [
        ("fan-out", ["scope=system,strict=0"]),
        ("xfs-fsync", None),
    ]
    assert lab.paths("POST") == ["/api/v1/touches"]


def test_nothing_to_submit(wqlab: Wqlab, lab: FakeLab, mbox: str) -> None:
    lab.serve("/touches", NOTHING, "POST")
    code, _, err = submit(wqlab, "--mbox", mbox)
    assert code == ExitCode.USAGE
    assert "no plan for:  mm/a.c" in err and "the lab proposes nothing for this series" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--settings-only",), "--what-it-touches needs a series"),
        (("--mbox", "FILE", "--setting", "scope=cpu"), "--setting does not change proposed targets"),
        (("--mbox", "FILE", "--target", "xfs-fsync", "--sweep", "l3=1,2"), "--what-it-touches and --sweep exclude"),
    ],
)
def test_what_cannot_be_combined(wqlab: Wqlab, lab: FakeLab, mbox: str, arguments: tuple[str, ...], text: str) -> None:
    code, _, err = submit(wqlab, *(mbox if argument == "FILE" else argument for argument in arguments))
    assert code == ExitCode.USAGE and text in err
    assert lab.requests == []
