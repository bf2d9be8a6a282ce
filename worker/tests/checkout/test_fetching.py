"""Which URLs may be fetched, decided before git runs; and trees' mirrors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.fetch import Remote, resolve_remote
from wqlab_worker.apply.mirror import update_mirror
from wqlab_worker.failures import InfrastructureError, UserError
from wqlab_worker.workspace import Workspace

ADDRESSES = {
    "public.example": ["93.184.215.14"],
    "inside.example": ["10.1.2.3"],
    "both.example": ["93.184.215.14", "127.0.0.1"],
    "meta.example": ["169.254.169.254"],
    "six.example": ["::1"],
    "mapped.example": ["::ffff:10.0.0.1"],
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


def test_a_public_https_url_is_pinned_to_the_address_that_was_checked(workspace: Workspace) -> None:
    remote = resolved(workspace, "https://public.example/linux.git")
    assert remote.url == "https://public.example/linux.git"
    assert "http.curloptResolve=public.example:443:93.184.215.14" in remote.settings
    assert "protocol.https.allow=always" in remote.settings


def test_a_git_url_is_fetched_from_the_address_that_was_checked(workspace: Workspace) -> None:
    remote = resolved(workspace, "git://public.example/linux.git")
    assert remote.url == "git://93.184.215.14:9418/linux.git"
    assert remote.environment == {"GIT_OVERRIDE_VIRTUAL_HOST": "public.example"}


@pytest.mark.parametrize(
    "url",
    [
        *("https://inside.example/x", "https://both.example/x", "git://meta.example/x", "https://six.example/x"),
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
def test_what_may_not_be_fetched(workspace: Workspace, url: str) -> None:
    with pytest.raises(UserError):
        resolved(workspace, url)


def test_redirects_are_followed_to_public_https_addresses_only(workspace: Workspace) -> None:
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


def test_an_operators_tree_may_be_on_the_private_network(workspace: Workspace) -> None:
    assert (
        resolved(workspace, "https://inside.example/linux.git", private=True).url == "https://inside.example/linux.git"
    )


def test_hosts_are_listed_by_name_or_address_with_or_without_a_port() -> None:
    environment = {
        "WQLAB_CACHE": "/c",
        "WQLAB_PRIVATE_GIT_HOSTS": "Git.Lab.example, 10.1.2.3:8443,[fd00::1]:9418,,[::1]",
    }
    assert Workspace.from_environment(environment).private_git_hosts == {
        *("git.lab.example", "10.1.2.3:8443", "[fd00::1]:9418", "[::1]")
    }


@pytest.mark.parametrize(
    "entry", ["https://git.lab.example", "git.lab.example/linux", "*.example", "fd00::1", "a b", "x:"]
)
def test_an_entry_that_is_no_host_is_named(entry: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        Workspace.from_environment({"WQLAB_CACHE": "/c", "WQLAB_PRIVATE_GIT_HOSTS": f"good.example,{entry}"})
    assert repr(entry) in caught.value.failure.summary


def test_the_systems_certificates_are_what_counts_when_none_are_named(tmp_path: Path) -> None:
    known = Workspace.from_environment({"WQLAB_CACHE": str(tmp_path)})
    assert subprocess.run(["openssl", "x509", "-noout", "-in", known.ca_file], check=False).returncode == 0


def test_a_tree_that_cannot_be_fetched_is_the_labs(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as caught:
        update_mirror(Tree(name="gone", summary="", url=str(tmp_path / "gone")), workspace)
    assert caught.value.failure.kind is ErrorKind.INFRASTRUCTURE


def test_a_mirror_follows_its_tree(tree: Tree, workspace: Workspace, repository) -> None:
    first = update_mirror(tree, workspace).head
    repository.edit("kernel/fork.c", "for (;;)", "while (1)")
    second = repository.commit("fork: go on")
    assert update_mirror(tree, workspace).head == second != first
