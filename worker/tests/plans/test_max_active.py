"""Plan max-active: its scenarios, and the functions of its script."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import AWKS, call, plan

NAME = "max-active"
NUMBERS = dict.fromkeys(
    (
        *("CPUS", "WORKS", "STEPS", "ROUNDS", "FILLERS", "POOL_QUEUES", "GREEDY_WORKS", "POLITE_WORKS"),
        *("SHARED_WORKS", "HOLD_US", "BURN_US", "STALL_MS"),
    ),
    "7",
)
RESULT = "shape fan\napplies_to each CPU\n"


def device(
    tmp_path: Path, *, nodes: int = 2, scope: str | None = "cache", mask: str = "ff", limits: tuple[str, ...] = ("4",)
) -> str:
    """sysfs of eight CPUs, with the workqueues of the module's last request."""
    files = {"devices/system/cpu/online": "0-7", "devices/virtual/workqueue/cpumask": mask}
    for node in range(nodes):
        files[f"devices/system/node/node{node}/cpulist"] = f"{8 // nodes * node}-{8 // nodes * (node + 1) - 1}"
    if scope:
        files["module/workqueue/parameters/default_affinity_scope"] = scope
    for number, limit in enumerate(limits):
        files[f"devices/virtual/workqueue/max_active-{number}/max_active"] = limit
    for name, text in files.items():
        path = tmp_path / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return str(tmp_path / "sys")


def module(tmp_path: Path) -> str:
    """The module's folder in debugfs; `start` keeps the last request."""
    folder = tmp_path / "active"
    folder.mkdir()
    (folder / "result").write_text(RESULT)
    (folder / "groups").write_text("0 0 4 4 8\n")
    return str(folder)


def test_every_shape_has_a_scenario_for_both_kinds_of_workqueue() -> None:
    found = {(str(s.parameters["shape"]), str(s.parameters["kind"])) for s in plan(NAME).scenarios}
    assert found == {(shape, kind) for shape in ("fan", "nested", "crossed", "fair") for kind in ("percpu", "unbound")}


def test_every_limit_is_measured_on_hardware() -> None:
    chosen = plan(NAME)
    [axis] = chosen.axes
    assert {chosen.knobs(setting)["max_active"] for setting in chosen.hardware.settings} == set(axis.values)


@pytest.mark.parametrize(
    ("setting", "default", "works"),
    [
        ("default", "256", "300"),  # until Linux 6.12
        ("default", "1024", "1194"),  # since 6.13
        ("4", "1024", "300"),
        ("default", "4096", "4778"),
    ],
)
def test_more_works_are_queued_than_the_limit(tmp_path: Path, setting: str, default: str, works: str) -> None:
    assert plan(NAME).emulated.parameters["works"] == 300
    command = f'echo {default} >$WORK/default-limit; spans=0; record fact request "$(request fan)"'
    numbers = {**NUMBERS, "WORKS": "300", "KIND": "percpu", "SETTING_MAX_ACTIVE": setting}
    assert f" works={works} steps=7 " in call(NAME, command, tmp_path, **numbers).facts["request"]


@pytest.mark.parametrize(
    ("kind", "nodes", "scope", "spans"),
    [
        ("unbound", 2, "cache", "0"),
        ("unbound", 2, "system", "1"),
        ("unbound", 1, "system", "0"),
        ("unbound", 2, None, "0"),
        ("percpu", 2, "system", "0"),
    ],
)
def test_pools_with_cpus_of_several_nodes_are_told_to_the_module(
    tmp_path: Path, kind: str, nodes: int, scope: str | None, spans: str
) -> None:
    sys = device(tmp_path, nodes=nodes, scope=scope)
    found = call(NAME, 'find_limit && record fact spans "$spans"', tmp_path, SYS=sys, KIND=kind)
    assert (found.facts, found.unsupported) == ({"spans": spans}, [])


