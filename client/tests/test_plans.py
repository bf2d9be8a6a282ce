"""`wqlab plans` and `wqlab trees`."""

from __future__ import annotations

import json

from commandline import Wqlab
from fakelab import FakeLab

from wqlab_contracts.api.plans import PlanView, TreeView
from wqlab_contracts.specs import TestPlan, Tree

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


def test_plans_are_listed_and_described(wqlab: Wqlab, lab: FakeLab) -> None:
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
        "  on instrumented devices: 6 blocks, 0 warm-up + 1 untraced + 0 traced repetitions\n"
        "    settings: scope=cache; scope=system\n"
        "  metric l3_share (%, higher is better, primary on emulated devices, delta 0.5 %): work on the queueing L3\n"
        "  on instrumented devices, instead of these metrics: kernel_instructions_per_op (primary), "
        "instructions_per_op, transfers_across_l3_per_op, transfers_within_l3_per_op, transfers_across_nodes_per_op, "
        "pool_lock_transfers_per_op, locked_per_op, touched_instructions_per_op, touched_transfers_per_op\n"
    )
    assert wqlab("plans", "dm-crypt-affinity", "--script").out == PLAN.script
    found = json.loads(wqlab("plans", "dm-crypt-affinity", "--json").out)
    assert found["plan"]["metrics"][0]["class"] == "mechanism"
    ended = wqlab("plans", "xfs")
    assert (ended.code, ended.out) == (2, "")
    assert "the lab has no plan 'xfs'\n  its plans: dm-crypt-affinity\n" in ended.err


def test_trees_are_listed(wqlab: Wqlab, lab: FakeLab) -> None:
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
