"""Map a job of KernelCI to a submission. Pure: rules, node and job definition in, request out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.loading import DataError
from wqlab_contracts.messages import GitSeries, Series, Target
from wqlab_contracts.specs import Name, Strict
from wqlab_contracts.yamlfile import Document, suggest_name

from .api import Node, child

_COMMIT = re.compile(r"[0-9a-f]{40}")


class Unmappable(Exception):
    """The lab cannot do the job; the text says why. It is written back to KernelCI."""


class TreeRule(Strict):
    """How to measure commits of one of KernelCI's trees."""

    tree: Name
    """The lab's tree, which has the baseline."""
    base: str | None = None
    """Commit or tag of the baseline, an ancestor of the commit; none: the merge base with the lab's tree."""


class TestRule(Strict):
    """What to measure for one of KernelCI's tests."""

    plan: Name
    scenarios: list[Name] | None = None
    settings: list[str] | None = None
    parameters: dict[str, str | int | float] = Field(default_factory=dict)


class JobRules(Strict):
    """Content of the file that `kernelci_jobs_file` names."""

    trees: dict[str, TreeRule]
    """By the name of KernelCI's tree."""
    tests: dict[str, TestRule]
    """By the id or else the type of a test in the job definition."""
    platforms: dict[str, str]
    """KernelCI's platform -> device type."""
    blocks: int | None = Field(default=None, ge=1, le=100)
    priority: int = Field(default=30, ge=0, le=100)


def read_rules(path: Path) -> JobRules:
    """Read the rules. Raises DataError with all problems of the file."""
    document = Document.read(path, path.name)
    rules = document.validate_as(JobRules)
    if rules is None:
        raise DataError(document.problems)
    return rules


def map_job(node: Node, definition: Mapping[str, Any], rules: JobRules) -> SubmissionRequest:
    """Return the submission that a job asks for: a commit against its base. Raises Unmappable with the reason.

    The lab builds the kernels itself, both arms with one recipe: the kernel in the job definition has no baseline that
    was built alike.
    """
    url, tree, commit, rule = _revision(node, rules)
    platform = child(definition, "environment", "platform")
    device_type = _named("platform", platform, rules.platforms)
    targets = [_target(test, device_type, rules) for test in _tests(definition)]
    if len({target.plan for target in targets}) < len(targets):
        raise Unmappable("two tests of the job are the same plan")
    try:
        return SubmissionRequest(
            series=Series(git=GitSeries(url=url, ref=commit, base=rule.base)),
            tree=rule.tree,
            targets=targets,
            blocks=rules.blocks,
            priority=rules.priority,
        )
    except ValidationError as error:
        raise Unmappable(f"{tree}: {error.errors(include_url=False)[0]['msg']}") from None


def _revision(node: Node, rules: JobRules) -> tuple[str, str, str, TreeRule]:
    revision = child(node, "data", "kernel_revision")
    url, tree, commit = (child(revision, name) for name in ("url", "tree", "commit"))
    if not all(isinstance(each, str) for each in (url, tree, commit)):
        raise Unmappable("the job's node has no kernel revision with url, tree and commit")
    if child(revision, "patchset"):
        raise Unmappable("the revision is a patchset: the job does not name its patches, only the commit they are on")
    if not _COMMIT.fullmatch(commit):
        raise Unmappable(f"the revision {commit[:80]!r} is not a commit")
    return url, tree, commit, _named("tree", tree, rules.trees)


def _tests(definition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tests = child(definition, "tests")
    if not isinstance(tests, list) or not tests or not all(isinstance(test, Mapping) for test in tests):
        raise Unmappable("the job definition has no tests")
    return tests


def _target(test: Mapping[str, Any], device_type: str, rules: JobRules) -> Target:
    named = [name for name in (test.get("id"), test.get("type")) if isinstance(name, str)]
    name = next((name for name in named if name in rules.tests), named[0] if named else None)
    rule = _named("test", name, rules.tests)
    try:
        return Target(device_type=device_type, **rule.model_dump())
    except ValidationError as error:
        raise Unmappable(f"test {name}: {error.errors(include_url=False)[0]['msg']}") from None


def _named(kind: str, name: object, known: Mapping[str, Any]) -> Any:
    if not isinstance(name, str):
        raise Unmappable(f"the job names no {kind}")
    if name not in known:
        raise Unmappable(f"this lab has no rule for {kind} {name[:80]!r}; {suggest_name(name, known)}")
    return known[name]
