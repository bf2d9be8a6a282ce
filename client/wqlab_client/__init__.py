"""Python client and `wqlab` command of the workqueue test lab.

>>> from wqlab_client import Client, ReportFormat
>>> with Client("https://lab.example.org", token) as lab:
...     for submission in lab.submissions(tree="linux-6.12"):
...         print(submission.id, submission.title, submission.outcome)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import Client, ReportFormat
    from .errors import LabUnavailable, RequestRefused, UsageError, WqlabError
    from .transport import Retry

__all__ = ["Client", "LabUnavailable", "ReportFormat", "RequestRefused", "Retry", "UsageError", "WqlabError"]


def __getattr__(name: str) -> object:
    """Import a public name when it is used: the `wqlab` command needs only some of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    places = {"Client": ".client", "ReportFormat": ".client", "Retry": ".transport"}
    return getattr(import_module(places.get(name, ".errors"), __name__), name)
