"""Check one kernel in an emulator within about a minute: it boots, reports no fault, and breaks no invariant.

Nothing is compared: a fault may be as old as the tree.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.api.report import Report
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import Arm, ErrorKind, ExitCode

from .kernels import GivenKernel
from .prepare import Wanted, prepare_emulator
from .run import measure_all
from .state import PREFIX, new_folder


@dataclass(frozen=True)
class Check:
    """One boot, and the metrics of a plan that are 0 on every kernel without a fault."""

    plan: str
    scenario: str
    zero: Sequence[str]


CHECKS = (
    Check("cmwq-load", "wl0-S", ("works_lost", "rule_violations")),
    Check("isolation", "cpumask", ("works_on_isolated",)),
)


def check(
    data: DataFolder, kernel: GivenKernel, topology: str, *, cache: Path, root: Path | None, say: Callable[[str], None]
) -> ExitCode:
    """Boot the kernel once for each of CHECKS; `say` gets a line for each. Return the exit code of the command.

    The folders `wqlab-ab-quick-PLAN` have the consoles; those of an earlier call are replaced. Raises what
    `prepare_emulator` raises.
    """
    codes = []
    for each in CHECKS:
        name = f"quick-{each.plan}"
        shutil.rmtree(f"{PREFIX}{name}", ignore_errors=True)
        folder = new_folder(name)
        wanted = Wanted(plan=each.plan, kernels={Arm.BASELINE: kernel}, blocks=1, scenarios=[each.scenario])
        prepare_emulator(folder, data, wanted, topology, cache=cache, root=root, say=lambda _: None)
        code, text = judge(each, measure_all(folder, cache, lambda _: None))
        say(f"{each.plan}: {text}" + (f"; see {folder.path.name}" if code else ""))
        codes.append(code)
    return worst(codes)


def worst(codes: Sequence[ExitCode]) -> ExitCode:
    """Return the exit code for all boots. A fault of the kernel counts more than a boot that the host lost."""
    return next((code for code in (ExitCode.SERIES_FAILED, ExitCode.INFRASTRUCTURE) if code in codes), ExitCode.DONE)


def judge(this: Check, report: Report) -> tuple[ExitCode, str]:
    """Return the exit code for one boot, and the text of its line."""
    target = report.targets[0]
    if target.findings:
        said = "; ".join(f"{each.kind.replace('_', ' ')}: {each.title}" for each in target.findings)
        return ExitCode.SERIES_FAILED, f"FAILED, {said}"
    if (failure := target.failure) is not None:
        if failure.kind is ErrorKind.KERNEL:
            return ExitCode.SERIES_FAILED, f"FAILED, {failure.summary}"
        return ExitCode.INFRASTRUCTURE, f"not checked, {failure.summary}"
    values = {each.metric: each.value for each in target.values if each.metric in this.zero}
    if broken := [f"{metric} is {value:g}, not 0" for metric, value in values.items() if value]:
        return ExitCode.SERIES_FAILED, f"FAILED, {', '.join(broken)}"
    if missing := [metric for metric in this.zero if metric not in values]:
        reasons = dict.fromkeys(each.reason for each in target.unsupported)
        return ExitCode.DONE, f"boots without a fault; not measured: {', '.join(missing)}: {'; '.join(reasons)}"
    return ExitCode.DONE, f"passed, boots without a fault, {', '.join(f'{metric} 0' for metric in this.zero)}"
