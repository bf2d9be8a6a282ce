"""Who gets which result by mail, as a table."""

from __future__ import annotations

import pytest
from failed_examples import FAILED
from letter_examples import measured
from modelled_examples import beside_measured, modelled, withheld
from report_examples import improvement, panic

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Verdict
from wqlab_contracts.mail import ReplyTo
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_report.letters.audience import Audience, audience_of, shown_to
from wqlab_report.mail import Sender, preview, says, verdicts

SOURCE = SourceMail(message_id="p@x", sender="ada@example.org", to=["list@example.org"], subject="[PATCH] x")


def judged(report: Report, verdict: Verdict) -> Report:
    return report.model_copy(
        update={"targets": [each.model_copy(update={"verdict": verdict}) for each in report.targets]}
    )


def both(first: Report, second: Report) -> Report:
    return first.model_copy(update={"targets": [*first.targets, *second.targets]})


@pytest.mark.parametrize(
    ("report", "audience"),
    [
        pytest.param(improvement(), Audience.AUTHOR, id="count"),
        pytest.param(modelled(), Audience.AUTHOR, id="model"),
        pytest.param(withheld(), Audience.NOBODY, id="withheld"),
        pytest.param(judged(improvement(), Verdict.INCONCLUSIVE), Audience.NOBODY, id="count not decided"),
        pytest.param(measured(), Audience.EVERYONE, id="hardware"),
        pytest.param(judged(measured(1.0), Verdict.EQUIVALENT), Audience.EVERYONE, id="equivalent on hardware"),
        pytest.param(judged(measured(), Verdict.INCONCLUSIVE), Audience.NOBODY, id="hardware not decided"),
        pytest.param(judged(measured(), Verdict.UNSUPPORTED), Audience.NOBODY, id="unsupported"),
        pytest.param(both(measured(), improvement()), Audience.EVERYONE, id="hardware and count"),
        pytest.param(panic(), Audience.EVERYONE, id="kernel failure"),
        pytest.param(FAILED["does-not-apply"](), Audience.AUTHOR, id="does not apply"),
        pytest.param(FAILED["lab-failure"](), Audience.NOBODY, id="failure of the lab"),
    ],
)
def test_audience_and_recipients(report: Report, audience: Audience) -> None:
    assert audience_of(report) is audience
    mail = preview(report, SOURCE, Sender("wqlab@lab.example", ReplyTo.ALL))
    recipients = {
        Audience.NOBODY: ([], []),
        Audience.AUTHOR: (["ada@example.org"], []),
        Audience.EVERYONE: (["ada@example.org"], ["list@example.org"]),
    }
    assert (mail.to, mail.cc) == recipients[audience]
    assert bool(says(report)) is (audience is not Audience.NOBODY)


def test_a_list_gets_no_count_and_is_told_that_it_is_left_out() -> None:
    report = both(measured(), improvement())
    (shown,) = shown_to(report, Audience.EVERYONE).targets
    assert not shown.emulated
    mail = preview(report, SOURCE, Sender("wqlab@lab.example", ReplyTo.ALL))
    assert "acquisitions" not in mail.body
    assert "1 target of which the lab mails nothing to these readers" in " ".join(mail.body.split())
    assert says(report).keys() == {"dm-crypt-affinity on ryzen-3900x"}
    assert len(verdicts(report)) == 2


def test_an_author_gets_counts_and_modelled_figures() -> None:
    assert len(shown_to(beside_measured(), Audience.AUTHOR).targets) == 2
