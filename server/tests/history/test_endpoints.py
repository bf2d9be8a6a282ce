"""Endpoints of the history, on rows as the pipeline writes them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select

from wqlab_contracts.api.history import HistoryLineData
from wqlab_contracts.enums import Scope, UserRole
from wqlab_server.http.auth import create_token
from wqlab_server.models import (
    AuditEntry,
    User,
)
from wqlab_server.settings import Settings

from ..support.history import VALUES, add_history
from ..support.lab import LabUnderTest
from ..support.people import add_user

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(settings, engine)
    run = lab.runs(lab.submit("locks@device"))[0]
    with lab.client, lab.transaction() as session:
        add_user(session, "kay", UserRole.VIEWER)
        add_history(session, run.id)
    yield lab


def get(lab: LabUnderTest, path: str, status: int = 200) -> Any:
    answer = lab.client.get(f"/api/v1/history/{path}", headers={"Authorization": f"Bearer {lab.token}"})
    assert answer.status_code == status, answer.text
    return answer.json()


def change(lab: LabUnderTest, body: dict[str, Any], status: int = 200, token: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token or lab.token}"}
    answer = lab.client.patch("/api/v1/history/shifts/1", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_lines_have_their_last_point_level_and_open_shifts(lab: LabUnderTest) -> None:
    page = get(lab, "lines?tree=next&metric=locks_per_flush&role=primary")
    (line,) = page["items"]
    assert (page["total"], line["points"], line["open_shifts"], line["effect_unit"]) == (1, 10, 1, "locks")
    assert line["last"]["value"] == 40 and line["last"]["head"]["commit"] == f"{10:040x}"
    assert (line["level"]["start"], line["level"]["middle"]) == (6, 40)
    assert line["recent"] == VALUES
    assert get(lab, "lines?device_type=other")["items"] == []


def test_line_has_points_levels_and_shifts(lab: LabUnderTest) -> None:
    line = get(lab, "lines/1")
    assert HistoryLineData.model_validate_json(json.dumps(line)).points == len(VALUES)
    assert line["last"] == line["series"][-1]
    assert [point["value"] for point in line["series"]] == VALUES
    assert [(level["start"], level["end"]) for level in line["levels"]] == [(0, 6), (6, 10)]
    (shift,) = line["shifts"]
    assert (shift["before"]["id"], shift["after"]["id"], shift["worse"]) == (6, 7, True)
    assert get(lab, "lines/99", 404)["detail"] == "no history line 99"


def test_points_as_csv(lab: LabUnderTest) -> None:
    headers = {"Authorization": f"Bearer {lab.token}"}
    answer = lab.client.get("/api/v1/history/lines/1?format=csv", headers=headers)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [float(row["value"]) for row in rows] == VALUES
    assert (rows[6]["verdict"], rows[6]["effect"], rows[0]["effect"]) == ("regression", "6.0", "")


def test_shifts_are_filtered(lab: LabUnderTest) -> None:
    assert [each["id"] for each in get(lab, "shifts?state=new&plan=locks")["items"]] == [1]
    assert get(lab, "shifts?state=fixed")["items"] == []
    assert get(lab, "shifts?since=2026-11-30T00:00:00Z")["total"] == 0
    assert "timezone" in get(lab, "shifts?since=2026-11-30T00:00:00", 422)["errors"][0]["detail"]
    assert get(lab, "shifts?since=0.5", 422)["errors"][0]["parameter"] == "since"
    assert get(lab, "shifts/1")["line"]["metric"] == "locks_per_flush"
    assert get(lab, "shifts/2", 404)["detail"] == "no shift 2"


def test_maintainer_explains_a_shift(lab: LabUnderTest) -> None:
    shift = change(lab, {"state": "explained", "owner": "kay", "notes": "more pools on purpose"})
    assert (shift["state"], shift["owner"], shift["notes"]) == ("explained", "kay", "more pools on purpose")
    assert shift["changed_by"] == "dev"
    assert change(lab, {"owner": ""})["notes"] == "more pools on purpose"
    with lab.transaction() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action == "shift.change")).all()
    assert entries[0].resource == "shift/1" and entries[0].detail["changed"]["state"] == "explained"
    assert entries[1].detail == {"changed": {"owner": ""}}


def test_changes_that_are_refused(lab: LabUnderTest) -> None:
    assert "'new', 'confirmed', 'explained' or 'fixed'" in str(change(lab, {"state": "not_reproduced"}, 422))
    assert change(lab, {"owner": "nobody"}, 422)["errors"][0]["detail"] == "there is no account 'nobody'"
    assert "was not measured again" in change(lab, {"state": "confirmed"}, 409)["detail"]
    with lab.transaction() as session:
        kay = session.scalars(select(User).where(User.name == "kay")).one()
        _, viewer = create_token(session, "kay", [Scope.READ], user=kay)
    change(lab, {"notes": "x"}, 403, viewer)


def test_line_is_sent_again_only_if_it_has_changed(lab: LabUnderTest) -> None:
    headers = {"Authorization": f"Bearer {lab.token}"}
    first = lab.client.get("/api/v1/history/lines/1", headers=headers)
    known = headers | {"If-None-Match": first.headers["ETag"]}
    again = lab.client.get("/api/v1/history/lines/1", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    change(lab, {"notes": "more pools"})
    assert lab.client.get("/api/v1/history/lines/1", headers=known).status_code == 200
