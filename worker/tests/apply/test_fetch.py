"""URLs that may be fetched, checked before git runs."""

from __future__ import annotations

import httpx
import pytest

from wqlab_worker.apply.fetch import Remote, resolve_remote
from wqlab_worker.failures import UserError
from wqlab_worker.workspace import Workspace

ADDRESSES = {
    "public.example": ["93.184.215.14"],
    "inside.example": ["10.1.2.3"],
    "both.example": ["93.184.215.14", "127.0.0.1"],
    "meta.example": ["169.254.169.254"],
    "six.example": ["::1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "nat64.example": ["64:ff9b::7f00:1"],
    "compatible.example": ["::7f00:1"],
    "site.example": ["fec0::1"],
    "many.example": ["224.0.0.1"],
    "odd_.example": ["93.184.215.14"],
    "1572395042": ["93.184.215.14"],
    "93.184.215.14": ["93.184.215.14"],
    "127.0.0.1": ["127.0.0.1"],
}


def resolved(workspace: Workspace, url: str, redirects: dict[str, str] | None = None, private: bool = False) -> Remote:
    def answer(request: httpx.Request) -> httpx.Response:
        assert private or request.url.host in {"93.184.215.14"}, "only the address that was checked is connected to"
        location = (redirects or {}).get(f"https://{request.headers['host']}{request.url.raw_path.decode()}")
        return httpx.Response(301, headers={"Location": location}) if location else httpx.Response(200)

    def resolve(host: str, port: int) -> list[str]:
        if host not in ADDRESSES:
            raise OSError("no such host")
        return ADDRESSES[host]

    transport = httpx.MockTransport(answer)
    return resolve_remote(url, workspace, private_network=private, resolve=resolve, transport=transport)


def test_https_url_is_pinned_to_checked_address(workspace: Workspace) -> None:
    remote = resolved(workspace, "https://public.example/linux.git")
    assert remote.url == "https://public.example/linux.git"
    assert "http.curloptResolve=public.example:443:93.184.215.14" in remote.settings
    assert "protocol.https.allow=always" in remote.settings


def test_git_url_is_fetched_from_checked_address(workspace: Workspace) -> None:
    remote = resolved(workspace, "git://public.example/linux.git")
    assert remote.url == "git://93.184.215.14:9418/linux.git"
    assert remote.environment == {"GIT_OVERRIDE_VIRTUAL_HOST": "public.example"}


@pytest.mark.parametrize(
    "url",
    [
        *("https://inside.example/x", "https://both.example/x", "git://meta.example/x", "https://six.example/x"),
        *("https://nat64.example/x", "https://compatible.example/x", "git://site.example/x", "git://many.example/x"),
        *("https://odd_.example/x", "https://1572395042/x"),
        *("https://mapped.example/x", "https://127.0.0.1/x", "https://nowhere.example/x"),
        *(
            "http://public.example/x",
            "ssh://public.example/x",
            "ext::sh -c id",
            "public.example:x",
            "ftp://public.example/x",
        ),
        *("https://user:pw@public.example/x", "https:///x", "fd::7", "-oProxyCommand=id", ""),
        *("https://public.example:99999/x", "https://[::1/x", "git://public.example:x/y"),
    ],
)
def test_forbidden_url_is_rejected(workspace: Workspace, url: str) -> None:
    with pytest.raises(UserError):
        resolved(workspace, url)


def test_redirects_are_followed_only_to_public_https_addresses(workspace: Workspace) -> None:
    suffix = "/info/refs?service=git-upload-pack"
    start = f"https://public.example/x{suffix}"
    assert (
        resolved(workspace, "https://public.example/x", {start: f"/x.git{suffix}"}).url
        == "https://public.example/x.git"
    )
    for target in ("https://inside.example/x", "http://public.example/x", "file:///etc", "https://169.254.169.254/x"):
        with pytest.raises(UserError):
            resolved(workspace, "https://public.example/x", {start: f"{target}{suffix}"})
    with pytest.raises(UserError, match="redirects more than"):
        resolved(workspace, "https://public.example/x", {start: start})


def test_tree_may_be_on_private_network(workspace: Workspace) -> None:
    assert (
        resolved(workspace, "https://inside.example/linux.git", private=True).url == "https://inside.example/linux.git"
    )
