"""Test settings of the comparison."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
