"""The `wqlab` command."""

import wqlab_contracts

wqlab_contracts.defer_models = True

from .app import main  # noqa: E402 - after the assignment

__all__ = ["main"]
