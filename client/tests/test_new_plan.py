"""`wqlab plans new NAME`: a new plan's files, bad names, existing files, and folders that are no checkout.

tests/test_new_plan_files.py checks that the files pass lint and tests.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commandline import Wqlab

from wqlab_client.new_plan import COMMON, LONGEST_NAME, SKELETON, TEMPLATES

REPOSITORY = Path(__file__).parents[2]
RECORDED = Path("worker/tests/measure/parsers/recorded")
FILES = {
    "testplans/futex-wake/plan.yaml",
    "testplans/futex-wake/futex-wake.sh",
    "testplans/futex-wake/README.md",
    "worker/wqlab_worker/measure/parsers/futex_wake.py",
    "worker/tests/measure/parsers/test_futex_wake.py",
    "worker/tests/measure/parsers/recorded/futex-wake-2cpu.txt",
}


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the templates and an existing plan and parser; the current folder is one in it."""
    folder = tmp_path / "checkout"
    for copied in (SKELETON, COMMON):
        shutil.copytree(REPOSITORY / copied, folder / copied)
    for existing in ("testplans/forks/plan.yaml", "worker/wqlab_worker/measure/parsers/fio.py"):
        (folder / existing).parent.mkdir(parents=True)
        (folder / existing).write_text("of another person\n")
    (folder / RECORDED).mkdir(parents=True)
    (folder / "docs").mkdir()
    monkeypatch.chdir(folder / "docs")
    return folder


def test_new_plan_is_created_with_parser_and_test(wqlab: Wqlab, checkout: Path) -> None:
    before = files(checkout)
    ended = wqlab("plans", "new", "futex-wake")
    assert ended.code == 0, ended.err
    created = {name: text for name, text in files(checkout).items() if name not in before}
    assert created.keys() == FILES
    assert {line.removeprefix("new  ") for line in ended.out.splitlines()} == FILES
    assert not any("@NAME@" in text or "@MODULE@" in text for text in created.values())
    assert "--target futex-wake@tiny" in ended.err


def test_checkout_can_be_named(wqlab: Wqlab, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert wqlab("plans", "new", "futex-wake", "--checkout", str(checkout)).code == 0
    assert files(checkout).keys() >= FILES


def test_folder_outside_a_checkout_is_refused(wqlab: Wqlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = wqlab("plans", "new", "futex-wake")
    assert ended.code == 2
    assert f"{tmp_path} is not in a checkout of wqlab" in ended.err
    assert "clone the lab's repository and run this in it" in ended.err
    assert files(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("new", "that is a command of `wqlab plans`"),
        ("show", "that is a command of `wqlab plans`"),
        ("Futex", "cannot be the name of a plan"),
        ("futex_wake", "cannot be the name of a plan"),
        ("9p", "cannot be the name of a plan"),
        ("futex-", "cannot be the name of a plan"),
        ("futex--wake", "cannot be the name of a plan"),
        ("../futex", "cannot be the name of a plan"),
        ("", "cannot be the name of a plan"),
        ("f" * (LONGEST_NAME + 1), "cannot be the name of a plan"),
        ("lambda", "that is a word of Python"),
        ("null", "YAML reads that word as another value than text"),
        ("true", "YAML reads that word as another value than text"),
        ("off", "YAML reads that word as another value than text"),
        ("device", "would replace testplans/common/device.sh"),
        ("dm-crypt", "would replace testplans/common/dm-crypt.sh"),
        ("forks", "testplans/forks exists already"),
        ("skeleton", "testplans/skeleton exists already"),
        ("fio", "parsers/fio.py exists already"),
    ],
)
def test_bad_name_is_refused_and_nothing_is_written(wqlab: Wqlab, checkout: Path, name: str, reason: str) -> None:
    before = files(checkout)
    ended = wqlab("plans", "new", name)
    assert ended.code == 2
    assert reason in ended.err
    assert files(checkout) == before


def test_incomplete_checkout_is_refused(wqlab: Wqlab, checkout: Path) -> None:
    (checkout / SKELETON / "parser.py.in").unlink()
    before = files(checkout)
    ended = wqlab("plans", "new", "futex-wake")
    assert ended.code == 2
    assert f"{SKELETON}/parser.py.in cannot be read: No such file or directory" in ended.err
    assert files(checkout) == before


def test_failed_write_leaves_nothing(wqlab: Wqlab, checkout: Path) -> None:
    """The folder of the last file is missing, and its parent is a file."""
    (checkout / RECORDED).rmdir()
    (checkout / RECORDED).write_text("a file\n")
    before = files(checkout)
    ended = wqlab("plans", "new", "futex-wake")
    assert ended.code == 2
    assert "cannot write" in ended.err and "nothing was written" in ended.err
    assert files(checkout) == before
    assert not (checkout / "testplans/futex-wake").exists()


def test_each_template_is_used() -> None:
    assert {path.name for path in (REPOSITORY / SKELETON).iterdir()} == set(TEMPLATES)
