"""`wqlab devices` and its subcommands."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from example_views import at
from fakelab import FakeLab

from wqlab_contracts import cpu_layout
from wqlab_contracts.api.canaries import CanaryMetric, CanaryRecord, FalsePositiveRate, SmallestEffect
from wqlab_contracts.api.devices import DeviceCounts, DeviceTypeView, DeviceView, LeaseView
from wqlab_contracts.enums import CanaryKind, DeviceHealth, Evidence, Role, RunPurpose, Scale
from wqlab_contracts.specs import Topology

pytestmark = pytest.mark.usefixtures("frozen_clock")


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


def test_devices_are_listed_and_filtered(wqlab: Wqlab, lab: FakeLab) -> None:
    lease = LeaseView(
        run_id=7, submission_id=4, title="wq: faster", owner="ada", plan="xfs-fsync", purpose=RunPurpose.MEASURE,
        holder="host/1", fence=3, expires_at=at(660),
    )  # fmt: skip
    lab.serve(
        "/devices",
        [
            device("tiny-1", lease=lease),
            device("tiny-2", health=DeviceHealth.QUARANTINED, health_reason="console mute", health_checked_at=None),
        ],
    )
    assert wqlab("devices").out == (
        "NAME    TYPE  LAB    HEALTH       CHECKED     ACTIVITY  REASON\n"
        "tiny-1  tiny  local  good         10 min ago  run 7\n"
        "tiny-2  tiny  local  quarantined  never       idle      console mute\n"
    )
    assert [each["name"] for each in json.loads(wqlab("devices", "--health", "good", "--json").out)] == ["tiny-1"]
    assert wqlab("devices", "--type", "xeon").err == "no device matches\n"


def test_quarantine_and_release_print_the_health(wqlab: Wqlab, lab: FakeLab) -> None:
    out = device("tiny-1", health=DeviceHealth.QUARANTINED, health_reason="fan")
    lab.serve("/devices/tiny-1/quarantine", out, "POST")
    lab.serve("/devices/tiny-1/release", device("tiny-1", health=DeviceHealth.UNKNOWN), "POST")
    assert wqlab("devices", "quarantine", "tiny-1", "--reason", "fan").out == "tiny-1: quarantined (fan)\n"
    assert json.loads(lab.requests[0].body) == {"reason": "fan"}
    assert wqlab("devices", "release", "tiny-1").out == "tiny-1: unknown\n"
    assert json.loads(wqlab("devices", "release", "tiny-1", "--json").out)["health"] == "unknown"
    assert wqlab("devices", "quarantine", "tiny-1").code == 2
    assert wqlab("devices", "quarantine", "tiny-1", "--reason", "").code == 2


def test_device_types_are_listed_with_their_problems(wqlab: Wqlab, lab: FakeLab) -> None:
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
                layout=cpu_layout.declared_layout(topology),
                devices=["a", "b"],
                device_counts=DeviceCounts(good=1, busy=1, suspect=0, unknown=0, quarantined=0),
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


# --- who, where -------------------------------------------------------------------------------------------------


def test_canaries_are_listed_as_sentences_and_a_table(wqlab: Wqlab, lab: FakeLab) -> None:
    rate = FalsePositiveRate(comparisons=40, called_different=1, constant=0, rate=0.025, rate_low=0.004, rate_high=0.13)
    noisy = CanaryMetric(
        metric="bandwidth", unit="MiB/s", scale=Scale.RATIO, role=Role.PRIMARY, evidence=Evidence.PERFORMANCE,
        scenario="high", floor=0.6247, blocks=240, false_positives=rate,
        effects=[SmallestEffect(blocks=6, effect=2.104), SmallestEffect(blocks=8, effect=None)],
    )  # fmt: skip
    constant = noisy.model_copy(
        update={
            "metric": "locks",
            "floor": None,
            "effects": [],
            "false_positives": rate.model_copy(update={"comparisons": 0, "called_different": 0, "constant": 40}),
        }
    )
    record = CanaryRecord(
        device="xeon-1", device_type="xeon", plan="xfs-fsync", kind=CanaryKind.SAME_KERNEL, canaries=40, since=at(0),
        until=at(0), false_positives=rate, metrics=[noisy, constant], line="On xeon-1, 40 A/A comparisons",
    )  # fmt: skip
    lab.serve("/canaries", [record])
    assert wqlab("devices", "canaries").out == (
        "On xeon-1, 40 A/A comparisons.\n"
        "DEVICE  PLAN       ARMS         METRIC     FLOOR    6 BLOCKS  8 BLOCKS  10 BLOCKS  16 BLOCKS  "
        "CALLED DIFFERENT\n"
        "xeon-1  xfs-fsync  same kernel  bandwidth  0.625 %  2.1       none      none       none       1 of 40\n"
        "xeon-1  xfs-fsync  same kernel  locks      0        any       any       any        any        no noise\n"
    )
    assert json.loads(wqlab("devices", "canaries", "--json").out)[0]["device"] == "xeon-1"
