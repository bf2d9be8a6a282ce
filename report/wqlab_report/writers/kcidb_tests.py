"""Tests of a KCIDB document: whether the kernels of a target booted and survived, and the judged figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import Comparison, Report, TargetReport
from wqlab_contracts.api.runs import FindingView, RunView
from wqlab_contracts.enums import SEEDED, Arm, ErrorKind, NotMeasuredCause, Outcome, Question
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.kcidb import EXCERPT_LIMIT, Environment, Number, Status, Test

from ..content import cells, shared_text, survival, system_text
from ..plain_text import printable

BOOT = "boot"
"""Path by which KernelCI's dashboard recognises a boot."""
SUITE = "wqlab"
"""First part of the path of every figure."""
STATUS = {
    ErrorKind.USER: Status.ERROR,
    ErrorKind.KERNEL: Status.FAIL,
    ErrorKind.INFRASTRUCTURE: Status.MISS,
    ErrorKind.CANCELED: Status.SKIP,
}
"""Status of a test that failed. A failure of the lab is never FAIL."""
_UNKNOWN = {ErrorKind.KERNEL: Status.MISS, ErrorKind.INFRASTRUCTURE: Status.MISS}
"""Status of boots that were not judged; of other causes SKIP."""
_NOT_MEASURED = {
    NotMeasuredCause.LACKING: Status.SKIP,
    NotMeasuredCause.SETTING_NOT_USED: Status.SKIP,
    NotMeasuredCause.NO_SAMPLES: Status.ERROR,
    NotMeasuredCause.EVENTS_LOST: Status.ERROR,
    NotMeasuredCause.UNRELIABLE: Status.ERROR,
}
"""Status of a figure that is missing. One that is missing for another cause is left out: the boots say why."""
_PREFIXED_UNIT = re.compile(r"%|1/1000 .*|[num]s|[KMGT](bit|i?B)(/s)?|s/[KMGT]i?B")
"""Units with a prefix of their own, or that take none."""


@dataclass(frozen=True)
class Source:
    """What the tests of all targets are made from."""

    origin: str
    report: Report
    builds: Sequence[BuildView]
    names: Mapping[int, str]
    """Build id -> id in the document."""
    public: bool

    def build_of(self, target: TargetReport, arm: Arm) -> str | None:
        """Return the document's id of the kernel that an arm of a target booted; None if it is not known."""
        built = [each for each in self.builds if each.arm is arm and each.outcome is Outcome.PASSED]
        boots = [boot.build_id_gnu for run in self.runs(target) for boot in run.boots if boot.arm is arm]
        booted = {*boots, *([target.environment.build_id_gnu.get(arm)] if target.environment else [])} - {None, ""}
        found = [each for each in built if each.build_id_gnu in booted] or built
        return self.names[found[0].id] if len(found) == 1 else None

    def runs(self, target: TargetReport) -> list[RunView]:
        return [run for run in self.report.submission.runs if run.id == target.run_id]


def target_tests(source: Source, target: TargetReport) -> Iterator[Test]:
    """Yield the boots of both arms and the judged figures of a target, of the kernels that were built."""
    tested = survival.arm_under_test(source.report)
    environment = _environment(target)
    for arm in dict.fromkeys((Arm.BASELINE, tested)):
        build = source.build_of(target, arm)
        if build is not None:
            yield _boot(source, target, arm, build, environment)
    for cell in cells.without_models(cells.judged(target.comparisons)):
        arm = cell.kernel if cell.question is Question.SETTING and cell.kernel is not None else tested
        build = source.build_of(target, arm)
        test = _figure(source, target, cell, build, environment) if build is not None else None
        if test is not None:
            yield test


# --- boots ------------------------------------------------------------------------------------------------------


def _boot(source: Source, target: TargetReport, arm: Arm, build: str, environment: Environment) -> Test:
    found = [finding for finding in target.findings if finding.arm is arm]
    boots = survival.of_arm(source.report, target, arm)
    runs = source.runs(target)
    misc: dict[str, JsonValue] = {
        **_common(source, target),
        "arm": str(arm),
        "blocks_completed": target.blocks_completed,
        "blocks_planned": target.blocks_planned,
        "blocks_discarded": target.discarded.get(arm, 0),
        "blocks_discarded_by_lab": target.discarded_by_lab,
        "findings": [_finding(each) for each in found],
        **({"error_kind": str(boots.kind)} if boots.kind is not None else {}),
    }
    return Test(
        id=f"{source.origin}:{source.report.submission.id}.{target.run_id}.{BOOT}.{arm}",
        origin=source.origin,
        build_id=build,
        path=BOOT,
        comment=printable(boots.reason),
        environment=environment,
        status=_boot_status(boots),
        start_time=next((run.started_at for run in runs if run.started_at), None),
        log_url=_console_url(source, runs, arm),
        log_excerpt=excerpt(boots.excerpt),
        misc=misc,
    )


def _boot_status(boots: survival.Survival) -> Status:
    if boots.state is survival.State.SURVIVED:
        return Status.PASS
    if boots.state is survival.State.FAILED and boots.kind is not None:
        return STATUS[boots.kind]
    return Status.SKIP if boots.kind is None else _UNKNOWN.get(boots.kind, Status.SKIP)


def _finding(finding: FindingView) -> dict[str, JsonValue]:
    return {
        "kind": str(finding.kind),
        "title": printable(finding.title),
        "block": finding.block + 1,
        "attempt": finding.attempt + 1,
        "fatal": finding.fatal,
    }