def test_shares_of_nodes_are_unknown_if_unbound_works_may_not_use_all_cpus(tmp_path: Path) -> None:
    sys = device(tmp_path, mask="00000000,0000003f")
    found = call(NAME, "find_limit || record fact left yes", tmp_path, SYS=sys, KIND="unbound")
    assert found.facts == {"left": "yes"}
    assert "unbound works may use 6 of 8 CPUs here" in dict(found.unsupported)["*"]
    assert call(NAME, "find_limit", tmp_path, SYS=sys, KIND="percpu").unsupported == []


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(("mask", "cpus"), [("ff", 8), ("00000003,FFFFFFFF", 34), ("a5", 4), ("0", 0)])
def test_cpus_of_a_mask_are_counted(tmp_path: Path, awk: str, mask: str, cpus: int) -> None:
    (tmp_path / "mask").write_text(f"{mask}\n")
    command = f"AWK='{awk}'; record fact cpus \"$(allowed_cpus {tmp_path}/mask)\""
    assert call(NAME, command, tmp_path).facts == {"cpus": str(cpus)}


@pytest.mark.parametrize(
    ("setting", "limits", "found"),
    [
        ("4", ("4", "4"), {"max_active": "4"}),
        ("4", ("4", "8"), {"max_active": "4 8"}),
        ("default", ("256",), {"max_active": "default"}),
    ],
)
def test_limit_is_read_back_from_every_workqueue(
    tmp_path: Path, setting: str, limits: tuple[str, ...], found: dict[str, str]
) -> None:
    sys = device(tmp_path, limits=limits)
    command = "limit_setting setting; limit_setting setting_after"
    records = call(NAME, command, tmp_path, SYS=sys, SETTING_MAX_ACTIVE=setting, SCENARIO="fan-percpu")
    assert (records.settings, records.settings_after) == (found, found)


@pytest.mark.parametrize(
    ("shape", "requests"), [("fan", ["fan"]), ("crossed", ["crossed"]), ("fair", ["fair", "shares"])]
)
def test_requests_follow_the_scenario_and_the_setting(tmp_path: Path, shape: str, requests: list[str]) -> None:
    """`fair` sends two requests, whose results are both kept."""
    environment = {
        **NUMBERS,
        **{"SYS": device(tmp_path), "ACTIVE": module(tmp_path), "SHAPE": shape, "KIND": "percpu"},
        **{"SETTING_MAX_ACTIVE": "4", "SCENARIO": f"{shape}-percpu"},
    }
    command = "load_module() { :; }\nsettle() { :; }\nmeasure"
    found = call(NAME, command, tmp_path, **environment)
    assert found.failure is None and found.command is not None
    sent = [part.split(" cpus=")[0] for part in found.command.split("'") if part.startswith("shape=")]
    assert sent == [f"shape={request} kind=percpu max_active=4" for request in requests]
    assert [found.frame(request) for request in requests] == [RESULT.splitlines()] * len(requests)
    assert [found.frame(f"groups {request}") for request in requests] == [["0 0 4 4 8"]] * len(requests)
    assert found.facts["max_active of percpu workqueues"] == "applies to each CPU"


def test_refused_request_is_a_failure_with_the_kernels_words(tmp_path: Path) -> None:
    environment = {**NUMBERS, "ACTIVE": str(tmp_path / "none"), "KIND": "percpu"}
    command = (
        "dmesg() { echo '[ 1.0] max_active: a request is already running'; }\n"
        "echo 256 >$WORK/default-limit\nspans=0\n(perform fan) || :"
    )
    found = call(NAME, command, tmp_path, **environment)
    assert found.failure and "a request is already running" in found.failure.summary
    assert found.failure.summary.startswith("module max_active refused 'shape=fan kind=percpu max_active=0 cpus=7")


@pytest.mark.parametrize(
    ("counts", "failure"),
    [
        ("deadlocks 1\nexcess 0\n", None),
        ("deadlocks 0\nexcess 2\n", None),
        ("deadlocks 0\nexcess 0\n", "module max_active counts no deadlocks in 'shape=nested', which has some"),
    ],
)
def test_module_that_notices_nothing_is_not_trusted(tmp_path: Path, counts: str, failure: str | None) -> None:
    """A kernel that ignores the limit has no deadlock, and is measured."""
    folder = Path(module(tmp_path))
    (folder / "result").write_text(counts)
    found = call(NAME, "(notices deadlocks shape=nested) || :", tmp_path, ACTIVE=str(folder))
    assert (found.failure and found.failure.summary) == failure
