"""Find a series on a Patchwork: with recorded answers of Patchwork 3.2.1, and with wrong answers.

`server/tests/intake/test_real_patchwork.py` compares the recorded answers with those of a real Patchwork by night.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hostile_archive as hostile
import pytest
from hostile_archive import Handler, HostileServer
from thread_mails import mail, series

from wqlab_contracts.messages import TakenThread, ThreadSeries
from wqlab_contracts.specs import Archive
from wqlab_worker.failures import InfrastructureError, UserError
from wqlab_worker.intake.archive import ArchiveClient, Limits
from wqlab_worker.intake.fetch_thread import fetch_thread
from wqlab_worker.workspace import Workspace

RECORDED = Path(__file__).parent / "patchwork-3.2.1.json"
SERIES, MBOX, COVER = "/api/1.3/series/1/", "/series/1/mbox/", "/project/wq/cover/less-v1-0@x/mbox/"
Answers = dict[str, dict[str, Any]]


class Patchwork:
    """A lab's worker, and a server that gives the recorded answers, which a test changes."""

    def __init__(self, server: HostileServer, folder: Path) -> None:
        self.server, self.lab = server, Workspace(folder)
        self.answers: Answers = json.loads(RECORDED.read_text())
        self.server.answer = self._answer

    def _answer(self, handler: Handler) -> None:
        found = self.answers.get(f"GET {handler.path}", {"status": 404, "body": "{}"})
        handler.send(found["status"], found["body"].encode())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def archive(self, **changes: object) -> Archive:
        fields = {"name": "pw", "kind": "patchwork", "summary": "", "url": self.url, "private": True}
        return Archive.model_validate(fields | changes)

    def change(self, **fields: Any) -> None:
        """Change fields of the series as the API tells it."""
        body = json.loads(self.answers[f"GET {SERIES}"]["body"])
        self.answers[f"GET {SERIES}"]["body"] = json.dumps(body | fields)

    def take(
        self, address: str = "1", revision: int | None = None, *others: Archive, seconds: float = 60
    ) -> TakenThread:
        wanted = ThreadSeries(message_id=address.replace("BASE", self.url), revision=revision)
        client = ArchiveClient(self.lab, limits=Limits(pauses_s=(0.01,), answer_s=seconds))
        return fetch_thread(wanted, [self.archive(), *others], self.lab, client).taken


@pytest.fixture
def patchwork(tmp_path: Path) -> Iterator[Patchwork]:
    with HostileServer().running() as server:
        yield Patchwork(server, tmp_path / "cache")


@pytest.mark.parametrize(
    "address", ["1", "BASE/project/wq/list/?series=1", "BASE/api/1.3/series/1/", "BASE/series/1/mbox/"]
)
def test_series_is_taken_with_its_cover_letter(patchwork: Patchwork, address: str) -> None:
    taken = patchwork.take(address)
    assert (taken.archive, taken.message_id, taken.revision, taken.notes) == ("pw", "less-v1-0@x", 1, [])
    assert taken.url == f"{patchwork.url}/project/wq/list/?series=1"
    assert [(each.role, each.url) for each in taken.mails] == [
        ("cover", f"{patchwork.url}/project/wq/cover/less-v1-0@x/"),
        ("patch", f"{patchwork.url}/project/wq/patch/less-v1-1@x/"),
        ("patch", f"{patchwork.url}/project/wq/patch/less-v1-2@x/"),
    ]
    mails = patchwork.lab.path_of(taken.mbox).read_text()
    assert "Reviewed-by: Bo <bo@example.org>" in mails, "Patchwork adds trailers of replies to the patch"


@pytest.mark.parametrize("message_id", ["less-v1-0@x", "less-v1-2@x"])
def test_series_is_found_by_message_id(patchwork: Patchwork, message_id: str) -> None:
    taken = patchwork.take(message_id)
    assert [each.message_id for each in taken.mails] == ["less-v1-0@x", "less-v1-1@x", "less-v1-2@x"]
    assert "later revisions in other threads are not known" in taken.notes[0]


def test_next_archive_is_asked_for_a_message_that_the_patchwork_lacks(patchwork: Patchwork) -> None:
    with HostileServer(answer=hostile.mails(mail("[PATCH] x", "nobody@x"))).running() as other:
        assert patchwork.take("nobody@x", None, other.archive(search=None)).archive == "hostile"
        with pytest.raises(UserError, match="Patchwork pw has no series 77"):
            patchwork.take("77", None, other.archive(search=None))
        incomplete(patchwork)
        other.answer = hostile.mails("".join(series("less")))
        assert patchwork.take("less-v1-2@x", None, other.archive(search=None)).archive == "hostile"
        other.answer = lambda handler: handler.send(404, b"")
        with pytest.raises(UserError, match="1 of 2 patches have arrived"):
            patchwork.take("less-v1-2@x", None, other.archive(search=None))


