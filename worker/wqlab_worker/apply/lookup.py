"""List branches and tags of a repository with `git ls-remote`, under the same rules as for fetching a series."""

from __future__ import annotations

import signal
import subprocess
import tempfile

from wqlab_contracts.enums import Outcome
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages.lookups import BRANCH_LIMIT, GitBranch, LookupJob, LookupResult

from ..failures import JobError, UserError
from ..workspace import Workspace
from .fetch import resolve_remote
from .git import git_environment

TIME_LIMIT_S = 20
OUTPUT_LIMIT = 8 << 20
MEMORY_LIMIT = 1 << 30
"""Bytes of each process; git keeps every reference that the server lists in memory."""
CHECK_LIMIT_S = 15.0
"""Seconds for the check of the URL before git sees it."""
_HEAD = LinearPattern(r"ref: refs/heads/(\S{1,250})\tHEAD")
_BRANCH = LinearPattern(r"([0-9a-f]{40})\trefs/heads/(\S{1,250})")
_TAG = LinearPattern(r"([0-9a-f]{40})\trefs/tags/(\S{1,250}?)(\^\{\})?")
_ADVICE = "Check the URL with: git ls-remote URL"


def look_up(job: LookupJob, workspace: Workspace) -> LookupResult:
    """List what the job asks for. A failure is returned in the result, never raised."""
    try:
        return _list(job, workspace)
    except JobError as error:
        return LookupResult(outcome=Outcome.FAILED, failure=error.failure)


def _list(job: LookupJob, workspace: Workspace) -> LookupResult:
    url = job.url
    remote = resolve_remote(url, workspace, private_network=job.private_network, check_s=CHECK_LIMIT_S)
    # Of an annotated tag the line `NAME^{}` has the commit; a pattern that ends with * matches it anyway.
    peeled = [f"{ref}^{{}}" for ref in job.refs if ref.startswith("refs/tags/") and not ref.endswith("*")]
    patterns = [*job.refs, *peeled] or ["refs/heads/*"]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            [
                "timeout", "--signal=KILL", str(TIME_LIMIT_S),
                "prlimit", f"--fsize={OUTPUT_LIMIT}", f"--data={MEMORY_LIMIT}",
                "git", *remote.settings, "ls-remote", "--symref", "--", remote.url, "HEAD", *patterns,
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd="/",
            env={**git_environment(workspace), **remote.environment},
            check=False,
        )  # fmt: skip
        output.seek(0)
        errors.seek(0)
        text = output.read(OUTPUT_LIMIT).decode(errors="replace")
        error_text = errors.read(1 << 16).decode(errors="replace")
    if done.returncode == -signal.SIGKILL:
        raise UserError(f"{url} did not list its branches within {TIME_LIMIT_S} s", excerpt=error_text, advice=_ADVICE)
    truncated = done.returncode == -signal.SIGXFSZ
    if done.returncode != 0 and not truncated:
        raise UserError(f"cannot list the branches of {url}", excerpt=error_text, advice=_ADVICE)
    return _parse(text, truncated=truncated)


def _parse(text: str, *, truncated: bool) -> LookupResult:
    """Parse the output of `git ls-remote --symref`. If it is `truncated`, its last line is incomplete."""
    head = None
    branches: dict[str, str] = {}
    tags: dict[str, str] = {}
    for line in text.split("\n")[: -1 if truncated else None]:
        if named := _HEAD.fullmatch(line):
            head = named[1]
        elif branch := _BRANCH.fullmatch(line):
            branches[branch[2]] = branch[1]
        elif tag := _TAG.fullmatch(line):
            tags[tag[2]] = tag[1]  # the commit comes after the tag object
    names = sorted(branches)
    if head not in branches:
        head = None
    if head is not None and len(names) > BRANCH_LIMIT:
        names = [head, *(name for name in names if name != head)]
    return LookupResult(
        outcome=Outcome.PASSED,
        branches=[GitBranch(name=name, commit=branches[name]) for name in names[:BRANCH_LIMIT]],
        tags=[GitBranch(name=name, commit=tags[name]) for name in sorted(tags)[:BRANCH_LIMIT]],
        head=head,
        truncated=truncated or max(len(names), len(tags)) > BRANCH_LIMIT,
    )
