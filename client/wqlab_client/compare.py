"""`wqlab compare FILE.csv...`: compare samples from CSV files offline, as the lab does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from wqlab_comparison import CsvError, Samples, SamplesError, compare, is_regression, read_csv
from wqlab_contracts.enums import ExitCode
from wqlab_contracts.text import clean
from wqlab_report.comparisons import comparisons_text

if TYPE_CHECKING:
    from wqlab_contracts.api.report import Comparison


def compare_files(
    paths: Sequence[Path],
    references: Sequence[str] = (),
    *,
    looks: Sequence[int] = (),
    as_json: bool = False,
    out: TextIO = sys.stdout,
    err: TextIO = sys.stderr,
) -> ExitCode:
    """Read samples from CSV files, compare them and print the tables (or JSON, a list of Comparison).

    All files together are one family of comparisons, as all targets of a submission are. Each of `references` is a
    setting with which the other settings of its plan are compared; `PLAN:SETTING` restricts it to one plan. Without a
    reference, settings are not compared with each other. `looks`: numbers of blocks after which the runs could stop.
    Returns REGRESSION if a primary metric of the candidate kernel got worse, USAGE if a file cannot be read or
    compared (the reason is written to `err`), and DONE otherwise.
    """
    names = ", ".join(map(str, paths))
    try:
        samples = Samples.concatenate([read_csv(path) for path in paths])
        settings = sorted(samples.setting.words)
        comparisons = compare(samples, references=_references_by_plan(samples, references), default_looks=looks)
    except OSError as error:
        print(f"wqlab: {error.filename}: {error.strerror or error}", file=err)
        return ExitCode.USAGE
    except CsvError as error:  # names its file
        print(clean(f"wqlab: {error}"), file=err)
        return ExitCode.USAGE
    except SamplesError as error:
        print(clean(f"wqlab: {names}: {error}"), file=err)
        return ExitCode.USAGE
    except UnknownSetting as error:
        print(clean(f"wqlab: no setting {str(error)!r} in {names}; settings: {', '.join(settings)}"), file=err)
        return ExitCode.USAGE
    if not comparisons:
        required = "rows of both arms" if len(settings) == 1 else "rows of both arms, or --reference SETTING"
        print(f"wqlab: {names}: nothing to compare; a comparison needs {required}", file=err)
        return ExitCode.USAGE
    if as_json:
        json.dump([comparison.model_dump(mode="json") for comparison in comparisons], out, indent=2)
        print(file=out)
    else:
        print(comparisons_text(comparisons), file=out)
        if not references and len(settings) > 1:
            print(
                f"\nSettings were not compared with each other; name one: --reference '{clean(settings[0])}'", file=out
            )
    return exit_code(comparisons)


class UnknownSetting(Exception):
    """No plan was measured with the reference setting."""


def _references_by_plan(samples: Samples, references: Sequence[str]) -> dict[str, str]:
    """Return plan -> reference setting. Raises UnknownSetting."""
    cells = set(zip(samples.plan.codes.tolist(), samples.setting.codes.tolist(), strict=True))
    measured = {(samples.plan.words[plan], samples.setting.words[setting]) for plan, setting in cells}
    by_plan: dict[str, str] = {}
    for reference in references:
        plan, _, setting = reference.partition(":")
        matches = {(plan, setting)} & measured or {pair for pair in measured if pair[1] == reference}
        if not matches:
            raise UnknownSetting(reference)
        by_plan |= dict(matches)
    return by_plan


def exit_code(comparisons: Sequence[Comparison]) -> ExitCode:
    """Return REGRESSION if the candidate kernel is judged worse by any metric, else DONE.

    A setting that is worse than the reference setting is a result, not a regression.
    """
    return ExitCode.REGRESSION if any(map(is_regression, comparisons)) else ExitCode.DONE
