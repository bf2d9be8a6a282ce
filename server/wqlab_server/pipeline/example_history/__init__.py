"""Fill an empty database with a simulated history, so that a newcomer sees its pages full."""

from .load import AlreadyFilled, load

__all__ = ["AlreadyFilled", "load"]
