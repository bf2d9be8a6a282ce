"""Messages of a reading: a worker fetches the head of a pull request or branch, and reads its `.wqlab.yaml`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..api.touches import TouchedFile
from ..enums import JobKind, Outcome
from ..specs import Tree
from .base import Failure, GitObject, Message

PATH_LIMIT = 2_000


class ForgeReadingJob(Message):
    """Job that reads one commit of a repository on a forge."""

    kind: Literal[JobKind.READ_HEAD] = JobKind.READ_HEAD
    url: str
    head: GitObject
    base_branch: str
    """Branch of the repository that the pull request is for; empty for a push, whose base is the tree."""
    config_from: Literal["head", "base"]
    """Commit whose `.wqlab.yaml` counts: for a fork that of the base branch, which its author cannot change."""
    tree: Tree


class ForgeReadingResult(Message):
    """What was read."""

    kind: Literal[JobKind.READ_HEAD] = JobKind.READ_HEAD
    outcome: Outcome
    failure: Failure | None = None
    merge_base: GitObject | None = None
    config: str | None = None
    """Text of `.wqlab.yaml`; null if there is no such file."""
    paths: list[str] = Field(default_factory=list, max_length=PATH_LIMIT)
    """Files in which the head differs from the merge base."""
    paths_complete: bool = True
    """False if more files differ than `paths` names."""
    touched: list[TouchedFile] | None = Field(default=None, max_length=PATH_LIMIT)
    """Files that the commits change, with the symbols; null unless `.wqlab.yaml` asks what they touch."""
