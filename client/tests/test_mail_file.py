"""`wqlab report --format mail` against the real server."""

from __future__ import annotations

from email import message_from_string
from email.policy import default
from pathlib import Path

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from wqlab_contracts.messages import MboxSeries, Series

pytestmark = pytest.mark.integration
MBOX = (
    "From: Ada <ada@example.org>\nTo: lkml@example.org\nSubject: [PATCH] wq: faster\nMessage-ID: <p@example.org>\n\n"
    "diff --git a/a b/a\n--- a/a\n+++ b/a\n"
)


@pytest.fixture(autouse=True)
def _mail_waits_for_review(real_lab: LabUnderTest) -> None:
    """Finish a submission whose result is to be mailed."""
    mail = {"smtp_host": "127.0.0.1", "smtp_tls": "none", "mail_from": "wqlab <wqlab@lab.example>"}
    real_lab.app.state.settings = real_lab.settings = real_lab.settings.model_copy(update=mail)
    real_lab.mark_all_good()
    real_lab.finished(real_lab.submit("locks@single", series=Series(mbox=MboxSeries(text=MBOX))))


def test_mail_as_a_file_to_send_by_hand(ask: Wqlab, tmp_path: Path) -> None:
    file = tmp_path / "reply.eml"
    assert ask("report", "1", "--format", "mail", "-o", str(file)).code == 0
    mail = message_from_string(file.read_text(), policy=default)
    # Counts of an emulated device go to the author alone.
    assert (mail["To"], mail["Cc"], mail["In-Reply-To"]) == ("Ada <ada@example.org>", None, "<p@example.org>")
    assert mail.get_content().startswith("33 to 5 lock acquisitions per flush, on an emulated 4-CPU guest\n")  # type: ignore[attr-defined]
