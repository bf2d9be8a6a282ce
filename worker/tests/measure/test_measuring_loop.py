from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.enums import PAIR, Arm, Outcome
from wqlab_contracts.messages import (
    BlockFinished,
    BlockPlan,
    BootFinished,
    BootKey,
    BootVerified,
    RunJob,
    RunResult,
    Samples,
    Unsupported,
)
from wqlab_contracts.specs import Axis
from wqlab_worker.measure.raw_output import RAW_OUTPUT_LIMIT
from wqlab_worker.measure.script_calls import cells, repetitions, warming_cell

from .scripted import AB, ScriptedDevice, answer, job, key, run

# --- a run without failures -------------------------------------------------------------------------------------------


def test_run_sends_blocks_boots_and_samples_in_order() -> None:
    device = ScriptedDevice()
    result, sink = run(job(), device)
    assert result == RunResult(outcome=Outcome.PASSED)
    assert device.boots == [
        key(0, 0, Arm.BASELINE),
        key(0, 1, Arm.CANDIDATE),
        key(1, 0, Arm.CANDIDATE),
        key(1, 1, Arm.BASELINE),
    ]
    assert [event.block for event in sink.of(BlockFinished)] == [0, 1]
    assert [event.outcome for event in sink.of(BootFinished)] == [Outcome.PASSED] * 4
    # 2 settings x 2 scenarios x (1 warm-up + 2 untraced + 1 traced), in 4 boots
    samples = [(event.boot, sample) for event in sink.of(Samples) for sample in event.samples]
    assert len(samples) == 4 * 4 * 4
    identities = {(boot, s.scenario, s.setting, s.repetition, s.metric) for boot, s in samples}
    assert len(identities) == len(samples)
    assert sum(sample.warmup for _, sample in samples) == 4 * 4
    assert {sample.metric for _, sample in samples if sample.repetition == 3} == {"share"}


def test_boot_time_is_split_into_workload_and_overhead() -> None:
    _, sink = run(job(blocks=1), ScriptedDevice())
    for finished in sink.of(BootFinished):
        assert finished.workload_s == 2 * (1 + 1 + 16 + 1), "setup, warm-up, 4 repetitions of 4 cells, teardown"
        assert finished.overhead_s == pytest.approx(11.5 - 10)


def test_script_gets_parameters_and_setting_in_its_environment() -> None:
    device = ScriptedDevice()
    run(job(blocks=1), device)
    _, action, setup = device.scripts[0]
    assert (action, setup) == ("setup", {"RUNTIME": "1", "SIZE": "1M", "WQLAB_SCRATCH": "/dev/disk/by-id/a"})
    measured = next(env for _, action, env in device.scripts if action == "measure" and env["SCENARIO"] == "high")
    assert measured["SIZE"] == "2M", "the scenario's parameter wins"
    assert measured["SETTING_SCOPE"] in ("cache", "system")
    assert [action for _, action, _ in device.scripts].count("teardown") == 2


def test_setup_facts_are_in_boot_verified() -> None:
    _, sink = run(job(blocks=1), ScriptedDevice())
    assert {tuple(event.environment.items()) for event in sink.of(BootVerified)} == {
        (("HZ", "250"), ("disk", "null_blk"))
    }


