"""Which submissions share a thread of the lab's mails."""

from __future__ import annotations

import pytest

from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_report.mail import thread_of

READ = SourceMail(message_id="v2@example.org", sender="ada@example.org", subject="x", verified=True)
UPLOADED = READ.model_copy(update={"verified": False})


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param((READ, 1, "ada"), (READ, 2, "bob"), True, id="read from an archive"),
        pytest.param((READ, 1, "ada"), (UPLOADED, 2, "mallory"), False, id="upload with its Message-ID"),
        pytest.param((READ, 1, "ada"), (UPLOADED, 2, "ada"), False, id="upload by its owner"),
        pytest.param((UPLOADED, 1, "ada"), (UPLOADED, 2, "ada"), True, id="uploads of one owner"),
        pytest.param((UPLOADED, 1, "ada"), (UPLOADED, 2, "mallory"), False, id="uploads of two owners"),
        pytest.param((UPLOADED, 1, "ada"), (None, 2, "ada"), False, id="no mail"),
        pytest.param((None, 1, "ada"), (None, 2, "ada"), False, id="no mails"),
    ],
)
def test_an_upload_shares_no_thread_with_others(
    first: tuple[SourceMail | None, int, str], second: tuple[SourceMail | None, int, str], same: bool
) -> None:
    assert (thread_of(*first) == thread_of(*second)) is same


def test_no_message_id_makes_an_upload_look_like_another_thread() -> None:
    for message_id in ("submission@5", "v2@example.org"):
        hostile = UPLOADED.model_copy(update={"message_id": message_id})
        assert " " in thread_of(hostile, 1, "mallory")
        assert thread_of(hostile, 1, "mallory") not in {message_id, "submission 5"}
