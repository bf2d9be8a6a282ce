"""Rewrite the golden files. Read the diff before you commit it."""

from pathlib import Path

from all_examples import GOLDEN_FILES
from letter_examples import LETTERS

if __name__ == "__main__":
    for name, render in GOLDEN_FILES.items():
        (Path(__file__).parent / "golden" / name).write_text(render())
    for name, render in LETTERS.items():
        (Path(__file__).parents[2] / "docs" / name).write_text(render())
