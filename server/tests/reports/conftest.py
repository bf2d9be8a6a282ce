import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no reason to fail.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