def _console_url(source: Source, runs: Sequence[RunView], arm: Arm) -> str | None:
    """Return the address of the console of an arm's last boot; None if not everybody can read it."""
    boots = [(run, boot) for run in runs if run.consoles_deleted_at is None for boot in run.boots if boot.arm is arm]
    if not source.public or not boots:
        return None
    run, boot = boots[-1]
    return shared_text.api_address(source.report, f"runs/{run.id}/console?boot={boot.id}")


# --- figures ----------------------------------------------------------------------------------------------------


def _figure(
    source: Source, target: TargetReport, cell: Comparison, build: str, environment: Environment
) -> Test | None:
    """Return the test of a figure; None if it is missing because the run failed."""
    measured = cell.candidate
    if measured is not None:
        status = Status.DONE
    elif cell.not_measured in _NOT_MEASURED:
        status = _NOT_MEASURED[cell.not_measured]
    else:
        return None
    compared = [f"vs {cell.reference}", str(cell.kernel)] if cell.question is Question.SETTING else []
    identity = [cell.scenario, cell.setting, cell.metric, *compared]
    command = target.environment.commands.get(cell.scenario) if target.environment else None
    return Test(
        id=f"{source.origin}:{source.report.submission.id}.{target.run_id}.{'.'.join(filter(None, identity))}",
        origin=source.origin,
        build_id=build,
        path=figure_path(cell),
        comment=printable(": ".join(filter(None, [str(cell.verdict or ""), cell.reason]))) or None,
        environment=environment,
        status=status,
        number=_number(measured.mean, cell.unit) if measured is not None else None,
        misc={
            **_common(source, target),
            **_figure_misc(cell),
            **({"command": printable(command)} if command else {}),
        },
    )


def figure_path(cell: Comparison) -> str:
    """Return `wqlab.PLAN.SCENARIO[.SETTING].METRIC`, with `.vs_reference` for a setting compared with another one.

    A knob of a setting is a level of its own: `scope=cache,strict=1` becomes `scope-cache.strict-1`.
    """
    knobs = [knob.replace("=", "-") for knob in cell.setting.split(",") if knob]
    compared = ["vs_reference"] if cell.question is Question.SETTING else []
    levels = [SUITE, cell.plan, cell.scenario, *knobs, cell.metric, *compared]
    return ".".join(re.sub(r"[^A-Za-z0-9_-]", "_", level) for level in levels if level)


def _number(value: float, unit: str) -> Number:
    return Number(value=_round(value), unit=unit or None, prefix=None if _PREFIXED_UNIT.fullmatch(unit) else "metric")


def _figure_misc(cell: Comparison) -> dict[str, JsonValue]:
    """Return what the lab concluded from a figure. KCIDB has no status for a regression: the verdict is here."""
    base, measured = cell.baseline, cell.candidate
    given: dict[str, JsonValue] = {
        "verdict": None if cell.verdict is None else str(cell.verdict),
        "metric": cell.metric,
        "scenario": cell.scenario or None,
        "setting": cell.setting or None,
        "question": str(cell.question),
        "reference": cell.reference,
        "role": str(cell.role),
        "evidence": str(cell.evidence),
        "better": str(cell.direction),
        "base_value": None if base is None else base.mean,
        "base_stddev": None if base is None else base.stddev,
        "base_n": None if base is None else base.n,
        "stddev": None if measured is None else measured.stddev,
        "n": None if measured is None else measured.n,
        "n_counts": "seeds" if cell.evidence in SEEDED else "boots",
        "effect": cell.effect,
        "effect_unit": cell.effect_unit if cell.effect is not None else None,
        "interval_95": None if cell.ci95 is None else list(cell.ci95),
        "exact": cell.exact,
        "p_adjusted": cell.p_adjusted,
        "threshold": cell.delta,
        "blocks_needed": cell.blocks_needed,
        "not_measured": None if cell.not_measured is None else str(cell.not_measured),
    }
    return {name: _rounded(value) for name, value in given.items() if value is not None}


def _rounded(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return _round(value) if isinstance(value, float) else value


def _round(value: float) -> float:
    """Round to 12 significant digits. The digits after them depend on the processor that computed the value."""
    return float(f"{value:.12g}")


# --- both -------------------------------------------------------------------------------------------------------


def _common(source: Source, target: TargetReport) -> dict[str, JsonValue]:
    return {
        "submission": source.report.submission.id,
        "run": target.run_id,
        "plan": target.plan.name,
        "report_url": shared_text.address(source.report),
    }


def _environment(target: TargetReport) -> Environment:
    misc: dict[str, JsonValue] = {
        "platform": target.device_type,
        "kind": system_text.kind(target),
        "topology": dict(system_text.topology_sizes(target)),
    }
    if target.environment is not None:
        facts = target.environment.facts
        misc["device"] = printable(target.environment.device)
        misc |= {name.replace(" ", "_"): printable(facts[name]) for name in system_text.MAIN_FACTS if facts.get(name)}
    parts = [printable(target.device_summary), system_text.what_is_evidence(target)]
    return Environment(comment=", ".join(filter(None, parts)), misc=misc)


def excerpt(text: str) -> str | None:
    """Return lines of a log without control characters and within KCIDB's limit; None if there are none."""
    return shorten("\n".join(map(printable, text.splitlines())), EXCERPT_LIMIT) or None
