"""`wqlab compare FILE.csv`: offline comparison of samples."""

import io
import json

import pytest

from wqlab_client.compare import compare_files
from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import ExitCode

HEADER = "block,arm,boot,repetition,scenario,setting,metric,unit,direction,value"


def rows(candidate, setting="", blocks=6):
    return [
        f'{block},{arm},{arm}{block},0,tcp-64,"{setting}",throughput,Mbit/s,higher_is_better,{value + block % 3}'
        for block in range(blocks)
        for arm, value in (("baseline", 1000), ("candidate", candidate + block % 2))
    ]


@pytest.fixture
def run(tmp_path):
    def go(lines, **options):
        path = tmp_path / "mine.csv"
        path.write_text("\n".join(lines) + "\n")
        out, err = io.StringIO(), io.StringIO()
        return compare_files([path], out=out, err=err, **options), out.getvalue(), err.getvalue()

    return go


@pytest.mark.parametrize(
    ("candidate", "code", "word"),
    [
        (900, ExitCode.REGRESSION, "REGRESSION"),
        (1100, ExitCode.DONE, "IMPROVEMENT"),
        (1000, ExitCode.DONE, "EQUIVALENT"),
    ],
)
def test_exit_code_and_first_line_show_the_verdict(run, candidate, code, word):
    found, out, err = run([HEADER, *rows(candidate)])
    assert (found, err) == (code, "")
    assert out.splitlines()[0] == f"unnamed on unnamed: {word}"
    assert all(len(line) <= 78 for line in out.splitlines())


def test_too_few_blocks_are_no_regression(run):
    found, out, _ = run([HEADER, *rows(900, blocks=5)])
    assert found is ExitCode.DONE
    assert "1 more block" in out


@pytest.mark.parametrize(
    ("candidate", "missing", "code", "word"),
    [
        (1100, ["candidate6"], ExitCode.DONE, "IMPROVEMENT"),
        (1100, ["candidate6", "candidate7"], ExitCode.DONE, "INCONCLUSIVE"),
        (1100, ["candidate6", "baseline7"], ExitCode.DONE, "IMPROVEMENT"),
        (900, ["candidate6", "candidate7"], ExitCode.REGRESSION, "REGRESSION"),
        (900, ["baseline6", "baseline7"], ExitCode.DONE, "INCONCLUSIVE"),
    ],
)
def test_imbalanced_discards_withhold_an_improvement(run, candidate, missing, code, word):
    kept = [row for row in rows(candidate, blocks=8) if not any(f",{boot}," in row for boot in missing)]
    found, out, _ = run([HEADER, *kept])
    assert (found, out.splitlines()[0]) == (code, f"unnamed on unnamed: {word}")
    assert ("discards are imbalanced against the" in " ".join(out.split())) is (word == "INCONCLUSIVE")


def test_json_is_a_list_of_comparisons(run):
    found, out, _ = run([HEADER, *rows(900)], as_json=True)
    assert found is ExitCode.REGRESSION
    (comparison,) = [Comparison.model_validate(one) for one in json.loads(out)]
    assert comparison.verdict == "regression"


def test_settings_need_a_reference_and_never_regress(run):
    lines = [HEADER, *rows(1000, "scope=system"), *[row for row in rows(1000, "scope=cache") if "candidate" not in row]]
    slower = [line.replace(",1000", ",500").replace(",1001", ",501").replace(",1002", ",502") for line in lines]
    lines = [slow if "scope=cache" in slow else fast for slow, fast in zip(slower, lines, strict=True)]
    found, out, _ = run(lines)
    assert "--reference 'scope=cache'" in out
    found, out, _ = run(lines, references=["scope=system"])
    assert found is ExitCode.DONE
    assert "REGRESSION" in out
    found, _, err = run(lines, references=["scope=numa"])
    assert found is ExitCode.USAGE
    assert "settings: scope=cache, scope=system" in err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [HEADER, *rows(1000), "7,baseline,b,0,tcp-64,,throughput,Mbit/s,higher_is_better,fast"],
            "mine.csv:14: column value",
        ),
        ([HEADER, *rows(1000), *rows(1000)], "number the repetitions of a boot differently"),
        ([HEADER, *[row for row in rows(1000) if "candidate" not in row]], "rows of both arms"),
        ([], "empty file"),
    ],
)
def test_invalid_file_is_a_usage_error(run, lines, message):
    found, out, err = run(lines if lines else [""])
    assert found is ExitCode.USAGE
    assert out == ""
    assert message in err


def test_missing_file_is_a_usage_error(tmp_path):
    err = io.StringIO()
    assert compare_files([tmp_path / "none.csv"], err=err) is ExitCode.USAGE
    assert "none.csv" in err.getvalue()


def test_control_characters_in_names_are_escaped(run):
    _, out, _ = run([HEADER, *[row.replace("tcp-64", "tcp\x1b[2J") for row in rows(1100)]])
    assert "\x1b" not in out


def test_all_files_are_one_family_of_comparisons(run, tmp_path):
    """Holm's adjustment spans all targets: with a second target the adjusted p is twice the continuous one."""
    paths = []
    for plan in ("a", "b"):
        paths.append(tmp_path / f"{plan}.csv")
        values = [f"{plan},{row}" for row in rows(990)]
        paths[-1].write_text("\n".join([f"plan,{HEADER}", *values]) + "\n")

    def adjusted(files):
        out = io.StringIO()
        compare_files(files, as_json=True, out=out)
        return {one["plan"]: one for one in json.loads(out.getvalue())}

    alone, together = adjusted(paths[:1]), adjusted(paths)
    assert together.keys() == {"a", "b"}
    assert alone["a"]["p_adjusted"] == alone["a"]["p"]
    assert together["a"]["p_adjusted"] == max(together["a"]["p"], 2 * together["a"]["p_student"])


def test_each_plan_may_have_its_own_reference(tmp_path):
    paths = []
    for plan in ("a", "b"):
        paths.append(tmp_path / f"{plan}.csv")
        values = [f"{plan},{row}" for setting in ("k=1", "k=2") for row in rows(1000, setting)]
        paths[-1].write_text("\n".join([f"plan,{HEADER}", *values]) + "\n")

    def compared(*references):
        out, err = io.StringIO(), io.StringIO()
        code = compare_files(paths, list(references), as_json=True, out=out, err=err)
        found = json.loads(out.getvalue() or "[]")
        settings = [one for one in found if one["question"] == "setting"]
        return {(one["plan"], one["reference"], one["setting"]) for one in settings} or (code, err.getvalue())

    assert compared("a:k=1", "b:k=2") == {("a", "k=1", "k=2"), ("b", "k=2", "k=1")}
    assert compared("k=1") == {("a", "k=1", "k=2"), ("b", "k=1", "k=2")}
    code, message = compared("c:k=1")
    assert code is ExitCode.USAGE
    assert "no setting 'c:k=1'" in message


def test_names_in_a_file_do_not_control_the_terminal(run):
    hostile = [row.replace("tcp-64", "tcp\x9b2J\u202e").replace("Mbit/s", "Mbit\x1b]0;x\x07") for row in rows(900)]
    code, out, _ = run([HEADER, *hostile])
    assert code is ExitCode.REGRESSION
    _, _, err = run([HEADER, *[row.replace('""', '"scope=\x9b2J"') for row in hostile]], references=["scope=x"])
    assert "settings: scope=<009b>2J" in err
    assert not set(out + err) & set("\x9b\u202e\x1b\x07")
