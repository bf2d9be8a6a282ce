"""`wqlab submit`: conversion of its options to a request, and refusals before anything is sent."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import Wqlab
from example_views import submission
from fakelab import FakeLab, Reply

from wqlab_client.cli.submit import parse_parameter
from wqlab_contracts.api.plans import TreeView
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import SubmissionState
from wqlab_contracts.specs import Tree

GIT = ("submit", "--git", "https://git.example.org/l.git", "--ref", "wq", "--tree", "linux-6.12", "--dry-run")


def request(wqlab: Wqlab, *arguments: str) -> dict[str, Any]:
    ended = wqlab(*arguments)
    assert (ended.code, ended.err) == (0, "")
    SubmissionRequest.model_validate_json(ended.out)
    return json.loads(ended.out)


def test_options_belong_to_the_target_before_them(wqlab: Wqlab, lab: FakeLab) -> None:
    sent = request(
        wqlab, *GIT, "--blocks", "8", "--repetitions", "3", "--priority", "60", "--recipe", "debug",
        "--backend", "lava", "--force",
        "--target", "xfs-fsync@xeon-2s",
        "--target=dm-crypt-affinity@ryzen-3900x", "--scenario", "HIGH", "--scenario=LOW",
        "--setting", "scope=cache,strict=1", "--setting=strict=0,scope=system", "--param", "fio_runtime=5",
        "--param", "size=32k",
        "--target", "dm-crypt-affinity@tiny", "--param", "fio_runtime=0.5",
    )  # fmt: skip
    assert sent == {
        "series": {
            "git": {"url": "https://git.example.org/l.git", "ref": "wq", "base": None},
            "mbox": None,
            "thread": None,
            "commits": None,
        },
        "tree": "linux-6.12",
        "targets": [
            {
                "plan": "xfs-fsync",
                "device_type": "xeon-2s",
                "scenarios": None,
                "settings": None,
                "parameters": {},
                "device": None,
            },
            {
                "plan": "dm-crypt-affinity",
                "device_type": "ryzen-3900x",
                "scenarios": ["HIGH", "LOW"],
                "settings": ["scope=cache,strict=1", "scope=system,strict=0"],
                "parameters": {"fio_runtime": 5, "size": "32k"},
                "device": None,
            },
            {
                "plan": "dm-crypt-affinity",
                "device_type": "tiny",
                "scenarios": None,
                "settings": None,
                "parameters": {"fio_runtime": 0.5},
                "device": None,
            },
        ],
        "blocks": 8,
        "repetitions": 3,
        "layouts": None,
        "looks": None,
        "priority": 60,
        "force": True,
        "walk": False,
        "trace": True,
        "sweep": None,
        "recipe": "debug",
        "backend": "lava",
    }
    assert lab.requests == [], "a dry run sends nothing"


def test_options_before_the_first_target_belong_to_all(wqlab: Wqlab) -> None:
    sent = request(
        wqlab, *GIT, "--param", "fio_runtime=5", "--param", "jobs=2", "--setting", "scope=cpu",
        "--target", "a@x", "--param", "jobs=4", "--target", "b@y", "--setting", "scope=numa", "--setting", "scope=cpu",
    )  # fmt: skip
    assert [(t["settings"], t["parameters"]) for t in sent["targets"]] == [
        (["scope=cpu"], {"fio_runtime": 5, "jobs": 4}),
        (["scope=cpu", "scope=numa"], {"fio_runtime": 5, "jobs": 2}),
    ]


def test_values_that_look_like_options_are_values(wqlab: Wqlab) -> None:
    sent = request(wqlab, *GIT[:4], "--target", *GIT[5:], "--target", "a@x", "--param", "note=--target b@y")
    assert sent["series"]["git"]["ref"] == "--target"
    assert sent["targets"] == [
        {
            "plan": "a",
            "device_type": "x",
            "scenarios": None,
            "settings": None,
            "parameters": {"note": "--target b@y"},
            "device": None,
        }
    ]


def test_walk_is_asked_for_with_one_option(wqlab: Wqlab, lab: FakeLab) -> None:
    assert request(wqlab, *GIT, "--target", "xfs-fsync@xeon-2s", "--walk")["walk"] is True


def test_sweep_needs_no_device_type(wqlab: Wqlab, lab: FakeLab) -> None:
    sent = request(
        wqlab, *GIT, "--target", "xfs-fsync", "--target", "fan-out", "--setting", "scope=cache,strict=0",
        "--sweep", "l3=4,1, 2", "--sweep-base=cpus=8,nodes=1",
    )  # fmt: skip
    assert sent["sweep"] == {
        "vary": "l3", "values": [4, 1, 2], "base": {"cpus": 8, "l3": None, "nodes": 1, "shard": None}, "costs": None,
    }  # fmt: skip
    assert [(each["plan"], each["device_type"], each["settings"]) for each in sent["targets"]] == [
        ("xfs-fsync", "", None), ("fan-out", "", ["scope=cache,strict=0"]),
    ]  # fmt: skip
    assert request(wqlab, *GIT, "--target", "xfs-fsync", "--sweep", "nodes=1,2")["sweep"] == {
        "vary": "nodes", "values": [1, 2], "base": {"cpus": None, "l3": None, "nodes": None, "shard": None},
        "costs": None,
    }  # fmt: skip
    modelled = request(wqlab, *GIT, "--target", "xfs-fsync", "--sweep", "nodes=1,2", "--sweep-costs", "xeon-2s")
    assert modelled["sweep"]["costs"] == "xeon-2s"


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-3", -3), ("0.50", 0.5), ("0", 0), ("007", "007"), ("32k", "32k"), ("1e3", "1e3"), ("", ""),
     ("nan", "nan"), ("1.", "1."), ("²", "²"), ("--1", "--1")],
)  # fmt: skip
def test_parameters_become_numbers_only_without_loss(text: str, value: object) -> None:
    found = parse_parameter(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "a@x"), "nothing to test is given pass one of --git"),
        (("--mbox", "x", "--settings-only", "--target", "a@x"), "--mbox and --settings-only exclude each other"),
        (("--mbox", "x", "--message-id", "a@b", "--target", "a@x"), "--mbox and --message-id exclude each other"),
        (("--mbox", "x", "--revision", "2", "--target", "a@x"), "--revision needs --message-id"),
        (("--message-id", "nothing", "--target", "a@x"), "there is no Message-ID in 'nothing'"),
        (("--git", "https://x/y", "--target", "a@x"), "--git needs --ref"),
        (("--settings-only", "--ref", "x", "--target", "a@x"), "--ref needs --git"),
        (("--settings-only",), "no --target is given"),
        (("--settings-only", "--target", "xfs"), "--target 'xfs' is not PLAN@DEVICE_TYPE"),
        (("--settings-only", "--target", "a@b@c"), "--target 'a@b@c' is not PLAN@DEVICE_TYPE"),
        (("--settings-only", "--target", "a@", "--sweep", "l3=1,2"), "--target 'a@' is not PLAN@DEVICE_TYPE"),
        (("--settings-only", "--target", "a", "--sweep-base", "cpus=8"), "--sweep-base needs --sweep"),
        (("--settings-only", "--target", "a", "--sweep-costs", "grace"), "--sweep-costs needs --sweep"),
        (
            ("--settings-only", "--target", "a", "--sweep", "smt=1,2"),
            "--sweep: 'smt=1,2' is not DIMENSION=NUMBER; dimensions are cpus, l3, nodes",
        ),
        (("--settings-only", "--target", "a", "--sweep", "l3"), "--sweep: 'l3' is not DIMENSION=NUMBER"),
        (("--settings-only", "--target", "a", "--sweep", "l3=1,x"), "--sweep: 'x' in 'l3=1,x' is not a number"),
        (("--settings-only", "--target", "a", "--sweep", "l3=1,-2"), "--sweep: '-2' in 'l3=1,-2' is not a number"),
        (("--settings-only", "--target", "a", "--sweep", "l3=1"), "--sweep l3=1: l3 has 1 value; name 2 to 8 values"),
        (("--settings-only", "--target", "a", "--sweep", "l3=1,3"), "cpus=16 do not divide into l3=3"),
        (
            ("--settings-only", "--target", "a", "--sweep", "l3=1,2", "--sweep-base", "l3=2"),
            "l3 varies, so it cannot stay; leave it out of the base",
        ),
        (
            ("--settings-only", "--target", "a", "--sweep", "l3=1,2", "--sweep-base", "cpus=8,cpus=16"),
            "--sweep-base 'cpus=8,cpus=16' has cpus twice",
        ),
        (("--settings-only", "--target", "a b@x"), "--target: plan: String should match pattern"),
        (
            ("--settings-only", "--target", "a@x", "--setting", "scope"),
            "--setting: setting 'scope': expected knob=value",
        ),
        (("--settings-only", "--target", "a@x", "--setting", "s=1,s=2"), "s is given twice"),
        (("--settings-only", "--target", "a@x", "--param", "fio"), "--param 'fio' is not NAME=VALUE"),
        (
            ("--settings-only", "--target", "a@x", "--blocks", "0"),
            "Invalid value for '--blocks': Input should be greater than",
        ),
        (("--settings-only", "--target", "a@x", "--fail-on", "regression"), "--fail-on needs --wait"),
        (("--settings-only", "--target", "a@x", "--wait", "--fail-on", "sad"), "'sad' is not one of 'improvement'"),
        (("--mbox", "/nonexistent", "--target", "a@x"), "--mbox: cannot read /nonexistent: No such file"),
        (("--settings-only", "--trget", "a@x"), "No such option: --trget"),
    ],
)
def test_mistakes_name_the_option_and_exit_with_2(
    wqlab: Wqlab, lab: FakeLab, arguments: tuple[str, ...], message: str
) -> None:
    ended = wqlab("submit", "--tree", "t", *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert lab.requests == []


def test_mbox_is_read_from_file_or_standard_input(
    wqlab: Wqlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] wörkqueue\n\n--- a/x\r\n"
    file = tmp_path / "series.mbox"
    file.write_bytes(series.encode())
    rest = ("--tree", "t", "--target", "a@x", "--dry-run")
    assert request(wqlab, "submit", "--mbox", str(file), *rest)["series"]["mbox"]["text"] == series
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(series.encode())))
    assert request(wqlab, "submit", "--mbox", "-", *rest)["series"]["mbox"]["text"] == series
    for data, message in ((b"", "is empty"), (b"caf\xe9", "is not UTF-8 (byte 3)")):
        file.write_bytes(data)
        ended = wqlab("submit", "--mbox", str(file), *rest)
        assert ended.code == 2
        assert message in ended.err


def tree(name: str, default: bool = False) -> TreeView:
    url = "https://git.example.org/l.git"
    return TreeView(tree=Tree(name=name, summary="", url=url), base_commit=None, default=default)


def test_tree_may_be_omitted_if_unambiguous(wqlab: Wqlab, lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    study = ("submit", "--settings-only", "--target", "a@x", "--dry-run")
    lab.serve("/trees", [tree("linux-6.12")])
    assert request(wqlab, *study)["tree"] == "linux-6.12"
    lab.serve("/trees", [tree("linux-6.12"), tree("wq")])
    ended = wqlab(*study)
    assert ended.code == 2
    assert "no --tree is given, and the lab has several: linux-6.12, wq" in ended.err
    monkeypatch.setenv("WQLAB_TREE", "wq")
    assert request(wqlab, *study)["tree"] == "wq"
    assert request(wqlab, *study, "--tree", "linux-6.12")["tree"] == "linux-6.12"
    monkeypatch.delenv("WQLAB_TREE")
    lab.serve("/trees", [tree("wq"), tree("linux-6.12", default=True)])
    assert request(wqlab, *study)["tree"] == "linux-6.12"


def test_submit_sends_the_request_and_prints_the_number(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/submissions", submission(SubmissionState.APPLYING), "POST", status=201)
    arguments = [argument for argument in GIT if argument != "--dry-run"]
    ended = wqlab(*arguments, "--target", "xfs-fsync@xeon-2s", "--idempotency-key", "job-1")
    assert (ended.code, ended.out) == (0, "submission 12\n")
    assert ended.err == "watch it with `wqlab watch 12`, cancel it with `wqlab cancel 12`\n"
    assert lab.requests[0].headers["idempotency-key"] == "job-1"
    assert json.loads(lab.requests[0].body) == request(wqlab, *GIT, "--target", "xfs-fsync@xeon-2s")
    assert json.loads(wqlab(*arguments, "--target", "xfs-fsync@xeon-2s", "--json").out)["id"] == 12


def test_refused_request_prints_every_mistake(wqlab: Wqlab, lab: FakeLab) -> None:
    errors = [
        {"pointer": "/targets/0/plan", "detail": "no plan 'xfs'; there is xfs-fsync"},
        {"pointer": "/tree", "detail": "no tree 'linux'; there is linux-6.12"},
    ]
    body = {"type": "urn:x", "title": "Unprocessable", "status": 422, "detail": "2 mistakes", "errors": errors}
    lab.answers[("POST", "/api/v1/submissions")] = Reply(422, body, content_type="application/problem+json")
    arguments = [argument for argument in GIT if argument != "--dry-run"]
    ended = wqlab(*arguments, "--target", "xfs@xeon-2s")
    assert ended.code == 2
    assert ended.err == (
        "wqlab: error: submit: the server refused the request: 2 mistakes\n"
        "  /targets/0/plan: no plan 'xfs'; there is xfs-fsync\n"
        "  /tree: no tree 'linux'; there is linux-6.12\n"
    )


@pytest.mark.parametrize(
    ("options", "thread"),
    [
        (("--message-id", "a.b@c.example"), {"message_id": "a.b@c.example", "revision": None}),
        (
            ("--message-id", "https://lore.kernel.org/all/a.b%40c.example/T/#t", "--revision", "2"),
            {"message_id": "a.b@c.example", "revision": 2},
        ),
    ],
)
def test_series_is_named_by_message_id(wqlab: Wqlab, options: tuple[str, ...], thread: dict[str, Any]) -> None:
    sent = request(wqlab, "submit", *options, "--tree", "linux-6.12", "--target", "a@x", "--dry-run")
    assert sent["series"] == {"git": None, "mbox": None, "thread": thread, "commits": None}


def test_layouts_are_a_number_up_to_eight(wqlab: Wqlab, lab: FakeLab) -> None:
    target = ("--target", "xfs-fsync@xeon-2s")
    assert request(wqlab, *GIT, *target)["layouts"] is None
    assert request(wqlab, *GIT, *target, "--layouts", "4")["layouts"] == 4
    assert wqlab(*GIT, *target, "--layouts", "9").code == 2


def test_looks_are_numbers_in_ascending_order(wqlab: Wqlab, lab: FakeLab) -> None:
    target = ("--target", "xfs-fsync@xeon-2s")
    assert request(wqlab, *GIT, *target, "--looks", "6,10, 16")["looks"] == [6, 10, 16]
    for wrong in ("10,6", "6", "six,ten", "6,200", "1,6"):
        ended = wqlab(*GIT, *target, "--looks", wrong)
        assert ended.code == 2
        assert "ascending" in ended.err


def test_a_submission_can_do_without_traced_boots(wqlab: Wqlab) -> None:
    assert request(wqlab, *GIT, "--target", "xfs-fsync@tiny", "--no-trace")["trace"] is False
