"""Generated device types: a name describes a topology, which is possible or has a problem with a fix."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from data_folder import FILES, problems, write

from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import GeneratedTopology
from wqlab_contracts.specs.devices import INSTRUMENTED_CPUS

ROOT = Path(__file__).resolve().parents[2]
INSTRUMENTED = """\
    name: counted
    summary: counts
    arch: x86_64
    topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
    emulation: {memory_mib: 512, clock: instruction}
    units: [{name: counted-1, lab: far}]
    """


def test_name_and_topology_describe_each_other() -> None:
    topology = GeneratedTopology(cpus=16, l3=4, nodes=2)
    assert topology.name == "instrumented-16c-4l3-2n"
    assert GeneratedTopology.parse(topology.name) == topology
    device_type = topology.device_type("local")
    assert device_type.name == topology.name
    assert (device_type.topology.cpus, device_type.topology.l3_domains, device_type.topology.numa_nodes) == (16, 4, 2)
    assert device_type.instrumented
    assert [(unit.name, unit.lab, unit.backend) for unit in device_type.units] == [
        ("instrumented-16c-4l3-2n-1", "local", "instrumented")
    ]


def test_size_of_cache_shards_is_a_kernel_argument() -> None:
    topology = GeneratedTopology(cpus=32, l3=1, nodes=1, shard=4)
    assert topology.name == "instrumented-32c-1l3-1n-4s"
    assert GeneratedTopology.parse(topology.name) == topology
    assert topology.describe() == "32 CPUs, 1 L3 domain, 1 NUMA node, 4 cores in a cache shard"
    assert "workqueue.cache_shard_size=4" in topology.device_type("local").variant_arguments.split()
    own = GeneratedTopology(cpus=32, l3=1, nodes=1)
    assert "cache_shard" not in own.device_type("local").variant_arguments + own.describe() + own.name


def test_costs_make_a_modelled_type() -> None:
    topology = GeneratedTopology(cpus=16, l3=2, nodes=1, shard=4, costs="ryzen-3900x")
    assert topology.name == "modelled-ryzen-3900x-16c-2l3-1n-4s"
    assert GeneratedTopology.parse(topology.name) == topology
    assert topology.describe(omit="l3") == (
        "16 CPUs, 1 NUMA node, 4 cores in a cache shard, modelled on ryzen-3900x costs"
    )
    device_type = topology.device_type("local")
    assert device_type.modelled
    assert device_type.emulation is not None
    assert device_type.emulation.profile == "ryzen-3900x"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("modelled-grace-16c-1l3-1n", ""),
        (
            "modelled-grace-16c-2l3-1n",
            "the topology needs the cost other_l3, which cost profile grace states as absent",
        ),
        ("modelled-grape-16c-1l3-1n", "no cost profile device-types/costs/grape.yaml; did you mean grace?"),
        ("modelled-xeon-2s-16c-3l3-1n", "cpus=16 do not divide into l3=3"),
    ],
)
def test_costs_must_exist_and_suit_the_topology(name: str, problem: str) -> None:
    data = load_data(ROOT)
    topology = GeneratedTopology.parse(name)
    assert topology is not None
    assert data.generated_problem(topology).startswith(problem)
    assert data.has_device_type(name) is (problem == "")


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        "modelled-3900x",
        "modelled-16c-4l3-1n",
        "instrumented-4l3",
        "instrumented-016c-4l3-1n",
        "instrumented-0c-1l3-1n",
        "instrumented-8c-1l3-1n-1",
        "instrumented-8c-1l3-1n-0s",
    ],
)
def test_other_names_are_no_generated_types(name: str) -> None:
    assert GeneratedTopology.parse(name) is None


def test_every_possible_topology_is_a_device_type_of_its_own() -> None:
    possible = [
        topology
        for cpus in range(1, INSTRUMENTED_CPUS + 1)
        for l3 in range(1, cpus + 1)
        for nodes in range(1, l3 + 1)
        if not (topology := GeneratedTopology(cpus, l3, nodes)).problem()
    ]
    assert GeneratedTopology(64, 64, 16) in possible
    assert GeneratedTopology(12, 6, 3) in possible
    types = [topology.device_type("local") for topology in possible]
    assert len({each.name for each in types}) == len(types) == len(possible)
    for topology, each in zip(possible, types, strict=True):
        assert (each.topology.cpus, each.topology.l3_domains, each.topology.numa_nodes) == (
            topology.cpus, topology.l3, topology.nodes,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("topology", "problem"),
    [
        (
            GeneratedTopology(16, 3, 1),
            "cpus=16 do not divide into l3=3: every L3 domain has equally many CPUs; use a multiple of 3 as cpus, or "
            "one of 1, 2, 4, 8, 16 as l3",
        ),
        (
            GeneratedTopology(16, 2, 4),
            "l3=2 is less than nodes=4: every NUMA node has an L3 domain of its own; use a multiple of 4 as l3, or at "
            "most 2 as nodes",
        ),
        (
            GeneratedTopology(12, 4, 3),
            "l3=4 do not divide into nodes=3: every NUMA node has equally many L3 domains; use a multiple of 3 as l3, "
            "or one of 1, 2, 4 as nodes",
        ),
        (GeneratedTopology(128, 4, 1), "cpus=128: an instrumented device has at most 64 CPUs"),
        (
            GeneratedTopology(64, 32, 32),
            "nodes=32: a generated device type has at most 16, one for each socket",
        ),
        (GeneratedTopology(16, 0, 1), "l3=0: there must be at least one; use 1 or more"),
        (GeneratedTopology(16, 4, 1, -1), "shard=-1: there must be at least one; use 1 or more"),
        (
            GeneratedTopology(16, 4, 1, 8),
            "shard=8 is more than the 4 cores of an L3 domain; use fewer, or fewer domains",
        ),
        (GeneratedTopology(16, -4, 1), "l3=-4: there must be at least one; use 1 or more"),
    ],
)
def test_impossible_topology_has_a_problem(topology: GeneratedTopology, problem: str) -> None:
    assert topology.problem() == problem
    with pytest.raises(ValueError, match=r"use|at most"):
        topology.device_type("local")


def test_folder_generates_types_for_the_lab_of_its_instrumented_type(folder: Path) -> None:
    assert not load_data(folder).has_device_type("instrumented-8c-2l3-1n"), "no worker is known to run such a device"
    write(folder, "device-types/counted.yaml", dedent(INSTRUMENTED))
    data = load_data(folder)
    generated = data.device_type("instrumented-8c-2l3-1n")
    assert [unit.lab for unit in generated.units] == ["far"]
    assert generated.boot.console_speed == 57600, "from common.yaml, as for all types"
    assert set(data.device_types) == {"counted", "tiny"}, "types of the folder only"
    assert data.device_type("tiny") is data.device_types["tiny"]
    for name in ("instrumented-8c-3l3-1n", "other"):
        assert not data.has_device_type(name)
        with pytest.raises(KeyError):
            data.device_type(name)


def test_common_defaults_must_suit_generated_types(folder: Path) -> None:
    write(folder, "device-types/counted.yaml", dedent(INSTRUMENTED) + "recipe: measure\n")
    tiny = dedent(FILES["device-types/tiny.yaml"])
    write(folder, "device-types/tiny.yaml", tiny + "recipe: measure\n")
    write(folder, "device-types/common.yaml", "recipe: missing\n")
    assert problems(folder) == [
        "device-types/common.yaml:1: recipe: no kernels/recipes/missing.yaml for generated device types"
    ]


def test_names_of_generated_types_are_reserved(folder: Path) -> None:
    name = "instrumented-2c-1l3-1n"
    write(folder, f"device-types/{name}.yaml", dedent(INSTRUMENTED).replace("counted", name))
    found = problems(folder)
    assert len(found) == 2
    assert f"name: '{name}' is the name of a generated device type; choose another" in found[0]
    assert "is the name of a device of a generated type; choose another" in found[1]


@pytest.mark.parametrize(
    ("script", "marked"),
    [
        ("window begin\n", True),
        ("\trun_fio size=1 || exit\n", True),
        ("if true; then wqmark begin; fi\n", True),
        ("# window begin is not called here\n", False),
        ("echo fine # run_fio\n", False),
        ("echo fine\n", False),
    ],
)
def test_script_marks_a_window(folder: Path, script: str, marked: bool) -> None:
    write(folder, "testplans/health-check/check.sh", script)
    assert load_data(folder).marks_window("health-check") is marked
