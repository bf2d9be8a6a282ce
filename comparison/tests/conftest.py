"""Test settings of the comparison."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Without deadlines, tests do not fail on a busy machine.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
