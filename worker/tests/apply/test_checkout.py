"""Checked-out files of base and candidate."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.specs import Tree
from wqlab_worker.apply.checkout import checked_out
from wqlab_worker.workspace import Workspace

from .submissions import branch, mbox, passed, submit


def test_candidate_is_checked_out_from_its_bundle(
    tree: Tree, workspace: Workspace, repository, series_of_two: str
) -> None:
    result = passed(submit(tree, workspace, mbox(series_of_two)))
    assert result.candidate and result.baseline
    with checked_out(result.baseline, workspace) as of_base, checked_out(result.candidate, workspace) as checked:
        base, files = of_base.files, checked.files
        assert "return 3;" in (files / "kernel/workqueue.c").read_text()
        assert (
            "return 2;" in (base / "kernel/workqueue.c").read_text()
        )  # the file with hard links was replaced, not written
        assert (files / "kernel/fork.c").stat().st_ino == (base / "kernel/fork.c").stat().st_ino
    assert not files.exists()
    assert base.exists()


def test_symbolic_link_in_series_is_not_followed(tree: Tree, workspace: Workspace, repository, tmp_path: Path) -> None:
    target = tmp_path / "outside"
    target.mkdir()
    repository.git("switch", "--quiet", "-c", "links")
    (repository.path / "way").symlink_to(target)
    (repository.path / "kernel" / "workqueue.c").unlink()
    (repository.path / "kernel" / "workqueue.c").symlink_to("/etc/passwd")
    repository.commit("links")
    repository.git("switch", "--quiet", "master")
    result = passed(submit(tree, workspace, branch(repository, "links")))
    assert result.candidate
    with checked_out(result.candidate, workspace) as checked:
        files = checked.files
        assert (files / "way").is_symlink()
        assert (files / "kernel" / "workqueue.c").is_symlink()
    assert list(target.iterdir()) == []
