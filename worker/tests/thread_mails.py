"""Write mails and whole series for tests."""

from __future__ import annotations

from collections.abc import Iterable


def mail(
    subject: str,
    id_: str,
    *,
    to: str | None = None,
    body: str | None = None,
    author: str = "Ada <ada@example.org>",
    day: int = 5,
    references: Iterable[str] = (),
    file: str = "kernel/workqueue.c",
    at: str = "10:00:00",
) -> str:
    """Return a mail of an mbox; a patch unless it has a body."""
    if body is None:
        body = (
            f"why\n\nSigned-off-by: {author}\n---\n 1 file changed\n\n"
            f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1,2 @@\n-a\n+b\n+c\n-- \n2.39\n"
        )
    lines = [f"From: {author}", f"Subject: {subject}", f"Date: Mon, {day} Jan 2026 {at} +0100"]
    lines += [f"Message-ID: <{id_}>"]
    lines += [f"In-Reply-To: <{to}>"] if to else []
    lines += [f"References: {' '.join(f'<{each}>' for each in references)}"] if references else []
    return "From mboxrd@z Thu Jan  1 00:00:00 1970\n" + "\n".join(lines) + f"\n\n{body}\n"


def series(
    title: str,
    *,
    version: int = 1,
    patches: int = 2,
    day: int = 5,
    to: str | None = None,
    change_id: str = "",
    author: str = "Ada <ada@example.org>",
    name: str = "",
) -> list[str]:
    """Return a cover letter `NAME-vN-0@x` and patches `NAME-vN-M@x` that reply to it."""
    name = name or title.rsplit(maxsplit=1)[-1]
    prefix = "PATCH" if version == 1 else f"PATCH v{version}"
    cover = f"{name}-v{version}-0@x"
    footer = f"\nchange-id: {change_id}\n" if change_id else ""
    found = [
        mail(f"[{prefix} 0/{patches}] {title}", cover, to=to, body=f"Why.\n{footer}", author=author, day=day),
    ]
    for number in range(1, patches + 1):
        id_ = f"{name}-v{version}-{number}@x"
        found.append(
            mail(f"[{prefix} {number}/{patches}] {title}: part {number}", id_, to=cover, author=author, day=day)
        )
    return found
