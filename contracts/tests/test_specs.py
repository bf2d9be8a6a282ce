"""Models of the data folder: settings, profiles, power, conditions."""

from pathlib import Path

import pytest
from data_folder import problems
from pydantic import ValidationError

from wqlab_contracts.enums import Evidence, Role
from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import INSTRUMENTED_BLOCKS, Metric, Profile

ROOT = Path(__file__).parents[2]


def test_setting_may_omit_a_knob_with_a_default(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    local = "{name: local, values: ['0', '1'], default: '0'}"
    path.write_text(path.read_text().replace("axes: [", f"axes: [{local}, "))
    plan = load_data(folder).plans["health-check"]
    plan.check_setting("local=1,strict=0")
    assert plan.knobs("strict=1") == {"local": "0", "strict": "1"}
    assert plan.knobs("local=1,strict=1") == {"local": "1", "strict": "1"}
    with pytest.raises(ValueError, match="has no value for strict"):
        plan.check_setting("local=1")
    with pytest.raises(ValueError, match="not canonical: write 'strict=0'"):
        plan.check_setting("local=0,strict=0")


def test_profile_can_select_scenarios(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    text = path.read_text().replace("{name: alive, summary: up}", "{name: alive, summary: up}, {name: b, summary: s}")
    path.write_text(text.replace("emulated: {", "emulated: {scenarios: [b], "))
    plan = load_data(folder).plans["health-check"]
    assert [each.name for each in plan.measured(None, emulated=False).scenarios] == ["alive", "b"]
    assert [each.name for each in plan.measured(None, emulated=True).scenarios] == ["b"]
    chosen = plan.measured(["alive"], emulated=True)
    assert [each.name for each in chosen.scenarios] == ["alive"]
    # The plan is sent to workers and stored in rows, so it must survive serialisation.
    assert type(plan).model_validate_json(chosen.model_dump_json(by_alias=True)) == chosen
    path.write_text(text.replace("emulated: {", "emulated: {scenarios: [c], "))
    (problem,) = problems(folder)
    assert problem.endswith("profile for unknown scenario 'c' (scenarios: alive, b)")


@pytest.mark.parametrize(
    ("old", "new", "power_off_s"),
    [
        ("", "", 0),
        ("  golden_timeout_s: 30", "  power_off_s: 3", 3),
        ("emulation:\n  memory_mib: 1024\n", "", 2),
    ],
)
def test_emulated_device_has_no_power_off_time_by_default(folder: Path, old: str, new: str, power_off_s: float) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace(old, new))
    assert load_data(folder).device_types["tiny"].boot.power_off_s == power_off_s


@pytest.mark.parametrize("smt", ["", "  smt: false\n"])
def test_irq_affinity_allows_gaps_in_cpu_numbers_without_smt(folder: Path, smt: str) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace("emulation:", f"conditions:\n  irq_affinity: 0,2\n{smt}emulation:"))
    if smt:
        assert load_data(folder).device_types["tiny"].conditions.irq_affinity == "0,2"
    else:
        assert "no CPU 2" in problems(folder)[0]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("ipmitool -P 'a b", "No closing quotation"),
        ("'   '", "it names no program"),
        ("""'"" on'""", "it names no program"),
    ],
)
def test_invalid_power_command_is_rejected(folder: Path, command: str, message: str) -> None:
    path = folder / "device-types/tiny.yaml"
    power = f"tiny-2\n    power:\n      turn_on: ipmitool -P 'a b' on\n      turn_off: {command}"
    path.write_text(path.read_text().replace("tiny-2", power))
    assert problems(folder) == [f"device-types/tiny.yaml:14: units[1].power.turn_off: not a command: {message}"]


