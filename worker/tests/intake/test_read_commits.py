"""What rules look at in the mails of a list, taken from the repository's series."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from wqlab_contracts.mbox import parse_mails
from wqlab_contracts.messages.list_mails import SYMBOL_LIMIT, ListMail
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
