"""Cost profiles of modelled devices: schema, the plugin's file, hash, and the device types that use them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from data_folder import problems, write
from pydantic import ValidationError

from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import DeviceType, Topology
from wqlab_contracts.specs.cost_profile import CostProfile, cost_profile_hash, costs_text, write_costs

REPOSITORY = Path(__file__).parents[2]
NAMES = [
    "simple",
    "multiply",
    "divide",
    "simd",
    "crypto",
    "atomic",
    "pause",
    "string",
    "l2_hit",
    "l3_hit",
    "dram",
    "within_l3",
    "other_l3",
    "other_node",
    "smt",
    "store_percent",
    "stream_percent",
    "jitter_percent",
    "l1_kib",
    "l2_kib",
    "l3_kib",
    "io",
    "ipi",
    "interrupt",
    "idle_exit",
    "idle_exit_deep",
    "idle_deep_after",
    "smt_percent",
    "quantum",
    "cluster_percent",
]
"""What the plugin expects, in this order."""


def described(**changes: Any) -> dict[str, Any]:
    """Return the content of a profile, in which a cost of None is left out."""
    source = "a table of a test"
    costs: dict[str, Any] = {}
    for name in NAMES[:-1]:
        unit = "percent" if name.endswith("_percent") else "kib" if name.endswith("_kib") else "ns"
        costs[name] = {unit: 100, "source": source}
    base = {"name": "slow", "summary": "x", "clock": {"ghz": 2.0, "source": source}, **costs, **changes}
    return {name: value for name, value in base.items() if value is not None}


def profile(**changes: Any) -> CostProfile:
    return CostProfile.model_validate(described(**changes))


def test_file_of_the_plugin_has_integers_in_its_units() -> None:
    text = costs_text(
        profile(
            simple={"cycles": 0.25, "source": "a table of a test"},
            l2_hit={"ns": 3.5, "source": "a table of a test"},
            l1_kib={"kib": 48, "source": "a table of a test"},
            store_percent={"percent": 30, "source": "a table of a test"},
            cluster_percent={"percent": [250, 100], "source": "a table of a test"},
        ),
        domains=2,
    )
    lines = dict(line.split(" ") for line in text.splitlines())
    assert list(lines) == NAMES
    assert (lines["simple"], lines["l2_hit"], lines["dram"]) == ("125", "3500", "100000")
    assert (lines["l1_kib"], lines["store_percent"], lines["cluster_percent"]) == ("48", "30", "250/100")


def test_alike_domains_have_one_number_each(tmp_path: Path) -> None:
    write_costs(profile(), tmp_path / "costs", domains=3)
    assert (tmp_path / "costs").read_text().endswith("quantum 100000\ncluster_percent 100/100/100\n")


def test_absent_costs_have_values_that_change_nothing() -> None:
    absent = {"absent": True, "source": "it has one thread"}
    lines = costs_text(profile(smt=absent, smt_percent=absent), 1).splitlines()
    assert {"smt 0", "smt_percent 100"} <= set(lines)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"summary": "another"}, True),
        ({"dram": {"ns": 100.0, "source": "another table of a test"}}, True),
        ({"dram": {"cycles": 200, "source": "the same time in cycles"}}, True),
        ({"dram": {"ns": 101, "source": "a table of a test"}}, False),
        ({"cluster_percent": {"percent": [200, 100], "source": "a table of a test"}}, False),
    ],
)
def test_hash_is_that_of_the_times(changes: dict[str, Any], same: bool) -> None:
    assert (cost_profile_hash(profile()) == cost_profile_hash(profile(**changes))) is same


SOURCE = "a table of a test"


@pytest.mark.parametrize(
    ("changes", "line_of", "message"),
    [
        ({"dram": None}, "", "dram: required field is missing"),
        ({"dram": {"ns": 80}}, "dram", "dram.source: required field is missing"),
        ({"dram": {"ns": 80, "source": "?"}}, "dram", "dram.source: String should have at least 10 characters"),
        ({"dram": {"ns": -1, "source": SOURCE}}, "dram", "dram.ns: Input should be greater than or equal to 0"),
        ({"dram": {"ns": "fast", "source": SOURCE}}, "dram", "dram.ns: Input should be a valid number"),
        ({"dram": {"source": SOURCE}}, "dram", "dram: a duration needs one of `ns` and `cycles`"),
        ({"dram": {"ns": 1, "cycles": 1, "source": SOURCE}}, "dram", "dram: a duration needs one of"),
        ({"dram": {"percent": 1, "source": SOURCE}}, "dram", "dram.percent: unknown field"),
        ({"dram": {"absent": True, "source": SOURCE}}, "dram", "dram: dram cannot be absent: every machine has it"),
        ({"simple": {"ns": 0, "source": SOURCE}}, "simple", "simple: simple is less than 0.01"),
        ({"l1_kib": {"kib": 0.5, "source": SOURCE}}, "l1_kib", "l1_kib.kib: Input should be a valid integer"),
        ({"dramm": {"ns": 1, "source": SOURCE}}, "dramm", "dramm: unknown field; did you mean dram?"),
        ({"cluster_percent": {"percent": [], "source": SOURCE}}, "cluster_percent", "at least 1 item"),
        ({"cluster_percent": {"percent": [0.4], "source": SOURCE}}, "cluster_percent", "greater than or equal to 1"),
        ({"smt_percent": {"percent": 0, "source": SOURCE}}, "smt_percent", "smt_percent is 0, not 100 to 10000"),
        ({"jitter_percent": {"percent": 120, "source": SOURCE}}, "jitter_percent", "jitter_percent is 120, not 0 to"),
    ],
)
def test_mistakes_name_file_line_and_cost(folder: Path, changes: dict[str, Any], line_of: str, message: str) -> None:
    text = yaml.safe_dump(described(**changes), sort_keys=False)
    write(folder, "device-types/costs/slow.yaml", text)
    (problem,) = problems(folder)
    start = text.splitlines().index(f"{line_of}:") + 1 if line_of else 1
    file, line, rest = problem.split(":", 2)
    assert file == "device-types/costs/slow.yaml"
    assert start <= int(line) <= start + 3
    assert message in rest


MODELLED = """
    name: modelled
    summary: a model
    arch: x86_64
    topology: {sockets: 1, l3_per_socket: 2, cores_per_l3: 1, threads_per_core: 1}
    emulation: {clock: model, profile: slow, memory_mib: 512}
    units: [{name: modelled-1}]