def incomplete(patchwork: Patchwork) -> None:
    patchwork.change(received_all=False, received_total=1)


def renumbered(patchwork: Patchwork) -> None:
    """Change the total to 1 and list one mail, `1/2`, whose subject contradicts that."""
    listed = json.loads(patchwork.answers[f"GET {SERIES}"]["body"])["patches"]
    patchwork.change(total=1, patches=listed[:1])
    mbox = patchwork.answers[f"GET {MBOX}"]
    mbox["body"] = mbox["body"].partition("\nFrom patchwork")[0]


@pytest.mark.parametrize(
    ("change", "message", "advice"),
    [
        (incomplete, "series 1 on Patchwork pw is not complete: 1 of 2 patches have arrived", "Submit it again"),
        (lambda at: at.answers.pop(f"GET {SERIES}"), "Patchwork pw has no series 1", "submitted as an mbox"),
        (renumbered, "v1 of the series is incomplete: patch 2/2 is missing", ""),
    ],
)
def test_incomplete_series_is_a_user_error(
    patchwork: Patchwork, change: Callable[[Patchwork], object], message: str, advice: str
) -> None:
    change(patchwork)
    with pytest.raises(UserError, match=message) as error:
        patchwork.take()
    assert advice in error.value.failure.advice


def other_mbox(patchwork: Patchwork) -> None:
    patchwork.answers[f"GET {MBOX}"]["body"] = mail("[PATCH 1/2] other", "other@x") + mail(
        "[PATCH 2/2] x", "less-v1-2@x"
    )


def more_patches(patchwork: Patchwork) -> None:
    patchwork.answers[f"GET {MBOX}"]["body"] += "\n" + mail("[PATCH 3/3] slipped in", "other@x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_mbox, "sends other mails for series 1 than it lists"),
        (more_patches, "sends other mails for series 1 than it lists"),
        (lambda at: at.answers.pop(f"GET {MBOX}"), "lists mails of series 1 that it does not have"),
        (lambda at: at.answers.pop(f"GET {COVER}"), "lists mails of series 1 that it does not have"),
        (lambda at: at.change(total=3, received_total=3), "it answers with series 1, 2 patches of 3"),
        (lambda at: at.change(patches=[]), "it answers with series 1, 0 patches of 2"),
        (lambda at: at.change(id=2), "it answers with series 2, 2 patches of 2"),
        (lambda at: at.change(patches=[{"msgid": "no id"}]), "something else than its REST API 1.3"),
        (lambda at: at.change(project={"link_name": "../admin"}), "something else than its REST API 1.3"),
        (lambda at: at.answers[f"GET {SERIES}"].update(body="{"), "something else than its REST API 1.3"),
        (lambda at: at.answers[f"GET {SERIES}"].update(body='{"id":' * 10**5), "something else than its REST API 1.3"),
        (lambda at: at.change(received_total=10**4000, received_all=False), "something else than its REST API 1.3"),
        (lambda at: at.change(patches=None), "something else than its REST API 1.3"),
        (lambda at: at.change(patches=[{"msgid": "<a@x>"}] * 1001), "something else than its REST API 1.3"),
        (lambda at: at.answers[f"GET {SERIES}"].update(body="<html>"), "instead of mails"),
        (lambda at: at.answers[f"GET {MBOX}"].update(body="<html>"), "instead of mails"),
        (lambda at: at.answers[f"GET {MBOX}"].update(body=""), "ended its answer in the middle"),
        (lambda at: at.answers[f"GET {SERIES}"].update(status=502), "answers with error status 502"),
        (lambda at: at.answers[f"GET {SERIES}"].update(status=403), "refuses the request with status 403"),
    ],
)  # fmt: skip
def test_patchwork_that_lies_or_fails_is_an_infrastructure_error(
    patchwork: Patchwork, change: Callable[[Patchwork], object], message: str
) -> None:
    change(patchwork)
    with pytest.raises(InfrastructureError, match=message):
        patchwork.take()


def test_slow_patchwork_is_an_infrastructure_error(patchwork: Patchwork) -> None:
    patchwork.server.answer = hostile.silent
    with pytest.raises(InfrastructureError, match="archive pw did not answer within 1 s"):
        patchwork.take(seconds=1)


def test_private_address_needs_the_operators_permission(patchwork: Patchwork) -> None:
    public = patchwork.archive(url=f"https://127.0.0.1:{patchwork.server.port}", private=False)
    client = ArchiveClient(patchwork.lab, limits=Limits(pauses_s=()))
    with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1 is the private address"):
        fetch_thread(ThreadSeries(message_id="1"), [public], patchwork.lab, client)
    assert patchwork.server.requests == []
