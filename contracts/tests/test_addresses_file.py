from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.addresses_file import read_addresses, read_device_type


def problems_of(tmp_path: Path, text: str, addresses: dict[str, str]) -> list[str]:
    path = tmp_path / "board.yaml"
    path.write_text(text)
    return [str(problem) for problem in read_device_type(path, "board.yaml", addresses).problems]


def test_a_value_of_the_file_replaces_the_default(tmp_path: Path) -> None:
    path = tmp_path / "board.yaml"
    path.write_text("lab: ${BOARD_LAB:-rack1}\nhost: ${BOARD_BMC:-bmc-board}\nlist: [${BOARD_LIST:-a, b}]\n")
    assert read_device_type(path, "board.yaml", {}).plain() == {"lab": "rack1", "host": "bmc-board", "list": ["a", "b"]}
    addresses = {"BOARD_BMC": "192.0.2.9", "BOARD_LIST": ""}
    assert read_device_type(path, "board.yaml", addresses).plain() == {
        "lab": "rack1",
        "host": "192.0.2.9",
        "list": [],
    }


def test_nothing_is_replaced_in_comment_lines(tmp_path: Path) -> None:
    text = "# key in ${HOME}\n  # or ${BMC} and ${bmc:-x}\nhost: ${BMC:-b} # ${BMC:-b}\n"
    assert problems_of(tmp_path, text, {}) == []


def test_a_variable_of_a_shell_stays(tmp_path: Path) -> None:
    path = tmp_path / "board.yaml"
    path.write_text("""off: sh -c 'power="ipmitool -H ${BMC:-bmc}"; $power off'\n""")
    assert read_device_type(path, "board.yaml", {"BMC": "b"}).plain() == {
        "off": """sh -c 'power="ipmitool -H b"; $power off'"""
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "lab: rack1\nhost: ${BMC}\n",
            "board.yaml:2: ${BMC} has no value: set it in addresses.env, or write a default",
        ),
        ("host: ${bmc:-x}\n", "board.yaml:1: ${bmc:-x} names no address: a shell's own variable is written without"),
    ],
)
def test_a_bad_use_is_reported_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    (problem,) = problems_of(tmp_path, text, {})
    assert problem.startswith(says)


def test_the_file_is_read_as_a_shell_reads_it(tmp_path: Path) -> None:
    (tmp_path / "addresses.env").write_text("# rack 1\n\nA=192.0.2.1\nB='two words'\nC=\"x y\"\nD=\n")
    assert read_addresses(tmp_path) == ({"A": "192.0.2.1", "B": "two words", "C": "x y", "D": ""}, [])


def test_a_missing_file_gives_no_values(tmp_path: Path) -> None:
    assert read_addresses(tmp_path) == ({}, [])


@pytest.mark.parametrize(
    "line",
    [
        "bmc=1",
        "A 1",
        "A=$(id)",
        "A=one two",
        "export A=1",
        "A=1 # rack",
        "A=a;id",
        "A=a#b",
        "A=~/key",
        "A='$(id)'",
        'A="a: {b}"',
        "A='a;id'",
        "A='it\"s'",
        "A='a\tb'",
        "A=a\\ b",
        "A=ä",
        "A=1\r",
    ],
)
def test_a_line_that_a_shell_would_read_otherwise_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "addresses.env").write_text(f"# rack 1\n{line}\n", newline="")
    values, problems = read_addresses(tmp_path)
    assert values == {}
    assert [(problem.file, problem.line) for problem in problems] == [("device-types/addresses.env", 2)]
    assert "letters, digits and _.,:/@%+=[]-, and in quotes also blanks and ~" in problems[0].message


def test_a_name_that_is_set_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "addresses.env").write_text("A=1\nA=2\n")
    assert [problem.message for problem in read_addresses(tmp_path)[1]] == ["is set twice"]
