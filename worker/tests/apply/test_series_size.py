"""Series that expand by copies, renames, binary deltas or nested trees end as user failures that name the limit."""

from __future__ import annotations

import base64
import subprocess
import zlib
from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Tree
from wqlab_worker.apply import confined_git, series_size
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.failures import JobError
from wqlab_worker.workspace import Workspace

from .submissions import branch, mbox, passed, refused, submit

MAIL = """\
From {number:040x} Mon Sep 17 00:00:00 2001
From: Eve <eve@example.org>
Subject: [PATCH {number}/{total}] {title}
Date: Fri, 2 Jan 2026 03:04:05 +0000

x
---
{diff}--

"""


def series(diffs: list[str]) -> str:
    """Return an mbox with one mail for each diff."""
    total = len(diffs)
    return "".join(
        MAIL.format(number=number, total=total, title=f"patch {number}", diff=diff)
        for number, diff in enumerate(diffs, start=1)
    )


def literal(path: str, content: bytes) -> str:
    """Return a diff that creates a file by `GIT binary patch` with its whole, compressed content."""
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{blob_id(content)}\nGIT binary patch\n"
        f"{_binary('literal', len(content), content)}\nliteral 0\nHcmV?d00001\n\n"
    )


def delta(path: str, old: bytes, new: bytes, instructions: bytes) -> str:
    """Return a diff that changes a file by a binary delta, whose size does not depend on that of the result."""
    return (
        f"diff --git a/{path} b/{path}\nindex {blob_id(old)}..{blob_id(new)} 100644\nGIT binary patch\n"
        f"{_binary('delta', len(instructions), instructions)}\nliteral 0\nHcmV?d00001\n\n"
    )


def repeat(size: int, times: int) -> bytes:
    """Return a delta (gitformat-pack(5)) that copies a source of `size` bytes (at most 0xffffff) `times` times."""
    copy = bytes([0x80 | 0x70]) + size.to_bytes(3, "little")
    return _varint(size) + _varint(size * times) + copy * times


