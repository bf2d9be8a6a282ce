"""Which URLs may be fetched, decided before git runs; and trees' mirrors."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Tree
from wqlab_worker import mirror
from wqlab_worker.failures import InfrastructureError, UserError
from wqlab_worker.fetch import Remote, resolve_remote
from wqlab_worker.mirror import release_of, update_mirror
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


# --- Debian source packages -----------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a source archive where Debian's package would, and says which version dpkg knows."""
    folder = tmp_path / "usr-src"
    folder.mkdir()
    monkeypatch.setattr(mirror, "DEBIAN_SOURCES", folder)

    def install(version: str, files: dict[str, str], mtime: int = 0) -> None:
        with tarfile.open(folder / "linux-source-6.12.tar.xz", "w:xz") as archive:
            for name, text in files.items():
                info = tarfile.TarInfo(f"linux-source-6.12/{name}")
                info.mtime, info.mode = mtime, 0o755 if name.endswith(".sh") else 0o644
                if text.startswith("-> "):
                    info.type, info.linkname = tarfile.SYMTYPE, text[3:]
                    archive.addfile(info)
                else:
                    info.size = len(text.encode())
                    archive.addfile(info, io.BytesIO(text.encode()))
        (folder / "version").write_text(version)

    real = subprocess.run

    def run(command: list[str], **options: object) -> object:
        if command[0] == "dpkg-query":
            return subprocess.CompletedProcess(command, 0, stdout=(folder / "version").read_text())
        return real(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(mirror.subprocess, "run", run)
    return install


DEBIAN = Tree(name="linux-6.12", summary="", debian_source="linux-source-6.12")
FILES = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\nEXTRAVERSION =\n",
    "scripts/x.sh": "#!/bin/sh\n",
    'kernel/a "quoted" näme': "text\n",
    "link": "-> scripts/x.sh",
}


def test_a_debian_package_is_one_commit_that_is_the_same_everywhere(
    workspace: Workspace, tmp_path: Path, package
) -> None:
    package("6.12.7-1", FILES)
    found = update_mirror(DEBIAN, workspace)
    package("6.12.7-1", dict(reversed(FILES.items())), mtime=1_700_000_000)
    elsewhere = update_mirror(DEBIAN, Workspace(tmp_path / "elsewhere"))
    assert found.head == elsewhere.head
    assert found.git.run("rev-list", "--count", found.head).strip() == "1"
    assert found.git.run("log", "-1", "--format=%s|%an|%aI|%cI", found.head).strip() == (
        "Import linux-source-6.12 6.12.7-1|wqlab|2026-01-01T00:00:00+00:00|2026-01-01T00:00:00+00:00"
    )
    assert release_of(found.git, found.head) == "6.12.7"
    modes = found.git.run("ls-tree", "-r", "--format=%(objectmode) %(path)", found.head).splitlines()
    assert modes == [
        "100644 Makefile",
        '100644 "kernel/a \\"quoted\\" näme"',
        "120000 link",
        "100755 scripts/x.sh",
    ]


def test_a_new_package_version_is_a_new_commit_and_the_old_one_stays(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)
    old = update_mirror(DEBIAN, workspace).head
    package("6.12.8-1", FILES | {"README": "new\n"})
    found = update_mirror(DEBIAN, workspace)
    assert found.head != old
    assert found.git.commit(old) == old


def test_an_interrupted_import_starts_over(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)

    def interrupt(text: str, done: int, total: int) -> None:
        if text.startswith("importing Makefile"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_mirror(DEBIAN, workspace, interrupt)
    assert update_mirror(DEBIAN, workspace).git.run("fsck", "--strict") is not None


def test_a_damaged_archive_is_the_labs(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)
    archive = mirror.DEBIAN_SOURCES / "linux-source-6.12.tar.xz"
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(InfrastructureError):
        update_mirror(DEBIAN, workspace)


def test_a_package_that_is_not_installed_says_how_to_install_it(workspace: Workspace, package) -> None:
    with pytest.raises(InfrastructureError) as caught:
        update_mirror(DEBIAN, workspace)
    assert caught.value.failure.advice == "Install it: apt-get install linux-source-6.12"
