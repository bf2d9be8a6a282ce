"""Python client and `wqlab` command of the workqueue test lab.

>>> from wqlab_client import Client, ReportFormat
>>> with Client("https://lab.example.org", token) as lab:
...     for submission in lab.submissions(tree="linux-6.12"):
...         print(submission.id, submission.title, submission.outcome)
"""

from .client import Client, ReportFormat
from .errors import LabUnavailable, RequestRefused, UsageError, WqlabError
from .transport import Retry

__all__ = ["Client", "LabUnavailable", "ReportFormat", "RequestRefused", "Retry", "UsageError", "WqlabError"]
