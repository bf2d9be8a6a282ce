"""A simulated history of a watched tree: 48 heads on four device types, and shifts in every state.

Comparisons, verdicts, points, shifts and their confirmation are those of the code that measures real heads. Only the
values of the boots are simulated.
"""

from .load import load

__all__ = ["load"]
