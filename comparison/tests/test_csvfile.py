"""CSV files of samples: reading, writing and error messages."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_samples import paired, studied

from wqlab_comparison import CsvError, Samples, compare, read_csv, write_csv
from wqlab_comparison.csvfile import COLUMNS
from wqlab_contracts.enums import Verdict

HEADER = "block,arm,boot,repetition,scenario,metric,unit,direction,value"
ROWS = [
    f"{block},{arm},{arm}{block},{repetition},fsync,iops,1/s,higher_is_better,{value + block + repetition}"
    for block in range(6)
    for arm, value in (("baseline", 1000), ("candidate", 1100))
    for repetition in range(3)
]


@pytest.fixture
def file(tmp_path):
    def write(*lines, encoding="utf-8"):
        path = tmp_path / "samples.csv"
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
        return path

    return write


def test_minimal_file_gets_the_defaults(file):
    (comparison,) = compare(read_csv(file(HEADER, *ROWS)))
    assert comparison.verdict is Verdict.IMPROVEMENT
    assert (comparison.scale, comparison.role, comparison.evidence) == ("ratio", "primary", "performance")
    assert (comparison.plan, comparison.device_type, comparison.setting) == ("unnamed", "unnamed", "")
    assert comparison.baseline.n == 6
    assert comparison.delta == 1.0


def test_shares_are_differences_by_default(file):
    rows = [row.replace("1/s", "%") for row in ROWS]
    (comparison,) = compare(read_csv(file(HEADER, *rows)))
    assert comparison.scale == "difference"
    assert comparison.effect == pytest.approx(100)


def test_blank_lines_bom_and_column_order_are_ignored(file):
    order = [8, 0, 1, 2, 3, 4, 5, 6, 7]
    shuffled = [",".join(line.split(",")[i] for i in order) for line in (HEADER, *ROWS)]
    one = read_csv(file(shuffled[0], *shuffled[1:10], "", *shuffled[10:], "", encoding="utf-8-sig"))
    assert compare(one) == compare(read_csv(file(HEADER, *ROWS)))


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(str.strip).filter(bool)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    texts,
    texts,
    st.booleans(),
    st.sampled_from([None, 0.5, 2.0]),
)
def test_written_file_is_read_back_unchanged(tmp_path_factory, baseline, candidate, scenario, unit, warmup, delta):
    samples = paired(baseline, candidate, scenario=scenario, unit=unit, warmup=warmup, delta=delta)
    text = io.StringIO()
    write_csv(samples, text)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    again = io.StringIO()
    write_csv(read_csv(path), again)
    assert again.getvalue() == text.getvalue()
    assert text.getvalue().splitlines()[0] == ",".join(COLUMNS)


def test_exported_file_gives_the_same_comparisons(tmp_path):
    samples = Samples.concatenate(
        [
            studied({"a=1": [1.5, 2, 3], "a=2": [2, 3.25, 4]}, evidence="none", role="explanatory"),
            studied({"a=1": [1, 1, 1], "a=2": [2, 2, 2]}, metric="locks", evidence="mechanism"),
        ]
    )
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as out:
        write_csv(samples, out)
    assert compare(read_csv(path), references="a=1") == compare(samples, references="a=1")


def changed(row, column, text):
    cells = row.split(",")
    cells[HEADER.split(",").index(column)] = text
    return ",".join(cells)


@pytest.mark.parametrize(
    ("column", "text", "complaint"),
    [
        ("value", "fast", "column value: 'fast' is not a finite number; leave out the row"),
        ("value", "nan", "column value: 'nan' is not a finite number"),
        ("value", "", "column value: '' is not a finite number"),
        ("value", "inf", "column value: 'inf' is not a finite number"),
        ("arm", "old", "column arm: 'old' is none of baseline, candidate"),
        ("direction", "up", "column direction: 'up' is none of higher_is_better, lower_is_better, none"),
        ("block", "1st", "column block: '1st' is not a whole number"),
        ("repetition", "0.5", "column repetition: '0.5' is not a whole number"),
        ("scenario", "", "column scenario: is empty"),
        ("value", "1,2", "10 cells where the header has 9"),
    ],
)
def test_bad_cell_is_reported_with_file_line_and_column(file, column, text, complaint):
    path = file(HEADER, *ROWS[:4], "", changed(ROWS[4], column, text), *ROWS[5:])
    with pytest.raises(CsvError) as error:
        read_csv(path)
    assert str(error.value).startswith(f"{path}:7: ")
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["block;arm;value", "1;baseline;2"], "columns are separated by commas"),
        (["block,arm,value", "1,baseline,2"], "no column boot, repetition, scenario"),
        ([HEADER + ",colour", ROWS[0] + ",red"], "unknown column 'colour'"),
        ([HEADER + ",value", ROWS[0] + ",1"], "column value appears twice"),
        ([HEADER], "no rows under the header"),
        ([HEADER + ",delta", ROWS[0] + ",-1"], "column delta: '-1' is not a number from zero up"),
        ([HEADER + ",warmup", ROWS[0] + ",maybe"], "column warmup: 'maybe' is not 0 or 1"),
        ([HEADER, '1,"baseline'], "not CSV"),
    ],
)
def test_bad_file_is_rejected_with_advice(file, lines, complaint):
    with pytest.raises(CsvError, match=complaint):
        read_csv(file(*lines))


def test_empty_file_is_rejected(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"")
    with pytest.raises(CsvError, match="empty file"):
        read_csv(path)


def test_file_that_is_not_utf8_is_rejected(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(HEADER.encode() + b"\n\xff\xfe\x00")
    with pytest.raises(CsvError, match="not UTF-8"):
        read_csv(path)
