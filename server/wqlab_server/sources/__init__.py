"""The sources of submissions that nobody waits for.

To add one, write a subclass of `orders.source.Source` in a module of its own and list it here.
"""

from ..orders.source import Source
from .bisections import BisectionSource
from .forges import ForgeSource
from .lists import ListSource
from .shift_bisections import ShiftBisections
from .shifts import ShiftSource
from .trees import TreeSource

_SOURCES: list[Source] = [
    TreeSource(),
    ShiftSource(),
    ShiftBisections(),
    BisectionSource(),
    ListSource(),
    ForgeSource(),
]
SOURCES = {source.name: source for source in _SOURCES}
"""Name of a source in its orders -> the source. They are asked in this order."""
