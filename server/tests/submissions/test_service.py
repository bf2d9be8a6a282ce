"""Creation of submissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import JobState
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import GitSeries, MboxSeries, Series, Target
from wqlab_contracts.specs import INSTRUMENTED_METRICS, KernelRecipe, Tree
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Apply
from wqlab_server.submissions import service
from wqlab_server.submissions.quote_service import make_quote

from ..support.lab import SERIES, LabUnderTest

CHECKOUT = Path(__file__).parents[3]
MBOX = """From 1234 Mon Sep 17 00:00:00 2001
From: Dev <dev@example.org>
Subject: [PATCH v2 1/1] workqueue: take
 fewer locks
Message-ID: <1@example.org>

---
diff --git a/x b/x
--- a/x
+++ b/x
@@ -1 +1 @@
-a
+b
"""


@pytest.mark.integration
def test_title_before_the_series_is_applied(lab: LabUnderTest) -> None:
    mailbox = lab.submission(lab.submit("locks@device", series=Series(mbox=MboxSeries(text=MBOX))))
    assert mailbox.title == "[PATCH v2 1/1] workqueue: take fewer locks"
    assert mailbox.series_key == "workqueue: take fewer locks"
    study = lab.submission(lab.submit("affinity@device", series=None))
    assert study.title == "settings study: affinity on device"
    branch = lab.submission(lab.submit("locks@device"))
    assert branch.title == "flush-locks of https://git.example.org/dev/linux.git"


@pytest.mark.integration
def test_run_contains_the_requested_settings(lab: LabUnderTest) -> None:
    request = SubmissionRequest(
        series=None,
        tree="lab-tree",
        targets=[
            Target(
                plan="affinity",
                device_type="device",
                settings=["scope=system", "scope=cache"],
            )
        ],
        blocks=4,
        priority=70,
    )
    with lab.transaction() as session:
        submission = service.create(session, lab.data, lab.settings, request, "dev")
    (run,) = lab.runs(submission.id)
    assert run.state is JobState.WAITING
    assert run.profile.settings == ["scope=system", "scope=cache"]
    assert (run.priority, len(run.blocks), run.profile.blocks) == (70, 4, 4)
    assert run.files == {"run.sh": "#!/bin/sh\n"}
    assert run.fragments == {"base": "CONFIG_SMP=y\n"}


@pytest.mark.integration
def test_scenarios_default_to_those_of_emulated_or_real_devices(lab: LabUnderTest) -> None:
    data = load_data(CHECKOUT)
    target = Target(plan="netperf-stream", device_type="tiny")
    request = SubmissionRequest(series=Series(mbox=MboxSeries(text=MBOX)), tree="linux-6.12", targets=[target])
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev")
    (run,) = lab.runs(submission.id)
    assert [scenario.name for scenario in run.plan.scenarios] == data.plans["netperf-stream"].emulated.scenarios


@pytest.mark.integration
def test_a_series_is_looked_for_in_the_other_trees(lab: LabUnderTest) -> None:
    other = Tree(name="newer", summary="a newer one", debian_source="linux-source-9.9")
    data = replace(lab.data, trees={**lab.data.trees, "newer": other})
    target = Target(plan="locks", device_type="device")
    request = SubmissionRequest(series=SERIES, tree="lab-tree", targets=[target])
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev")
        apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
        assert apply.payload.others == [other]


@pytest.mark.integration
def test_only_requested_scenarios_are_measured(lab: LabUnderTest) -> None:
    crypt = load_data(CHECKOUT)
    target = Target(plan="dm-crypt-affinity", device_type="ryzen-3900x", scenarios=["LOW", "HIGH"])
    request = SubmissionRequest(series=None, tree="linux-6.12", targets=[target])
    with lab.transaction() as session:
        submission = service.create(session, crypt, lab.settings, request, "dev")
    (run,) = lab.runs(submission.id)
    assert [scenario.name for scenario in run.plan.scenarios] == ["HIGH", "LOW"]
    assert {reference.scenario for reference in run.plan.references} == {"HIGH", "LOW"}

    wrong = target.model_copy(update={"scenarios": ["HIHG", "LOW", "LOW"]})
    with pytest.raises(ApiProblem) as caught, lab.transaction() as session:
        service.create(session, crypt, lab.settings, request.model_copy(update={"targets": [wrong]}), "dev")
    assert caught.value.errors == [
        {
            "pointer": "/targets/0/scenarios/0",
            "detail": "plan dm-crypt-affinity has no scenario 'HIHG'; did you mean HIGH?",
        },
        {"pointer": "/targets/0/scenarios/2", "detail": "'LOW' is listed twice"},
    ]


@pytest.mark.integration
def test_requested_recipe_overrides_the_device_types(lab: LabUnderTest) -> None:
    request = SubmissionRequest(
        series=None,
        tree="linux-6.12",
        targets=[Target(plan="dm-crypt-affinity", device_type="ryzen-3900x")],
        recipe="debug",
    )
    data = load_data(CHECKOUT)
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev")
    (run,) = lab.runs(submission.id)
    assert run.recipe == data.recipes["debug"]
    assert "CONFIG_KASAN=y" in run.fragments["debug"]
    usual = data.plans["dm-crypt-affinity"].emulated
    repetitions = run.profile.repetitions
    assert (repetitions.warmup, repetitions.untraced, repetitions.traced) == (0, 1, 0), "no figure is taken"
    assert run.profile.measure_timeout_s > usual.measure_timeout_s
    assert run.profile.settings == usual.settings


@pytest.mark.integration
def test_fragments_of_a_plan_are_added_to_the_recipe(lab: LabUnderTest) -> None:
    targets = [Target(plan=plan, device_type="ryzen-3900x") for plan in ("dm-crypt-affinity", "wireguard", "btrfs")]
    request = SubmissionRequest(series=SERIES, tree="linux-6.12", targets=targets)
    data = load_data(CHECKOUT)
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev").id
        debug = service.create(session, data, lab.settings, request.model_copy(update={"recipe": "debug"}), "dev").id
    names = [run.recipe.name for run in lab.runs(submission)]
    assert names == ["measure", "measure-with-subsystems", "measure-with-subsystems"]
    plain, tunnel, _ = lab.runs(submission)
    assert tunnel.recipe.fragments == [*plain.recipe.fragments, "subsystems"]
    assert tunnel.fragments.keys() == {*plain.fragments, "subsystems"}
    assert "CONFIG_WIREGUARD=m" in tunnel.fragments["subsystems"]
    assert [run.recipe.name for run in lab.runs(debug)] == ["debug", *["debug-with-subsystems"] * 2]
    assert not lab.runs(debug)[1].recipe.figures
    with lab.transaction() as session:
        quoted = make_quote(session, data, lab.settings, request, "dev")
    assert [each.recipe for each in quoted.builds] == ["measure", "measure-with-subsystems"]


def test_long_name_of_a_recipe_with_fragments_stays_valid_and_unique() -> None:
    recipe = KernelRecipe(name="a" * 60, summary="s", fragments=["base"])
    one, other = recipe.with_fragments(["one"]), recipe.with_fragments(["other"])
    assert one.name != other.name
    assert KernelRecipe.model_validate(one.model_dump()) == one
    assert one.with_fragments(["one", "base"]) is one


@pytest.mark.integration
def test_request_with_mistakes_creates_nothing(lab: LabUnderTest) -> None:
    request = SubmissionRequest(
        series=Series(git=GitSeries(url="https://git.example.org/x.git", ref="b")),
        tree="no-tree",
        targets=[Target(plan="no-plan", device_type="device"), Target(plan="locks", device_type="no-type")],
    )
    with pytest.raises(ApiProblem) as caught, lab.transaction() as session:
        service.create(session, lab.data, lab.settings, request, "dev")
    assert {error["pointer"] for error in caught.value.errors} >= {
        "/tree",
        "/targets/0/plan",
        "/targets/1/device_type",
    }
    with lab.transaction() as session:
        assert session.scalars(select(Apply)).all() == []


@pytest.mark.integration
def test_targets_with_different_compilers_are_refused(lab: LabUnderTest) -> None:
    recipes = lab.settings.data_dir / "kernels/recipes"
    recipes.joinpath("other.yaml").write_text("name: other\nsummary: s\ntoolchain: clang\nfragments: [base]\n")
    single = lab.settings.data_dir / "device-types/single.yaml"
    single.write_text(single.read_text() + "recipe: other\n")
    lab.app.state.data._checked_at = float("-inf")
    with pytest.raises(ApiProblem, match="different compilers"):
        lab.submit("locks@device", "locks@single")


@pytest.mark.integration
def test_instrumented_device_measures_counts_under_six_seeds_by_default(lab: LabUnderTest) -> None:
    data = load_data(CHECKOUT)
    target = Target(plan="xfs-fsync", device_type="instrumented-tiny")
    control = Series(mbox=MboxSeries(text=data.noise_control))
    request = SubmissionRequest(series=control, tree="linux-6.12", targets=[target])
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev")
        more = service.create(session, data, lab.settings, request.model_copy(update={"blocks": 8}), "dev")
    (run,), (longer,) = lab.runs(submission.id), lab.runs(more.id)
    assert submission.noise_control
    assert [metric.name for metric in run.plan.metrics] == [metric.name for metric in INSTRUMENTED_METRICS]
    assert (len(run.blocks), len(longer.blocks)) == (data.plans["xfs-fsync"].instrumented_profile.blocks, 8)
    assert run.profile.repetitions.traced == 0
    with lab.transaction() as session:
        quotes = [
            make_quote(session, data, lab.settings, each, "dev").targets[0]
            for each in (request, request.model_copy(update={"blocks": 8}))
        ]
    assert [quote.blocks for quote in quotes] == [6, 8]
    (why,) = [note for note in quotes[0].notes if note.startswith("6 seeds")]
    assert "the noise floor of xfs-fsync on instrumented-tiny is not measured" in why
    assert not any("seeds" in note for note in quotes[1].notes), "the request chose their number"


@pytest.mark.integration
def test_request_can_have_another_number_of_repetitions(lab: LabUnderTest) -> None:
    data = load_data(CHECKOUT)
    targets = [Target(plan="xfs-fsync", device_type=name) for name in ("xeon-2s", "instrumented-tiny")]
    request = SubmissionRequest(
        series=Series(mbox=MboxSeries(text=data.noise_control)), tree="linux-6.12", targets=targets, repetitions=3
    )
    with lab.transaction() as session:
        submission = service.create(session, data, lab.settings, request, "dev")
        debug = service.create(session, data, lab.settings, request.model_copy(update={"recipe": "debug"}), "dev")
    plan = data.plans["xfs-fsync"]
    assert [run.profile.repetitions for run in lab.runs(submission.id)] == [
        profile.repetitions.model_copy(update={"untraced": 3}) for profile in (plan.emulated, plan.instrumented_profile)
    ]
    assert {run.profile.repetitions.untraced for run in lab.runs(debug.id)} == {1}, "a debug kernel gives no figures"
