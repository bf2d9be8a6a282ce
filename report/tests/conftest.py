"""Test settings of the report."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Tables are tested with the comparisons of the package that computes them.
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "comparison/tests")]
