"""Rewrite the golden files. Read the diff before you commit it."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path.insert(0, str(here.parents[1]))
    for name, render in import_module("tests.reports.all_examples").GOLDEN_FILES.items():
        (here / "golden" / name).write_text(render())
