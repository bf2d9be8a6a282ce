"""Download from an archive that is slow, gone, lies about sizes, sends something else, or redirects inward."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import hostile_archive as hostile
import pytest
from hostile_archive import Answer, HostileServer

from wqlab_contracts.enums import ErrorKind
from wqlab_contracts.specs import Archive
from wqlab_worker.intake.archive import MIB, ArchiveClient, ArchiveUnavailable, Limits, TooLarge
from wqlab_worker.workspace import Workspace

QUICK = Limits(answer_s=60.0, total_s=120.0, pauses_s=(0.01, 0.01))
MAILS = "From mboxrd@z Thu Jan  1 00:00:00 1970\nSubject: x\n\nbody\n"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer().running() as server:
        yield server


@pytest.fixture
def lab(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "cache")


def client(lab: Workspace, limits: Limits = QUICK) -> ArchiveClient:
    return ArchiveClient(lab, limits=limits)


def unavailable(server: HostileServer, lab: Workspace, answer: Answer, limits: Limits = QUICK) -> str:
    """Return why the thread cannot be downloaded."""
    server.answer = answer
    with pytest.raises(ArchiveUnavailable) as error:
        client(lab, limits).thread(server.archive(), "a@b", lab.cache.parent / "mbox")
    assert error.value.failure.kind is ErrorKind.INFRASTRUCTURE
    return f"{error.value.failure.summary} {error.value.failure.excerpt} {error.value.failure.advice}"


def test_mails_are_expanded(server: HostileServer, lab: Workspace, tmp_path: Path) -> None:
    server.answer = hostile.mails(MAILS)
    assert client(lab).thread(server.archive(), "a/b@c", tmp_path / "mbox")
    assert (tmp_path / "mbox").read_text() == MAILS
    assert client(lab).search(server.archive(), 's:"x y"', tmp_path / "mbox")
    assert server.requests == ["GET /a%2Fb@c/t.mbox.gz", "POST /"]


def test_missing_message_is_no_failure(server: HostileServer, lab: Workspace, tmp_path: Path) -> None:
    assert not client(lab).thread(server.archive(), "a@b", tmp_path / "mbox")
    assert not client(lab).search(server.archive(), "x", tmp_path / "mbox")
    assert not client(lab).search(server.archive(search=None), "x", tmp_path / "mbox")
    assert len(server.requests) == 2


def test_web_page_is_not_taken_for_mails(server: HostileServer, lab: Workspace) -> None:
    found = unavailable(server, lab, hostile.html)
    assert "archive hostile answers with text/html instead of mails" in found
    assert "Are you a robot?" in found
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [hostile.silent, hostile.drip_header, hostile.drip_body])
def test_slow_archive_is_given_up_in_time(server: HostileServer, lab: Workspace, answer: Answer) -> None:
    found = unavailable(server, lab, answer, Limits(answer_s=1.0, total_s=2.5, pauses_s=(0.01, 0.01)))
    assert "did not answer within" in found


def test_archive_that_is_gone_is_asked_again(lab: Workspace) -> None:
    with HostileServer().running() as gone:
        pass
    assert "archive hostile cannot be read" in unavailable(gone, lab, hostile.html)


def test_busy_archive_is_asked_again(server: HostileServer, lab: Workspace, tmp_path: Path) -> None:
    server.answer = hostile.fail_first(2, 503, hostile.mails(MAILS))
    assert client(lab).thread(server.archive(), "a@b", tmp_path / "mbox")
    assert len(server.requests) == 3
    assert "error status 429" in unavailable(server, lab, hostile.fail_first(9, 429, hostile.html))


def test_refusal_is_reported(server: HostileServer, lab: Workspace) -> None:
    assert "refuses the request with status 403" in unavailable(server, lab, lambda handler: handler.send(403, b"no"))


def test_answer_shorter_than_announced_is_refused(server: HostileServer, lab: Workspace) -> None:
    assert "archive hostile cannot be read" in unavailable(
        server, lab, hostile.announce(5000, gzip.compress(MAILS.encode()))
    )


def test_answer_longer_than_announced_is_refused(server: HostileServer, lab: Workspace) -> None:
    whole = gzip.compress(MAILS.encode())
    found = unavailable(server, lab, hostile.announce(len(whole) - 8, whole))
    assert "ended its answer in the middle" in found


def test_damaged_mails_are_refused(server: HostileServer, lab: Workspace) -> None:
    found = unavailable(server, lab, lambda handler: handler.send(200, b"\x1f\x8b\x08" + b"\xff" * 100))
    assert "damaged gzip file" in found


@pytest.mark.parametrize(
    ("answer", "limits", "named"),
    [
        (hostile.bomb, Limits(expanded_bytes=8 * MIB), "8 MiB of mails"),
        (hostile.endless, Limits(compressed_bytes=MIB), "1 MiB of compressed mails"),
        (hostile.announce(1 << 40, b""), Limits(), "16 MiB of compressed mails"),
    ],
)
def test_too_many_bytes_are_not_read(
    server: HostileServer, lab: Workspace, tmp_path: Path, answer: Answer, limits: Limits, named: str
) -> None:
    server.answer = answer
    with pytest.raises(TooLarge, match=named):
        client(lab, limits).thread(server.archive(), "a@b", tmp_path / "mbox")
    assert (tmp_path / "mbox").stat().st_size <= limits.expanded_bytes if (tmp_path / "mbox").exists() else True


def test_redirects_are_followed_only_where_the_archive_itself_may_be(server: HostileServer, lab: Workspace) -> None:
    with HostileServer(hostile.mails(MAILS)).running() as inner:
        found = unavailable(server, lab, hostile.redirect(f"http://127.0.0.1:{inner.port}/"))
        assert "which is not https" in found
        found = unavailable(server, lab, hostile.redirect(f"https://localhost:{inner.port}/"))
        assert "localhost is the private address" in found
        assert inner.requests == []
    assert "redirects more than 5 times" in unavailable(server, lab, hostile.redirect("/again"))
    assert "with credentials" in unavailable(server, lab, hostile.redirect("https://me:pw@example.org/"))
    assert "which is not https" in unavailable(server, lab, hostile.redirect("ftp://example.org/"))
    assert "redirects to" in unavailable(server, lab, hostile.redirect("https://[broken/"))


def test_search_is_not_repeated_as_a_get(server: HostileServer, lab: Workspace, tmp_path: Path) -> None:
    server.answer = hostile.redirect("/elsewhere")
    with pytest.raises(ArchiveUnavailable, match="status 302"):
        client(lab).search(server.archive(), "x", tmp_path / "mbox")
    assert server.requests == ["POST /"]


def test_public_archive_at_a_private_address_is_refused(lab: Workspace, tmp_path: Path) -> None:
    archive = Archive(name="lore", summary="", url="https://lore.example.org/all/{message_id}/")
    found = ArchiveClient(lab, limits=QUICK, resolve=lambda host, port: ["8.8.8.8", "10.0.0.7"])
    with pytest.raises(ArchiveUnavailable, match=r"lore\.example\.org is the private address 10\.0\.0\.7"):
        found.thread(archive, "a@b", tmp_path / "mbox")


def test_name_without_address_is_reported(lab: Workspace, tmp_path: Path) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    archive = Archive(name="lore", summary="", url="https://lore.example.org/all/{message_id}/")
    with pytest.raises(ArchiveUnavailable, match="no address for lore"):
        ArchiveClient(lab, limits=QUICK, resolve=resolve).thread(archive, "a@b", tmp_path / "mbox")


def test_canceled_job_ends_a_download(server: HostileServer, lab: Workspace, tmp_path: Path) -> None:
    class Canceled(Exception):
        pass

    def on_tick() -> None:
        raise Canceled

    server.answer = hostile.silent
    with pytest.raises(Canceled):
        ArchiveClient(lab, on_tick=on_tick).thread(server.archive(), "a@b", tmp_path / "mbox")
