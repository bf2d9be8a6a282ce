"""Ask a forge's API for all open pull requests and branches of a repository, with their heads."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from wqlab_contracts.messages.forge_listings import ForgeListing, ListedHead, ListedPage
from wqlab_contracts.specs import ForgeKind

from ...http.forge_api import Answer, ForgeApi, scarce_s
from .payloads import BRANCH_LIMIT
from .read_change import ApiFailed, commit_of, refusal

PAGE = 50
"""Entries of a page: the most that Gitea sends unless it is configured to. With descriptions of the greatest length
they are smaller than the greatest answer."""
PAGES = 40
"""Most pages of each list that one poll reads."""
_LISTS = {
    ForgeKind.GITHUB: ("/pulls?state=open&per_page={size}&page={page}", "/branches?per_page={size}&page={page}"),
    ForgeKind.GITEA: ("/pulls?state=open&limit={size}&page={page}", "/branches?limit={size}&page={page}"),
    ForgeKind.GITLAB: (
        "/merge_requests?state=opened&per_page={size}&page={page}",
        "/repository/branches?per_page={size}&page={page}",
    ),
}


def list_heads(api: ForgeApi, known: ForgeListing | None) -> ForgeListing:
    """Return all open pull requests and branches. A page that has not changed since `known` is not sent again.

    Raises ApiFailed, also if requests are scarce, and ForgeUnreachable.
    """
    pulls, branches = _LISTS[api.forge.kind]
    pages: dict[str, ListedPage] = {}
    is_complete = True
    for path in (pulls, branches):
        for number in range(1, PAGES + 1):
            url = path.format(size=PAGE, page=number)
            pages[url] = _page(api, url, known.pages.get(url) if known is not None else None, is_pulls=path is pulls)
            if pages[url].is_last:
                break
        else:
            is_complete = False
    return ForgeListing(pages=pages, is_complete=is_complete)


def _page(api: ForgeApi, url: str, known: ListedPage | None, *, is_pulls: bool) -> ListedPage:
    etag = known.etag if known is not None else ""
    answer = api.get(url, etag)
    what = "the open pull requests" if is_pulls else "the branches"
    found = known if answer.status == 304 else None
    scarce = scarce_s(answer, time.time())
    if scarce is not None:
        raise ApiFailed(
            f"few requests are left by the forge's rate limit; they are left to events for {scarce:.0f} s", scarce
        )
    return found or _read(api, answer, what, is_pulls=is_pulls)


def _read(api: ForgeApi, answer: Answer, what: str, *, is_pulls: bool) -> ListedPage:
    listed = answer.data
    if answer.status != 200 or not isinstance(listed, list):
        raise refusal(answer, what)
    read = _branch if not is_pulls else _merge_request if api.forge.kind is ForgeKind.GITLAB else _pull_request
    try:
        heads = [read(each) for each in listed]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ApiFailed(f"{what}: the API's answer is not as documented: {error!r}"[:300]) from error
    return ListedPage(
        etag=answer.headers.get("etag", "")[:200],
        is_last='rel="next"' not in answer.headers.get("link", "") or not listed,
        # A longer name of a branch is of no event either.
        heads=[head for head in heads if len(head.branch) <= BRANCH_LIMIT and "\0" not in head.branch],
    )


def _branch(found: Mapping[str, Any]) -> ListedHead:
    name, commit = str(found["name"]), found["commit"]
    # GitHub calls the commit's id `sha`, the others `id`.
    return ListedHead(key=f"branch/{name}", number=None, branch=name, head=commit_of(commit.get("sha") or commit["id"]))


def _pull_request(found: Mapping[str, Any]) -> ListedHead:
    number = int(found["number"])
    head, branch = commit_of(found["head"]["sha"]), str(found["base"]["ref"])
    return ListedHead(key=f"pull/{number}", number=number, branch=branch, head=head)


def _merge_request(found: Mapping[str, Any]) -> ListedHead:
    number = int(found["iid"])
    return ListedHead(
        key=f"pull/{number}", number=number, branch=str(found["target_branch"]), head=commit_of(found["sha"])
    )
