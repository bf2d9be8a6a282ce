"""The sources of submissions that nobody waits for: watched trees and lists, forges, shifts and bisections.

To add one, write a subclass of `orders.source.Source` in a module of its own and list it here.
"""

from ..orders.source import Source
from .bisections import BisectionSource
from .forges import ForgeSource
from .lists import ListSource
from .shift_bisections import ShiftBisections
from .shifts import ShiftSource
from .trees import TreeSource

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (TreeSource(), ShiftSource(), ShiftBisections(), BisectionSource(), ListSource(), ForgeSource())
}
"""Name of a source in its orders -> the source. They are asked in this order."""
