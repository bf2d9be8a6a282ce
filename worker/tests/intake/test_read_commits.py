"""What watches look at in the mails of a list, taken from the repository's series."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from wqlab_contracts.mails.mbox import parse_mails
from wqlab_contracts.messages.list_mails import PATH_LIMIT, SYMBOL_LIMIT, ListMail
from wqlab_worker.intake.read_commits import describe

SERIES = Path(__file__).parents[3] / "kernels/examples/flush-lock-runs.mbox"
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def described(text: str) -> list[ListMail]:
    return [describe(mail, NOW) for mail in parse_mails(text)]


def test_patches_have_the_symbols_that_they_change() -> None:
    cover, first, second = described(SERIES.read_text())
    assert cover.symbols == {}
    assert first.symbols == {"kernel/workqueue.c": ["pwq_prep_flush", "flush_workqueue_prep_pwqs"]}
    assert second.symbols == {"kernel/workqueue.c": ["flush_workqueue_prep_pwqs"]}


@pytest.mark.parametrize(
    "names",
    [
        "--- a/kernel/workqueue.c~workqueue-fix\n+++ a/kernel/workqueue.c\n",
        "diff -urN linux.orig/kernel/workqueue.c linux/kernel/workqueue.c\n"
        "--- linux.orig/kernel/workqueue.c\t2026-01-01\n+++ linux/kernel/workqueue.c\t2026-01-02\n",
        "diff --git c/kernel/workqueue.c w/kernel/workqueue.c\n--- c/kernel/workqueue.c\n+++ w/kernel/workqueue.c\n",
        "diff --git kernel/workqueue.c kernel/workqueue.c\n--- kernel/workqueue.c\n+++ kernel/workqueue.c\n",
    ],
)
def test_paths_of_patches_that_git_did_not_make_or_with_other_prefixes(names: str) -> None:
    diff = f"{names}@@ -1,2 +1,2 @@ static void send_mayday(struct work_struct *work)\n \ta();\n-\tb();\n+\tc();\n"
    (mail,) = described(f"From: a@b\nSubject: [PATCH] x\n\n{diff}")
    assert mail.has_patch and mail.paths == ["kernel/workqueue.c"]
    assert mail.symbols == {"kernel/workqueue.c": ["send_mayday"]}


def test_paths_of_a_mail_are_both_names_of_a_moved_file_and_limited() -> None:
    moved = "diff --git a/kernel/workqueue.c b/kernel/wq.c\nrename from kernel/workqueue.c\nrename to kernel/wq.c\n"
    other = "".join(f"diff --git {name} {name.replace('a/', 'b/')}\n" for name in ('"a/x\\033.c"', f"a/{'y' * 301}"))
    many = "".join(f"diff --git a/f{number} b/f{number}\n" for number in range(PATH_LIMIT))
    (mail,) = described(f"From: a@b\nSubject: [PATCH] x\n\n{moved}{other}{many}")
    assert mail.paths[:3] == ["kernel/workqueue.c", "kernel/wq.c", "f0"]
    assert len(mail.paths) == PATH_LIMIT


def test_diff_in_a_reply_has_no_symbols() -> None:
    _, _, reply = described(SERIES.read_text().replace("Subject: [PATCH 2/2]", "Subject: Re: [PATCH 2/2]"))
    assert reply.is_reply and reply.symbols == {}


def test_symbols_of_a_mail_are_limited() -> None:
    files = "".join(
        f"diff --git a/f{file}.c b/f{file}.c\n--- a/f{file}.c\n+++ b/f{file}.c\n@@ -0,0 +1,150 @@\n"
        + "".join(f"+int f{file}_{number};\n" for number in range(150))
        for file in range(4)
    )
    (mail,) = described(f"From: a@b\nSubject: [PATCH] x\n\n{files}")
    assert [len(symbols) for symbols in mail.symbols.values()] == [150, 150]
    assert sum(len(symbols) for symbols in mail.symbols.values()) == SYMBOL_LIMIT
    long = f"diff --git a/{'x' * 400}.c b/y.c\n--- a/{'x' * 400}.c\n+++ b/{'x' * 400}.c\n@@ -0,0 +1 @@\n+int y;\n"
    (other,) = described(f"From: a@b\nSubject: [PATCH] x\n\n{long}")
    assert other.symbols == {}
