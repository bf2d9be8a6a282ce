"""Differences between the environments of the two arms."""

from __future__ import annotations

from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import MeasuredTopology
from wqlab_report.parts.environment import environment_of
from wqlab_server.models import Boot

TOPOLOGY = MeasuredTopology(cpus=1, core=[0], l3=[0], node=[0], package=[0])


def boot(arm: Arm, cmdline: str = "console=ttyS0", valid: bool = True, **facts: str) -> Boot:
    return Boot(
        arm=arm,
        valid=valid,
        device_name="device-1",
        topology=TOPOLOGY,
        cmdline=f"{cmdline} wqlab.token={id(facts)}",
        environment={name.replace("_", " "): value for name, value in facts.items()},
        commands={},
    )


def differences(*boots: Boot, config: list[str] | None = None) -> list[tuple[str, str, str]]:
    environment = environment_of(boots, config or [])
    assert environment is not None
    return [(each.name, each.baseline, each.candidate) for each in environment.differences]


def pairs(baseline: dict[str, str], candidate: dict[str, str], blocks: int = 2) -> list[Boot]:
    return [each for _ in range(blocks) for each in (boot(Arm.BASELINE, **baseline), boot(Arm.CANDIDATE, **candidate))]


def test_default_scope_of_both_kernels_is_reported() -> None:
    boots = pairs({"default_affinity_scope": "cache", "HZ": "250"}, {"default_affinity_scope": "numa", "HZ": "250"})
    assert differences(*boots) == [("default affinity scope", "cache", "numa")]


def test_fact_that_one_kernel_lacks_is_a_difference() -> None:
    assert differences(*pairs({}, {"sysctl_vm.new": "1"})) == [("sysctl vm.new", "not reported", "1")]


def test_fact_of_some_boots_gives_their_number() -> None:
    boots = [
        *pairs({"clock_source": "tsc"}, {"clock_source": "tsc"}),
        *pairs({"clock_source": "tsc"}, {"clock_source": "hpet"}, blocks=1),
    ]
    assert differences(*boots) == [("clock source", "tsc", "tsc in 2 boots, hpet in 1 boot")]


def test_measured_facts_are_not_compared() -> None:
    boots = [
        *pairs({"temperature": "41.0 °C", "pods": "0-1"}, {"temperature": "45.0 °C", "pods": "0-3"}, blocks=1),
        *pairs({"temperature": "42.0 °C", "pods": "0-2"}, {"temperature": "46.0 °C", "pods": "0-4"}, blocks=1),
    ]
    assert differences(*boots) == [], "the temperature is measured, and pods vary within both arms"


def test_pods_in_which_workers_ran_are_not_compared() -> None:
    boots = pairs({}, {})
    for boot in boots:
        boot.environment = {"cache_pods": "0-5 6-11"}
    boots[1].environment = {"cache_pods": "0-5"}
    assert differences(*boots) == []


def test_kernel_arguments_are_compared_without_the_labs_own() -> None:
    boots = [boot(Arm.BASELINE, "console=ttyS0 quiet"), boot(Arm.CANDIDATE, "console=ttyS0 threadirqs nohz=off")]
    assert differences(*boots) == [("kernel arguments", "quiet", "threadirqs nohz=off")]


def test_configuration_options_come_last() -> None:
    boots = pairs({"HZ": "250"}, {"HZ": "1000"})
    found = differences(*boots, config=["CONFIG_HZ 250 -> 1000", "CONFIG_NEW absent -> y"])
    assert found == [("HZ", "250", "1000"), ("CONFIG_HZ", "250", "1000"), ("CONFIG_NEW", "absent", "y")]


def test_boots_of_discarded_blocks_are_not_compared() -> None:
    boots = [*pairs({"HZ": "250"}, {"HZ": "250"}), boot(Arm.CANDIDATE, valid=False, HZ="1000")]
    assert differences(*boots) == []


def test_settings_study_has_no_second_kernel_to_differ_from() -> None:
    assert differences(boot(Arm.BASELINE, HZ="250")) == []


def test_tunables_are_shown_only_if_they_differ() -> None:
    environment = environment_of(pairs({"HZ": "250", "sysctl_vm.a": "1"}, {"HZ": "250", "sysctl_vm.a": "2"}))
    assert environment is not None
    assert environment.facts == {"HZ": "250"}
    assert [each.name for each in environment.differences] == ["sysctl vm.a"]


def test_value_that_differs_in_each_boot_is_not_listed_for_each() -> None:
    one = [boot(Arm.BASELINE, clock_source="tsc") for _ in range(20)]
    many = [boot(Arm.CANDIDATE, clock_source=f"{number}" * 1000) for number in range(10, 30)]
    ((_, _, listed),) = differences(*one, *many)
    assert listed.endswith(", other values in 16 boots")
    assert len(listed) < 2000
