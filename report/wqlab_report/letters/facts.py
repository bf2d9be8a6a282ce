"""The facts at the end of a letter, with which a reader can judge a figure and reproduce it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import Outcome, SubmissionState

from ..content import failures, shared_text, system_text
from ..document.shell import workload
from . import lines

INDENT = "    "
TARGETS = 2
"""Most targets whose machines are described."""
DIFFERENCES = 4
"""Most lines of what differs between the kernels besides the series."""
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")
_MACHINE = ("CPU model", "microcode", "governor", "SMT", "mitigations", "preemption", "HZ", "wq scope")
_GUEST = ("preemption", "HZ", "SMT", "mitigations", "wq scope")
"""Facts of a machine, and those of them that mean something in an emulated guest."""


def facts(report: Report, targets: Sequence[TargetReport]) -> list[str]:
    """Return base, configuration, compiler, machine, workload and boots of the shown targets."""
    found = [*lines.fact("Base", base(report), 3), *_config(report), *_compiler(report)]
    for target in targets[: 1 if report.sweep else TARGETS]:
        found += _differences(target)
        found += machine(target, named=len(targets) > 1)
    return found


def base(report: Report) -> str:
    """Return the base as a tag or commit that anyone can fetch, with the Debian package if it is one."""
    apply = report.submission.apply
    if not apply.base_commit:
        return ""
    origin = shared_text.public_origin(report)
    release = apply.release or ""
    if "://" in origin or not _RELEASE.fullmatch(release):
        where = f" of {origin}" if origin else f" of tree {report.submission.tree}"
        return f"{apply.base_commit[:12]}{where}{f' ({release})' if release else ''}"
    debian = apply.base_package or origin or report.submission.tree
    return f"v{release} of linux-stable with the patches of Debian's {debian}"


def machine(target: TargetReport, *, named: bool) -> list[str]:
    """Return the machine or the emulator with its guest, the workload, and the boots with those discarded."""
    known = dict(system_text.system(target))
    topology = system_text.platform(target).topology
    name = f"{failures.name(target)}: " if named else ""
    facts_of = _GUEST if target.emulated else _MACHINE
    details = "; ".join(f"{each} {known[each]}" for each in facts_of if each in known)
    where = "Guest" if target.emulated else "Machine"
    device = "" if target.emulated or target.environment is None else f"{target.environment.device}: "
    scale = known.get("scale", "").partition(" (")[0]
    boots = shared_text.block_counts(target)
    repeated = "" if target.byte_identical else f"; {shared_text.repetitions(target)} a boot"
    return [
        *lines.fact("Emulator", known.get("emulator", "") if target.emulated else "", 1),
        *lines.fact(where, f"{name}{device}{topology}{f'; {details}' if details else ''}", 5),
        *lines.fact("Workload", f"{target.plan.summary}{f'; {scale}' if scale else ''}", 3),
        *lines.fact("Boots", f"{boots}{repeated}", 3),
    ]


def reproduce(report: Report, targets: Sequence[TargetReport]) -> list[str]:
    """Return the commands that compute the verdicts again and measure again."""
    number = report.submission.id
    if report.submission.state is not SubmissionState.FINISHED or not failures.applies_rebuilding(report):
        return []
    return [
        "To reproduce; without --run it computes the verdicts again, offline:",
        f"{INDENT}wqlab --url {report.lab_url.rstrip('/')} bundle {number} -o {number}.zip",
        f"{INDENT}wqlab replay {number}.zip --run",
        *workload(targets, INDENT, lines.WIDTH - len(INDENT)),
    ]


def raw_data(report: Report) -> list[str]:
    """Return the addresses of the report and of all its figures."""
    address = shared_text.address(report)
    return [f"Report:    {address}", f"Raw data:  {address}.json"]


def _config(report: Report) -> list[str]:
    if report.config_diff:
        return lines.fact("Config", f"DIFFERS, baseline -> candidate: {'; '.join(report.config_diff)}", 4)
    built = [build for build in shared_text.kernels(report) if build.outcome is Outcome.PASSED]
    if not built:
        return []
    note = f", {system_text.configuration_note(report)}" if len({build.arm for build in built}) > 1 else ""
    link = shared_text.api_address(report, f"builds/{built[0].id}/config")
    return [*lines.fact("Config", f"recipe {built[0].recipe}{note}"), f"{'':{lines.LABEL}}{link}"]


def _compiler(report: Report) -> list[str]:
    return lines.fact("Compiler", "; ".join(shared_text.compilers(shared_text.kernels(report))))


def _differences(target: TargetReport) -> list[str]:
    """Return what differs between the kernels' boots besides the configuration, which has a line of its own."""
    found = [
        f"{each.name}: {system_text.per_arm(each)}"
        for each in (target.environment.differences if target.environment else [])
        if not each.name.startswith("CONFIG_")
    ]
    return lines.fact("DIFFERS", "; ".join(found), DIFFERENCES)
