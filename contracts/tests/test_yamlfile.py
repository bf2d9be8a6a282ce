"""YAML reading: unreadable values, booleans, aliases."""

from pathlib import Path

import pytest
from data_folder import problems, write

from wqlab_contracts.loading import load_data


@pytest.mark.parametrize(
    ("written", "value", "kind"),
    [
        ("2024-13-45", "2024-13-45", "!!timestamp"),
        ("!!int abc", "abc", "!!int"),
        ("!!bool maybe", "maybe", "!!bool"),
        ("!!timestamp soon", "soon", "!!timestamp"),
        ("!secret", "", "!secret"),
        ("!include other.yaml", "other.yaml", "!include"),
    ],
)
def test_unreadable_yaml_value_is_reported(folder: Path, written: str, value: str, kind: str) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace("two CPUs", written))
    assert problems(folder) == [
        f"device-types/tiny.yaml:2: summary: {value!r} cannot be read as {kind}; if it is text, write it in quotes"
    ]


def test_yaml_1_1_booleans_are_read_as_text(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    text = (
        path.read_text()
        .replace("['0', '1']", "[on, off]")
        .replace("strict=0", "strict=on")
        .replace("strict=1", "strict=off")
    )
    path.write_text(text)
    assert load_data(folder).plans["health-check"].axes[0].values == ["on", "off"]


def test_yaml_alias_is_rejected(folder: Path) -> None:
    write(
        folder,
        "kernels/recipes/measure.yaml",
        "name: measure\nsummary: x\nfragments: &f [base]\nemulated_fragments: *f\n",
    )
    assert problems(folder) == [
        "kernels/recipes/measure.yaml:3: emulated_fragments: an alias (*name) repeats a value; write it out"
    ]