def blob_id(content: bytes) -> str:
    return (
        subprocess.run(["git", "hash-object", "-t", "blob", "--stdin"], input=content, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


def _binary(kind: str, size: int, content: bytes) -> str:
    packed = zlib.compress(content, 9)
    lines = [f"{kind} {size}"]
    for start in range(0, len(packed), 52):
        part = packed[start : start + 52]
        length = chr(64 + len(part)) if len(part) <= 26 else chr(70 + len(part))
        lines.append(length + base64.b85encode(part, pad=True).decode())
    return "\n".join(lines) + "\n"


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


TEXT = b"a line of text\n" * (1 << 17)


def rename(old: str, new: str) -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n"


def copy(old: str, new: str) -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\ncopy from {old}\ncopy to {new}\n"


@pytest.mark.nightly
def test_chain_of_renames_names_the_patch_limit(tree: Tree, workspace: Workspace) -> None:
    """Each mail renames a file of 2 MiB; without renames, its patch has 4 MiB."""
    chain = [rename(f"big{n}", f"big{n + 1}") for n in range(40)]
    text = series([literal("big0", TEXT), *chain])
    assert len(text) < 40_000
    message = refused(submit(tree, workspace, mbox(text)))
    assert f"more than {series_size.PATCH_BYTES >> 20} MiB" in message


@pytest.mark.nightly
def test_copies_of_a_file_name_the_checkout_limit(tree: Tree, workspace: Workspace) -> None:
    content = bytes(8 << 20)
    text = series([literal("big", content), "".join(copy("big", f"copy{n}") for n in range(70))])
    assert len(text) < 60_000
    message = refused(submit(tree, workspace, mbox(text)))
    assert f"more than {series_size.CHECKOUT_BYTES >> 20} MiB" in message


def test_binary_delta_names_the_file_limit(tree: Tree, workspace: Workspace) -> None:
    small = bytes(1 << 20)
    text = series([literal("big", small), delta("big", small, small * 100, repeat(len(small), 100))])
    assert len(text) < 10_000
    message = refused(submit(tree, workspace, mbox(text)))
    assert f"{series_size.FILE_BYTES >> 20} MiB" in message


def test_binary_delta_of_gigabytes_is_stopped_in_the_sandbox(tree: Tree, workspace: Workspace) -> None:
    small = bytes(1 << 20)
    instructions = repeat(len(small), 3000)
    text = series([literal("big", small), delta("big", small, b"", instructions)])
    refused(submit(tree, workspace, mbox(text)))


def bomb(repository, depth: int, width: int = 20) -> str:
    """Return a commit whose tree has width**depth files, made of `depth` objects."""

    def run(*arguments: str, text: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=repository.path, input=text, capture_output=True, text=True, check=True
        ).stdout.strip()

    inner, mode = run("hash-object", "-w", "--stdin", text="boom\n"), "100644 blob"
    for _ in range(depth):
        inner = run("mktree", text="".join(f"{mode} {inner}\tf{n}\n" for n in range(width)))
        mode = "040000 tree"
    top = repository.git("ls-tree", "master") + f"\n040000 tree {inner}\tbomb\n"
    tree_oid = run("mktree", text=top)
    return repository.git("commit-tree", tree_oid, "-p", "master", "-m", "bomb")


def test_nested_trees_name_the_limit_of_files(tree: Tree, workspace: Workspace, repository) -> None:
    repository.git("branch", "bomb", bomb(repository, 8))
    message = refused(submit(tree, workspace, branch(repository, "bomb")))
    assert f"more than {series_size.TREE_FILES} files" in message


@pytest.mark.nightly
def test_nested_trees_of_an_earlier_patch_name_the_memory_limit(tree: Tree, workspace: Workspace, repository) -> None:
    commit = bomb(repository, 8)
    reverted = repository.git("commit-tree", "master^{tree}", "-p", commit, "-m", "revert")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.git("switch", "--quiet", "-c", "bomb")
    tip = repository.commit("workqueue: raise max_active")
    repository.git("branch", "hidden", repository.git("commit-tree", f"{tip}^{{tree}}", "-p", reverted, "-m", "tip"))
    repository.git("switch", "--quiet", "master")
    result = submit(tree, workspace, branch(repository, "hidden"))
    refused(result)
    assert result.failure and "MiB of memory" in result.failure.advice


def test_large_commit_message_names_the_output_limit(tree: Tree, workspace: Workspace, repository) -> None:
    repository.git("switch", "--quiet", "-c", "talk")
    repository.edit("kernel/workqueue.c", "512", "1024")
    (repository.path.parent / "message").write_text("title\n\n" + "words of no use\n" * (1 << 20))
    repository.git("commit", "--quiet", "--all", "-F", str(repository.path.parent / "message"))
    repository.git("switch", "--quiet", "master")
    message = refused(submit(tree, workspace, branch(repository, "talk")))
    assert f"more than {confined_git.OUTPUT_BYTES >> 20} MiB" in message


def test_build_refuses_a_bundle_that_expands(tree: Tree, workspace: Workspace, repository, monkeypatch) -> None:
    """The machine that builds does not rely on the checks of the one that applied the series."""
    text = series([literal("big", bytes(8 << 20)), "".join(copy("big", f"copy{n}") for n in range(20))])
    result = passed(submit(tree, workspace, mbox(text)))
    assert result.candidate
    monkeypatch.setattr(series_size, "CHECKOUT_BYTES", 32 << 20)
    with pytest.raises(JobError) as raised, checked_out(result.candidate, workspace):
        pass
    assert raised.value.failure.kind is ErrorKind.USER
    assert "more than 32 MiB" in raised.value.failure.summary


def test_attributes_of_a_series_change_no_file(tree: Tree, workspace: Workspace, repository) -> None:
    content = b"$Id$\n"
    subprocess.run(["git", "hash-object", "-w", "--stdin"], cwd=repository.path, input=content, check=True)
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob_id(content)},new")
    repository.write({".gitattributes": "* working-tree-encoding=UTF-32 ident\n"})
    attributes = repository.git("hash-object", "-w", "--no-filters", ".gitattributes")
    (repository.path / ".gitattributes").unlink()
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{attributes},.gitattributes")
    tree_oid = repository.git("write-tree")
    repository.git("branch", "attributes", repository.git("commit-tree", tree_oid, "-p", "master", "-m", "attributes"))
    result = passed(submit(tree, workspace, branch(repository, "attributes")))
    assert result.candidate
    with checked_out(result.candidate, workspace) as checked:
        assert (Path(checked.files) / "new").read_bytes() == b"$Id$\n"
