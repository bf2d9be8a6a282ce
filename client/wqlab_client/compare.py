"""`wqlab compare FILE.csv...`: the lab's own comparison of anyone's samples, offline."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from wqlab_comparison import Samples, SamplesError, compare, conclude, read_csv, tables
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import ExitCode, Question, Role, Verdict


def compare_files(
    paths: Sequence[Path],
    references: Sequence[str] = (),
    as_json: bool = False,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> ExitCode:
    """Read samples from CSV files, compare them and print the tables (or JSON, a list of Comparison).

    All files together are one family of comparisons, as all targets of a submission are. Each of `references` is a
    setting that the others of its plan are compared with, for one plan only when written `PLAN:SETTING`; without it
    settings are not compared with each other.
    Returns REGRESSION when a primary metric of the candidate kernel got worse, USAGE for a file that cannot be read or
    compared (the reason goes to `err`), and DONE otherwise.
    """
    names = ", ".join(map(str, paths))
    try:
        samples = Samples.concatenate([read_csv(path) for path in paths])
        settings = sorted(samples.setting.words)
        chosen = _chosen(samples, references)
        found = compare(samples, references=chosen)
    except OSError as error:
        print(f"wqlab: {error.filename}: {error.strerror or error}", file=err)
        return ExitCode.USAGE
    except SamplesError as error:
        text = str(error)
        of_one = any(text.startswith(str(path)) for path in paths)
        print(f"wqlab: {text}" if of_one else f"wqlab: {names}: {text}", file=err)
        return ExitCode.USAGE
    except UnknownSetting as error:
        print(f"wqlab: no setting {str(error)!r} in {names}; there are: {', '.join(settings)}", file=err)
        return ExitCode.USAGE
    if not found:
        need = "rows of both arms" if len(settings) == 1 else "rows of both arms, or --reference SETTING"
        print(f"wqlab: {names}: nothing to compare; it takes {need}", file=err)
        return ExitCode.USAGE
    if as_json:
        json.dump([comparison.model_dump(mode="json") for comparison in found], out, indent=2)
        print(file=out)
    else:
        print("\n".join(_text(found)), file=out)
        if not references and len(settings) > 1:
            print(f"\nSettings were not compared with each other; name one: --reference '{settings[0]}'", file=out)
    return exit_code(found)


class UnknownSetting(Exception):
    """No plan was measured with it."""


def _chosen(samples: Samples, references: Sequence[str]) -> dict[str, str]:
    """Plan -> reference setting. Raises UnknownSetting."""
    cells = set(zip(samples.plan.codes.tolist(), samples.setting.codes.tolist(), strict=True))
    measured = {(samples.plan.words[plan], samples.setting.words[setting]) for plan, setting in cells}
    chosen: dict[str, str] = {}
    for reference in references:
        plan, _, setting = reference.partition(":")
        one = {(plan, setting)} & measured or {where for where in measured if where[1] == reference}
        if not one:
            raise UnknownSetting(reference)
        chosen |= dict(one)
    return chosen


def exit_code(comparisons: Sequence[Comparison]) -> ExitCode:
    """A setting worse than the reference is an answer; only a worse candidate kernel is a regression."""
    worse = any(
        comparison.verdict is Verdict.REGRESSION
        and comparison.role is Role.PRIMARY
        and comparison.question is Question.KERNEL
        for comparison in comparisons
    )
    return ExitCode.REGRESSION if worse else ExitCode.DONE


def _text(comparisons: Sequence[Comparison]) -> list[str]:
    targets: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        targets.setdefault((comparison.plan, comparison.device_type), []).append(comparison)
    lines: list[str] = []
    for (plan, device_type), group in targets.items():
        found = conclude(group)
        lines += ["", *tables.verdict_lines(f"{plan} on {device_type}", found.verdict, found.headline)]
        for table in (tables.kernel_tables(group), tables.setting_tables(group)):
            lines += ["", *table] if table else []
        reasons = tables.notes(group)
        lines += ["", "Notes:", *reasons] if reasons else []
    return [tables.printable(line) for line in lines[1:]]
