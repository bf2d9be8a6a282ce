"""Import of Debian source packages with real git and apt, from packages made by the tests."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_contracts.specs import Tree
from wqlab_host.apt import Apt
from wqlab_worker.apply import debian
from wqlab_worker.apply.mirror import release_of, update_mirror
from wqlab_worker.failures import InfrastructureError
from wqlab_worker.workspace import Workspace, sha256_of


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a source archive like Debian's package, and set the version that dpkg reports."""
    folder = tmp_path / "usr-src"
    folder.mkdir()
    monkeypatch.setattr(debian, "INSTALLED", folder)

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

    monkeypatch.setattr(debian.subprocess, "run", run)
    return install


DEBIAN = Tree(name="linux-6.12", summary="", debian_source="linux-source-6.12")
FILES = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\nEXTRAVERSION =\n",
    "scripts/x.sh": "#!/bin/sh\n",
    'kernel/a "quoted" näme': "text\n",
    "link": "-> scripts/x.sh",
}


def test_same_debian_package_gives_same_commit_on_every_machine(workspace: Workspace, tmp_path: Path, package) -> None:
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
    assert debian.package_of(found.git, DEBIAN, found.head) == "linux-source-6.12 6.12.7-1"
    modes = found.git.run("ls-tree", "-r", "--format=%(objectmode) %(path)", found.head).splitlines()
    assert modes == [
        "100644 Makefile",
        '100644 "kernel/a \\"quoted\\" näme"',
        "120000 link",
        "100755 scripts/x.sh",
    ]


def test_new_package_version_gives_new_commit_and_keeps_old_one(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)
    old = update_mirror(DEBIAN, workspace).head
    package("6.12.8-1", FILES | {"README": "new\n"})
    found = update_mirror(DEBIAN, workspace)
    assert found.head != old
    assert found.git.commit(old) == old


def test_interrupted_import_is_restarted(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)

    def interrupt(text: str, done: int, total: int) -> None:
        if text.startswith("importing Makefile"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_mirror(DEBIAN, workspace, interrupt)
    assert update_mirror(DEBIAN, workspace).git.run("fsck", "--strict") is not None


def test_damaged_archive_is_an_infrastructure_error(workspace: Workspace, package) -> None:
    package("6.12.7-1", FILES)
    archive = debian.INSTALLED / "linux-source-6.12.tar.xz"
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(InfrastructureError):
        update_mirror(DEBIAN, workspace)


@pytest.fixture
def mirror_of_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path], None]:
    """A package repository that apt uses as the machine's mirror: `publish(version, archive)`."""
    folder = tmp_path / "debian"
    folder.mkdir()
    (folder / "Packages").touch()
    settings = tmp_path / "apt.conf"
    sources = tmp_path / "sources.list"
    sources.write_text(f"deb [trusted=yes] file:{folder} ./\n")
    settings.write_text(
        f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\nDir::State::status "/dev/null";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(settings))

    def publish(version: str, archive: Path) -> None:
        content = tmp_path / "content"
        (content / "DEBIAN").mkdir(parents=True)
        (content / "usr/src").mkdir(parents=True)
        (content / "DEBIAN/control").write_text(
            f"Package: linux-source-6.12\nVersion: {version}\nArchitecture: all\n"
            "Maintainer: Ada Tester <ada@example.org>\nDescription: kernel source\n"
        )
        archive.rename(content / "usr/src" / archive.name)
        package = folder / f"linux-source-6.12_{version}_all.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", content, package], check=True)
        shutil.rmtree(content)
        control = subprocess.run(["dpkg-deb", "-f", package], check=True, text=True, stdout=subprocess.PIPE).stdout
        found = f"Filename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {sha256_of(package)}\n"
        (folder / "Packages").write_text(control + found)

    return publish


def test_package_that_is_not_installed_is_downloaded_once(
    workspace: Workspace, package, mirror_of_debian: Callable[[str, Path], None]
) -> None:
    package("6.12.7-1", FILES)
    installed = update_mirror(DEBIAN, workspace).head
    package("6.12.8-1", FILES | {"README": "new\n"})
    mirror_of_debian("6.12.8-1", debian.INSTALLED / "linux-source-6.12.tar.xz")
    output: list[str] = []
    downloaded = update_mirror(DEBIAN, workspace, lambda text, done, total: output.append(text))
    assert downloaded.head != installed
    assert downloaded.git.run("log", "-1", "--format=%s", downloaded.head).strip() == (
        "Import linux-source-6.12 6.12.8-1"
    )
    assert "downloading linux-source-6.12 6.12.8-1" in output
    output.clear()
    assert update_mirror(DEBIAN, workspace, lambda text, done, total: output.append(text)).head == downloaded.head
    assert output == []
    assert not list((workspace.cache / "scratch").iterdir())


def test_outdated_package_lists_are_fetched_again(
    workspace: Workspace, package, mirror_of_debian: Callable[[str, Path], None], tmp_path: Path
) -> None:
    for version in ("6.12.7-1", "6.12.8-1"):
        package(version, FILES)
        mirror_of_debian(version, debian.INSTALLED / "linux-source-6.12.tar.xz")
        if version == "6.12.7-1":
            Apt(workspace.cache / "apt").versions(["linux-source-6.12"])
            (tmp_path / "debian/linux-source-6.12_6.12.7-1_all.deb").unlink()
    found = update_mirror(DEBIAN, workspace)
    assert "6.12.8-1" in found.git.run("log", "-1", "--format=%s", found.head)


def test_error_for_unavailable_package_advises_to_install_it(
    workspace: Workspace, package, mirror_of_debian: Callable[[str, Path], None]
) -> None:
    with pytest.raises(InfrastructureError) as caught:
        update_mirror(DEBIAN, workspace)
    assert "linux-source-6.12" in caught.value.failure.summary
    assert "apt-get install linux-source-6.12" in caught.value.failure.advice