def test_unsupported_plan_passes_with_unsupported_cells() -> None:
    def lack(_key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        return "fact\tdisk\tnone\nunsupported\t*\tthis device has no program fio\n" if action == "setup" else None

    device = ScriptedDevice(on_script=lack)
    result, sink = run(job(blocks=1), device)
    assert result == RunResult(outcome=Outcome.PASSED)
    assert {(event.metric, event.reason) for event in sink.of(Unsupported)} == {
        (None, "this device has no program fio")
    }
    planned = {(scenario.name, setting) for scenario in job().plan.scenarios for setting in job().profile.settings}
    for arm in PAIR:
        reported = {(event.scenario, event.setting) for event in sink.of(Unsupported) if event.boot.arm is arm}
        assert reported == planned
    assert {action for _, action, _ in device.scripts} == {"setup"}
    assert sink.of(BootVerified)[0].environment["disk"] == "none"
    assert len(sink.of(BlockFinished)) == 1


def test_raw_output_is_kept_per_boot() -> None:
    _, sink = run(job(blocks=1), ScriptedDevice())
    names = [name for _, name, _ in sink.artifacts]
    assert names == ["output-block0-0-baseline-attempt0.txt", "output-block0-1-candidate-attempt0.txt"]
    assert b"value\tspeed\t12.5" in sink.artifacts[0][2]


def test_endless_output_is_truncated_but_measured_in_full() -> None:
    """Each of 16 repetitions prints a MiB beside its values; the boot fails in its last script."""

    def chatter(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "teardown":
            return "failed\tinfrastructure\tthe last word\n"
        return answer(environment) + " " * 1_000_000 + "\n" if action == "measure" else None

    _, sink = run(job(blocks=1), ScriptedDevice(on_script=chatter))
    _, _, kept = sink.artifacts[0]
    assert RAW_OUTPUT_LIMIT <= len(kept) < RAW_OUTPUT_LIMIT + 100
    assert kept.startswith(b"# setup ")
    assert kept.rstrip().endswith(b"the last word")
    (missing,) = re.findall(rb"\n# (\d+) bytes are left out here\n", kept)
    assert int(missing) > 16 * 1_000_000 - RAW_OUTPUT_LIMIT
    first = key(0, 0, Arm.BASELINE)
    assert sum(len(event.samples) for event in sink.of(Samples) if event.boot == first) == 16


@given(st.integers(), st.integers(0, 50))
def test_order_is_shuffled_by_block_and_the_same_for_both_arms(seed: int, block: int) -> None:
    work = job(seed=seed)
    order = cells(work, block)
    assert order == cells(work, block)
    assert sorted(map(str, order)) == sorted(map(str, cells(work, block + 1)))
    assert {str(cell) for cell in order} == {f"{s} scope={v}" for s in ("low", "high") for v in ("cache", "system")}


def test_orders_differ_between_blocks() -> None:
    assert len({tuple(map(str, cells(job(), block))) for block in range(20)}) > 5


def test_repetition_numbers_continue_across_kinds() -> None:
    assert [(r.number, r.warmup, r.traced) for r in repetitions(job())] == [
        (0, True, False),
        (1, False, False),
        (2, False, False),
        (3, False, True),
    ]


def test_only_the_remaining_blocks_run() -> None:
    device = ScriptedDevice()
    work = job(blocks=3)
    run(work, device, remaining=[BlockPlan(block=2, arms=AB, first_attempt=4)])
    assert device.boots == [key(2, 0, Arm.BASELINE, 4), key(2, 1, Arm.CANDIDATE, 4)]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_setting_replaced_by_the_kernel_is_unsupported_not_failed() -> None:
    def silently_cache(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        return answer({**environment, "SETTING_SCOPE": "cache"}) if action == "measure" else None

    result, sink = run(job(blocks=1), ScriptedDevice(on_script=silently_cache))
    assert result.outcome is Outcome.PASSED
    unsupported = sink.of(Unsupported)
    assert {(event.setting, event.metric) for event in unsupported} == {("scope=system", None)}
    assert "cache" in unsupported[0].reason
    assert len(unsupported) == 4, "once per cell, not once per repetition"
    assert {s.setting for event in sink.of(Samples) for s in event.samples} == {"scope=cache"}


def test_unsupported_metric_is_reported_once_and_the_rest_measured() -> None:
    def no_tracing(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and environment["TRACE"] == "1":
            return answer(environment) + "unsupported\tshare\tno function_graph\n"
        return None

    result, sink = run(job(blocks=1), ScriptedDevice(on_script=no_tracing))
    assert result.outcome is Outcome.PASSED
    assert {(event.metric, event.reason) for event in sink.of(Unsupported)} == {("share", "no function_graph")}
    assert {s.metric for event in sink.of(Samples) for s in event.samples} == {"speed"}


def with_default_setting(seed: int = 1) -> RunJob:
    """Return a job with two scenarios under two settings, one of which is the default."""
    chosen = job(seed=seed)
    axes = [Axis(name="scope", values=["default", "cache"])]
    plan = chosen.plan.model_copy(update={"axes": axes, "reference_setting": "scope=default"})
    profile = chosen.profile.model_copy(update={"settings": ["scope=default", "scope=cache"]})
    return chosen.model_copy(update={"plan": plan, "profile": profile})


@pytest.mark.parametrize(
    ("seed", "block", "warming", "order"),
    [
        (1, 0, "high scope=cache", ["low scope=cache", "low scope=default", "high scope=default", "high scope=cache"]),
        (1, 1, "high scope=cache", ["high scope=default", "low scope=cache", "low scope=default", "high scope=cache"]),
        (1, 2, "low scope=default", ["high scope=cache", "low scope=cache", "high scope=default", "low scope=default"]),
        (2, 0, "high scope=cache", ["low scope=default", "high scope=default", "low scope=cache", "high scope=cache"]),
    ],
)
def test_order_of_a_boot_follows_from_seed_and_block(seed: int, block: int, warming: str, order: list[str]) -> None:
    work = with_default_setting(seed)
    assert [str(cell) for cell in cells(work, block)] == order
    assert str(warming_cell(work, block)) == warming


def test_every_cell_is_as_often_in_each_place_of_a_boot() -> None:
    """A default that always came first would be compared with its place: 4 cells, 4 places, 400 boots."""
    orders = [[str(cell) for cell in cells(with_default_setting(), block)] for block in range(400)]
    for place in range(4):
        found = Counter(order[place] for order in orders)
        assert len(found) == 4
        assert all(70 < times < 130 for times in found.values()), found


def test_first_call_of_a_boot_warms_it_and_is_not_compared() -> None:
    device = ScriptedDevice()
    result, sink = run(job(blocks=1), device)
    assert result.outcome is Outcome.PASSED
    first = [environment for at, action, environment in device.scripts if at.position == 0 and action == "measure"]
    order = cells(job(), 0)
    assert len(first) == 1 + 4 * len(order)
    assert (first[0]["SCENARIO"], f"scope={first[0]['SETTING_SCOPE']}") == (order[-1].scenario.name, order[-1].setting)
    assert device.monitored[0] is False
    of_cell: Counter[tuple[str, str, str, int]] = Counter(
        (each.scenario, each.setting, each.metric, each.repetition)
        for event in sink.of(Samples)
        for each in event.samples
        if event.boot.position == 0
    )
    assert set(of_cell.values()) == {1}


def test_unsupported_warm_up_leaves_its_cell_to_be_measured() -> None:
    def lack(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action == "measure" and environment["SETTING_SCOPE"] == cells(job(), 0)[-1].setting.removeprefix("scope="):
            return "unsupported\t*\tno such scope\n"
        return None

    _, sink = run(job(blocks=1), ScriptedDevice(on_script=lack))
    assert len(sink.of(Unsupported)) == 4, "once for each of two scenarios, in two boots"


def test_warm_up_that_finds_wrong_data_is_a_failure_of_the_kernel() -> None:
    def corrupt(key: BootKey, action: str, _environment: Mapping[str, str]) -> str | None:
        if action == "measure" and key.arm is Arm.CANDIDATE:
            return "failed\tkernel\tread back other data than were written\n"
        return None

    device = ScriptedDevice(on_script=corrupt)
    result, _ = run(job(blocks=1), device)
    assert result.outcome is Outcome.FAILED
    assert result.arm is Arm.CANDIDATE


def test_boot_with_one_cell_has_no_warm_up() -> None:
    chosen = job()
    profile = chosen.profile.model_copy(update={"settings": ["scope=cache"]})
    plan = chosen.plan.with_scenarios(["low"])
    assert warming_cell(chosen.model_copy(update={"plan": plan, "profile": profile}), 0) is None