"""


def test_device_type_has_the_costs_of_its_profile(folder: Path) -> None:
    write(folder, "device-types/costs/slow.yaml", yaml.safe_dump(described()))
    write(folder, "device-types/modelled.yaml", MODELLED)
    data = load_data(folder)
    assert data.costs_of(data.device_types["modelled"]) == profile()
    assert data.costs_of(data.device_types["tiny"]) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "slower"}, "no valid device-types/costs/slow.yaml; did you mean slower?"),
        ({"other_l3": {"absent": True, "source": SOURCE}}, "needs the cost other_l3, which cost profile slow states"),
        (
            {"cluster_percent": {"percent": [1, 2, 3], "source": SOURCE}},
            "cluster_percent of cost profile slow has 3 numbers, not 2, the last-level cache domains",
        ),
    ],
)
def test_profile_that_does_not_suit_the_device_type(folder: Path, changes: dict[str, Any], message: str) -> None:
    content = described(**changes)
    write(folder, f"device-types/costs/{content['name']}.yaml", yaml.safe_dump(content))
    write(folder, "device-types/modelled.yaml", MODELLED)
    (problem,) = problems(folder)
    assert problem.startswith("device-types/modelled.yaml:6: emulation.profile: ")
    assert message in problem


@pytest.mark.parametrize(
    ("topology", "absent"),
    [
        ({"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 4, "threads_per_core": 2}, "smt"),
        ({"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 4, "threads_per_core": 2}, "smt_percent"),
        (
            {"sockets": 2, "l3_per_socket": 1, "cores_per_l3": 4, "threads_per_core": 1, "numa_nodes": 2},
            "other_node",
        ),
    ],
)
def test_levels_that_a_topology_needs(topology: dict[str, Any], absent: str) -> None:
    machine = Topology.model_validate(topology)
    assert profile().problem(machine) == ""
    lacking = profile(**{absent: {"absent": True, "source": SOURCE}})
    assert f"needs the cost {absent}," in lacking.problem(machine)


def test_more_threads_than_the_model_has_are_refused() -> None:
    machine = Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=4)
    assert profile().problem(machine).startswith("the topology has 4 threads a core; a modelled device has at most 2")


@pytest.mark.parametrize(
    ("emulation", "message"),
    [
        ({"clock": "model"}, "need each other"),
        ({"clock": "instruction", "profile": "slow"}, "need each other"),
        ({"profile": "slow"}, "need each other"),
        ({"clock": "model", "profile": "slow", "l3_kib": 1024}, "remove l3_kib"),
        ({"clock": "model", "profile": "slow", "l2_kib": 64, "instruction_ns": 4}, "remove l2_kib, instruction_ns"),
    ],
)
def test_contradictions_of_a_device_type(emulation: dict[str, Any], message: str) -> None:
    content = yaml.safe_load(MODELLED) | {"emulation": {"memory_mib": 512, **emulation}}
    with pytest.raises(ValidationError, match=message):
        DeviceType.model_validate(content)


def test_modelled_type_is_an_instrumented_one() -> None:
    device_type = DeviceType.model_validate(yaml.safe_load(MODELLED))
    assert device_type.modelled
    assert device_type.instrumented
    assert [unit.backend for unit in device_type.units] == ["instrumented"]
    assert DeviceType.model_validate(device_type.model_dump()) == device_type


def test_profiles_of_the_repository_have_ordered_levels() -> None:
    """A line or access from farther away never costs less, and an estimate says that it is one."""
    for each in load_data(REPOSITORY).cost_profiles.values():
        number: Callable[[str], int] = each.number
        assert number("l2_hit") <= number("l3_hit") < number("dram"), each.name
        levels = [name for name in ("smt", "within_l3", "other_l3", "other_node") if not getattr(each, name).absent]
        assert [number(name) for name in levels] == sorted(number(name) for name in levels), each.name
        assert number("quantum") < number("within_l3"), each.name
        assert number("l1_kib") <= number("l2_kib") < number("l3_kib"), each.name


def test_plan_has_the_parameters_of_modelled_devices_there() -> None:
    data = load_data(REPOSITORY)
    plan = data.plans["dm-crypt-affinity"]
    assert plan.modelled is not None
    counted, modelled = (plan.on(data.device_types[name]) for name in ("instrumented-4l3", "modelled-3900x"))
    assert counted.emulated.parameters["verify"] == "crc32c"
    assert modelled.emulated == modelled.instrumented == plan.modelled
    assert modelled.on(data.device_types["modelled-3900x"]).emulated == plan.modelled
    # A plan that states nothing about modelled devices runs there as on instrumented ones.
    plain = plan.model_copy(update={"modelled": None})
    assert plain.on(data.device_types["modelled-3900x"]).emulated == counted.emulated


def test_profile_of_modelled_devices_is_checked() -> None:
    plan = load_data(REPOSITORY).plans["dm-crypt-affinity"]
    wrong = plan.modelled.model_dump() | {"settings": ["scope=core"]} if plan.modelled is not None else None
    with pytest.raises(ValidationError, match="setting 'scope=core'"):
        type(plan).model_validate(plan.model_dump(by_alias=True) | {"modelled": wrong})
