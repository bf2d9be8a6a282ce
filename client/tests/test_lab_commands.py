"""The commands about the lab itself: its devices, plans and trees; which lab it is, and as whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import TOKEN, Wqlab
from fakelab import FakeLab, at, problem

from wqlab_client.config import resolve
from wqlab_contracts import cpu_layout
from wqlab_contracts.api.submissions import (
    DeviceTypeView,
    DeviceView,
    LeaseView,
    Page,
    PlanView,
    SubmissionSummary,
    TreeView,
    UnitCounts,
)
from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.specs import TestPlan, Topology, Tree


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("submissions", "lab", "watch"):
        monkeypatch.setattr(f"wqlab_client.cli.{module}.utc_now", lambda: at(600))


def device(name: str, **changes: object) -> DeviceView:
    fields: dict[str, object] = {
        "name": name,
        "device_type": "tiny",
        "lab": "local",
        "health": DeviceHealth.GOOD,
        "health_reason": "",
        "health_checked_at": at(0),
        "lease": None,
        "measured_topology": None,
    }
    return DeviceView(**{**fields, **changes})  # type: ignore[arg-type]


def test_devices(wqlab: Wqlab, lab: FakeLab) -> None:
    lease = LeaseView(run_id=7, holder="host/1", fence=3, expires_at=at(660))
    lab.serve(
        "/devices",
        [
            device("tiny-1", lease=lease),
            device("tiny-2", health=DeviceHealth.QUARANTINED, health_reason="console mute", health_checked_at=None),
        ],
    )
    assert wqlab("devices").out == (
        "NAME    TYPE  LAB    HEALTH       CHECKED     DOES   REASON\n"
        "tiny-1  tiny  local  good         10 min ago  run 7\n"
        "tiny-2  tiny  local  quarantined  never       idle   console mute\n"
    )
    assert [each["name"] for each in json.loads(wqlab("devices", "--health", "good", "--json").out)] == ["tiny-1"]
    assert wqlab("devices", "--type", "xeon").err == "no device matches\n"


def test_quarantine_and_release(wqlab: Wqlab, lab: FakeLab) -> None:
    out = device("tiny-1", health=DeviceHealth.QUARANTINED, health_reason="fan")
    lab.serve("/devices/tiny-1/quarantine", out, "POST")
    lab.serve("/devices/tiny-1/release", device("tiny-1", health=DeviceHealth.UNKNOWN), "POST")
    assert wqlab("devices", "quarantine", "tiny-1", "--reason", "fan").out == "tiny-1: quarantined (fan)\n"
    assert json.loads(lab.seen[0].body) == {"reason": "fan"}
    assert wqlab("devices", "release", "tiny-1").out == "tiny-1: unknown\n"
    assert json.loads(wqlab("devices", "release", "tiny-1", "--json").out)["health"] == "unknown"
    assert wqlab("devices", "quarantine", "tiny-1").code == 2
    assert wqlab("devices", "quarantine", "tiny-1", "--reason", "").code == 2


def test_device_types(wqlab: Wqlab, lab: FakeLab) -> None:
    topology = Topology(sockets=2, l3_per_socket=1, cores_per_l3=8, threads_per_core=2, numa_nodes=2)
    lab.serve(
        "/device-types",
        [
            DeviceTypeView(
                name="xeon-2s",
                summary="two sockets",
                arch="x86_64",
                emulated=True,
                topology=topology,
                layout=cpu_layout.described(topology),
                devices=["a", "b"],
                units=UnitCounts(good=1, busy=1, unchecked=0, quarantined=0),
                free=1,
                queued_runs=3,
                problems=["device-types/new.yaml:3: unknown key 'cpus'"],
            )
        ],
    )
    columns = "32 CPUs: 2 packages, 2 NUMA nodes, 2 L3 domains, 16 cores x 2 threads"
    ended = wqlab("devices", "types")
    assert ended.out == (
        f"NAME     ARCH    {'TOPOLOGY':{len(columns)}}  FREE  QUEUED  SUMMARY\n"
        f"xeon-2s  x86_64  {columns}  1/2   3       two sockets (emulated)\n"
    )
    assert ended.err == "wqlab: warning: device-types/new.yaml:3: unknown key 'cpus'\n"


PLAN = PlanView(
    plan=TestPlan.model_validate(
        {
            "name": "dm-crypt-affinity",
            "summary": "dm-crypt over scopes",
            "script": "run.sh",
            "parser": "dm_crypt",
            "scenarios": [{"name": "HIGH", "summary": "all CPUs issue", "parameters": {"jobs": "all"}}],
            "axes": [{"name": "scope", "values": ["cache", "system"]}],
            "reference_setting": "scope=system",
            "hardware": {"settings": ["scope=cache"], "parameters": {"fio_runtime": 60}},
            "emulated": {"settings": ["scope=cache", "scope=system"], "blocks": 2},
            "metrics": [
                {
                    "name": "l3_share",
                    "summary": "work on the queueing L3",
                    "unit": "%",
                    "scale": "difference",
                    "direction": "higher_is_better",
                    "class": "mechanism",
                    "taken_from": "traced",
                    "role_emulated": "primary",
                    "delta": 0.5,
                }
            ],
        }
    ),
    script="#!/bin/sh\necho measured\n",
)


def test_plans(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/plans", [PLAN])
    assert wqlab("plans").out == (
        "NAME               SCENARIOS  SUMMARY\ndm-crypt-affinity  HIGH       dm-crypt over scopes\n"
    )
    assert wqlab("plans", "dm-crypt-affinity").out == (
        "dm-crypt-affinity: dm-crypt over scopes\n"
        "  scenario HIGH: all CPUs issue [jobs=all]\n"
        "  knob scope: cache, system\n"
        "  reference setting: scope=system\n"
        "  on hardware: 6 blocks, 1 warm-up + 5 untraced + 1 traced repetitions [fio_runtime=60]\n"
        "    settings: scope=cache\n"
        "  on emulated devices: 2 blocks, 1 warm-up + 5 untraced + 1 traced repetitions\n"
        "    settings: scope=cache; scope=system\n"
        "  metric l3_share (%, higher is better, primary on emulated devices, delta 0.5 %): work on the queueing L3\n"
    )
    assert wqlab("plans", "dm-crypt-affinity", "--script").out == PLAN.script
    found = json.loads(wqlab("plans", "dm-crypt-affinity", "--json").out)
    assert found["plan"]["metrics"][0]["class"] == "mechanism"
    ended = wqlab("plans", "xfs")
    assert (ended.code, ended.out) == (2, "")
    assert "the lab has no plan 'xfs'\n  it has dm-crypt-affinity\n" in ended.err


def test_trees(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve(
        "/trees",
        [
            TreeView(
                tree=Tree(name="linux-6.12", summary="Debian's", debian_source="linux-source-6.12"),
                base_commit="0123456789abcdef0123456789abcdef01234567",
            ),
            TreeView(tree=Tree(name="wq", summary="for-next", url="https://git.example.org/wq.git"), base_commit=None),
        ],
    )
    assert wqlab("trees").out == (
        "NAME        BASE          BRANCH  ORIGIN                            SUMMARY\n"
        "linux-6.12  0123456789ab          Debian package linux-source-6.12  Debian's\n"
        "wq                        master  https://git.example.org/wq.git    for-next\n"
    )


# --- who, where -------------------------------------------------------------------------------------------------


def test_login_checks_the_token_and_keeps_it(
    wqlab: Wqlab, lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    lab.serve("/submissions", Page[SubmissionSummary](items=[], total=0))
    monkeypatch.delenv("WQLAB_URL")
    monkeypatch.delenv("WQLAB_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO("wql_secret_from_stdin\n"))
    ended = wqlab("login", lab.url, "--token-stdin", "--tree", "linux-6.12")
    path = home / ".config/wqlab/config.toml"
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"logged in to {lab.url}; kept in {path}\n"
    assert lab.seen[0].headers["authorization"] == "Bearer wql_secret_from_stdin"
    assert resolve({"HOME": str(home)}).token.value == "wql_secret_from_stdin"  # type: ignore[union-attr]
    ended = wqlab("config")
    assert ended.out == (
        f"KEY    VALUE{' ' * (len(lab.url) - 5)}  FROM\n"
        f"url    {lab.url}  {path}\n"
        f"token  {'wql_se...':{len(lab.url)}}  {path}\n"
        f"tree   {'linux-6.12':{len(lab.url)}}  {path}\n"
    )
    assert wqlab("list").code == 0


def test_a_refused_token_is_not_kept(wqlab: Wqlab, lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    lab.answers[("GET", "/api/v1/submissions")] = problem(401, "unknown token")
    monkeypatch.setattr("sys.stdin", io.StringIO("wrong\n"))
    ended = wqlab("login", lab.url, "--token-stdin")
    assert ended.code == 2
    assert ended.err.startswith("wqlab: error: list submissions: unknown token\n")
    assert not (home / ".config").exists()


def test_config_hides_the_token(wqlab: Wqlab, lab: FakeLab) -> None:
    found = json.loads(wqlab("config", "--json").out)
    assert found["url"] == {"value": lab.url, "origin": "WQLAB_URL"}
    assert TOKEN not in json.dumps(found)


def test_no_lab_is_configured(wqlab: Wqlab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_URL")
    ended = wqlab("list")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        "wqlab: error: no lab is configured\n  pass --url, set WQLAB_URL, or run `wqlab login URL`"
    )


def test_an_unreachable_lab_is_infrastructure(wqlab: Wqlab) -> None:
    ended = wqlab("--url", "http://127.0.0.1:9", "--token", "t", "list")
    assert (ended.code, ended.out) == (4, "")
    last = ended.err.splitlines()[-2:]
    assert last[0].startswith("wqlab: error: list submissions: cannot reach http://127.0.0.1:9 (")
    assert last[1] == "  check the URL and the network, and that the lab is up"