def test_every_plan_has_the_metrics_of_instrumented_devices(folder: Path) -> None:
    plan = load_data(folder).plans["health-check"]
    instrumented = plan.for_instrumented()
    assert [each.name for each in instrumented.metrics if each.role(emulated=True) is Role.PRIMARY] == [
        "kernel_instructions_per_op"
    ]
    assert {each.evidence(emulated=True) for each in instrumented.metrics} == {Evidence.INSTRUMENTED}
    profile = instrumented.profile(emulated=True)
    assert (profile.repetitions.warmup, profile.repetitions.untraced, profile.repetitions.traced) == (0, 1, 0)
    assert profile.blocks == INSTRUMENTED_BLOCKS
    # The plan is sent to workers and stored in rows, so it must survive serialisation.
    assert type(plan).model_validate_json(instrumented.model_dump_json(by_alias=True)) == instrumented


def test_plan_can_state_its_instrumented_profile(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    text = path.read_text()
    path.write_text(text + "operations: fsyncs\ninstrumented: {settings: [strict=1], blocks: 8}\n")
    plan = load_data(folder).plans["health-check"].for_instrumented()
    assert (plan.profile(emulated=True).settings, plan.profile(emulated=True).blocks) == (["strict=1"], 8)
    assert plan.operations == "fsyncs"
    path.write_text(text + "instrumented: {settings: [strict=2]}\n")
    assert "strict takes 0, 1, not '2'" in problems(folder)[0]


def test_devices_with_many_cpus_have_parameters_of_their_own() -> None:
    profile = Profile(
        parameters={"jobs": 4, "size": 100}, from_cpus={8: {"size": 50}, 16: {"size": 20, "jobs": 2}}, settings=[""]
    )
    sizes = {cpus: profile.on_cpus(cpus).parameters for cpus in (2, 7, 8, 15, 16, 64)}
    assert sizes[2] == sizes[7] == {"jobs": 4, "size": 100}
    assert sizes[8] == sizes[15] == {"jobs": 4, "size": 50}
    assert sizes[16] == sizes[64] == {"jobs": 2, "size": 20}
    assert profile.on_cpus(8).on_cpus(16) == profile.on_cpus(8)
    with pytest.raises(ValidationError, match="from_cpus 8: width is not among the profile's parameters"):
        Profile(parameters={"size": 100}, from_cpus={8: {"width": 1}}, settings=[""])


def test_plan_is_sized_for_the_device_type() -> None:
    data = load_data(ROOT)
    plan, of = data.plans["xfs-fsync"], data.device_types
    small, large = (plan.on(of[name]).profile(emulated=True) for name in ("instrumented-4l3", "instrumented-2s"))
    assert small.parameters == plan.instrumented_profile.parameters
    assert large.parameters["file_kib"] < small.parameters["file_kib"]
    assert not plan.on(of["instrumented-2s"]).instrumented_profile.from_cpus


@pytest.mark.parametrize(
    ("name", "metric_class", "message"),
    [
        ("cycles_per_op", "instrumented", "a plan cannot define metrics of class instrumented"),
        ("locked_per_op", "mechanism", "metric locked_per_op is measured on instrumented devices"),
    ],
)
def test_plan_cannot_define_instrumented_metrics(folder: Path, name: str, metric_class: str, message: str) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    metric = (
        f"{{name: {name}, summary: s, unit: u, scale: ratio, direction: none, class: {metric_class}, "
        "taken_from: untraced}"
    )
    assert "metrics: []" in path.read_text()
    path.write_text(path.read_text().replace("metrics: []", f"metrics: [{metric}]"))
    assert message in problems(folder)[0]


def test_only_mechanism_metrics_have_an_emulator_delta() -> None:
    metric = {
        "name": "bandwidth", "summary": "", "unit": "MiB/s", "scale": "ratio", "direction": "higher_is_better",
        "taken_from": "untraced", "emulator_delta": 11,
    }  # fmt: skip
    assert Metric.model_validate(metric | {"class": "mechanism"}).least_effect(emulated=True) == 11
    with pytest.raises(ValidationError, match="bandwidth has an emulator_delta, but emulated devices"):
        Metric.model_validate(metric | {"class": "performance"})
