"""The `wqlab-server` command."""

from .commands import main

__all__ = ["main"]
