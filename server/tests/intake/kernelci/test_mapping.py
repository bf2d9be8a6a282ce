"""Jobs of KernelCI as submissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.loading import DataError
from wqlab_contracts.messages import GitSeries
from wqlab_server.intake.kernelci.mapping import JobRules, Unmappable, map_job, read_rules

from .fake_api import COMMIT, job_definition

RULES = JobRules.model_validate(
    {
        "trees": {"mainline": {"tree": "torvalds", "base": "v6.17"}},
        "tests": {
            "wqlab-locks": {"plan": "locks", "parameters": {"jobs": 4}},
            "wqlab-affinity": {"plan": "affinity", "settings": ["scope=system", "scope=cache"]},
        },
        "platforms": {"board": "device"},
        "blocks": 6,
    }
)


def node(**revision: Any) -> dict[str, Any]:
    known = {"tree": "mainline", "url": "https://git.example.org/linux.git", "commit": COMMIT, "patchset": None}
    return {"id": "1" * 24, "data": {"kernel_revision": known | revision}}


def with_tests(*names: str) -> dict[str, Any]:
    return job_definition(tests=[{"id": name, "type": "wqlab"} for name in names])


def test_job_is_a_commit_against_its_base():
    request = map_job(node(), with_tests("wqlab-locks", "wqlab-affinity"), RULES)
    assert request.series is not None
    assert request.series.git == GitSeries(url="https://git.example.org/linux.git", ref=COMMIT, base="v6.17")
    assert (request.tree, request.blocks, request.priority) == ("torvalds", 6, 30)
    assert [(target.plan, target.device_type) for target in request.targets] == [
        ("locks", "device"),
        ("affinity", "device"),
    ]
    assert request.targets[0].parameters == {"jobs": 4}
    assert request.targets[1].settings == ["scope=system", "scope=cache"]


def test_type_of_a_test_is_used_if_its_id_has_no_rule():
    definition = job_definition(tests=[{"id": "locks-quick", "type": "wqlab-locks"}])
    assert map_job(node(), definition, RULES).targets[0].plan == "locks"


@pytest.mark.parametrize(
    ("revision", "definition", "reason"),
    [
        ({"tree": "next"}, with_tests("wqlab-locks"), "no rule for tree 'next'; there are: mainline"),
        ({"tree": "mainlin"}, with_tests("wqlab-locks"), "no rule for tree 'mainlin'; did you mean mainline?"),
        ({"patchset": "ab" * 32}, with_tests("wqlab-locks"), "the revision is a patchset"),
        ({"commit": "v6.18"}, with_tests("wqlab-locks"), "the revision 'v6.18' is not a commit"),
        ({"commit": None}, with_tests("wqlab-locks"), "no kernel revision with url, tree and commit"),
        ({}, with_tests("ltp-smoketest"), "no rule for test 'ltp-smoketest'"),
        ({}, with_tests("wqlab-locks", "wqlab-locks"), "two tests of the job are the same plan"),
        ({}, job_definition(tests=[]), "the job definition has no tests"),
        ({}, job_definition(tests={"id": "wqlab-locks"}), "the job definition has no tests"),
        ({}, job_definition(tests=[{}]), "the job names no test"),
        ({}, job_definition(environment={"platform": "rpi"}), "no rule for platform 'rpi'"),
        ({}, job_definition(environment=None), "the job names no platform"),
        ({}, {}, "the job names no platform"),
    ],
)
def test_job_that_the_lab_cannot_do_is_refused_with_the_reason(revision, definition, reason):
    with pytest.raises(Unmappable, match=reason):
        map_job(node(**revision), definition, RULES)


def test_rules_are_read_with_their_problems(tmp_path: Path):
    path = tmp_path / "kernelci.yaml"
    path.write_text("trees: {mainline: {tree: torvalds}}\ntests: {wqlab: {plan: locks}}\nplatforms: {board: device}\n")
    assert read_rules(path).tests["wqlab"].plan == "locks"
    path.write_text("trees: {mainline: {tre: torvalds}}\ntests: {}\nplatforms: {}\n")
    with pytest.raises(DataError, match=r"kernelci.yaml:1: .*did you mean tree\?"):
        read_rules(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_rules(tmp_path / "missing.yaml")
