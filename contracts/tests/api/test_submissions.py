"""Resources of submissions."""

from __future__ import annotations

from wqlab_contracts.api.submissions import SubmissionRequest, SubmittedRequest
from wqlab_contracts.messages import MboxSeries, Series, Target


def test_text_of_an_mbox_is_replaced_by_its_size() -> None:
    """Requests, and reports that an older server stored, contain the text."""
    request = SubmissionRequest(
        series=Series(mbox=MboxSeries(text="From wörk\n")),
        tree="linux",
        targets=[Target(plan="flush", device_type="tiny")],
    )
    found = SubmittedRequest.model_validate_json(request.model_dump_json())
    assert found.series is not None
    assert found.series.mbox is not None
    assert found.series.mbox.size == 11
    assert SubmittedRequest.model_validate_json(found.model_dump_json()) == found
    assert "wörk" not in found.model_dump_json()
