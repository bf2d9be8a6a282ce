"""Fetches of branches and trees over git:// and https:// from real servers, well-behaved and hostile ones."""

from __future__ import annotations

import os
import random
import select
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import ApplyJob, Failure, GitSeries, Series
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.apply.fetch import Limits, fetch, resolve_remote
from wqlab_worker.apply.git import Git, create_bare
from wqlab_worker.apply.mirror import update_mirror
from wqlab_worker.failures import InfrastructureError, JobError, UserError
from wqlab_worker.workspace import Workspace

from .gitservers import Authority, Handler, HttpsServer, make_authority

MASTER = "+refs/heads/master:refs/heads/fetched"
USUAL = Limits()
QUICK = Limits(check_s=1.0, wall_s=1.0)


def listing(lab: Workspace, *hosts: str) -> Workspace:
    environment = {
        "WQLAB_CACHE": str(lab.cache),
        "SSL_CERT_FILE": str(lab.ca_file),
        "WQLAB_PRIVATE_GIT_HOSTS": ", ".join(hosts),
    }
    return Workspace.from_environment(environment)


def fetched(lab: Workspace, url: str, *, private_network: bool = False, limits: Limits = USUAL) -> Git:
    git = create_bare(lab, lab.cache / "git")
    fetch(git, url, [MASTER], private_network=private_network, limits=limits)
    return git


def refused(lab: Workspace, url: str, kind: type[JobError] = UserError, limits: Limits = USUAL) -> Failure:
    with pytest.raises(kind) as caught:
        fetched(lab, url, limits=limits)
    return caught.value.failure


@pytest.fixture
def remaining_processes(lab: Workspace, monkeypatch: pytest.MonkeyPatch):
    """Find remaining processes of a fetch, by the state folder in their environment."""
    mark = str(lab.cache / "state")
    monkeypatch.setenv("WQLAB_STATE", mark)

    def find(ends_within_s: float = 0.0) -> list[str]:
        """Return the commands of processes that do not end within `ends_within_s` seconds."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if f"WQLAB_STATE={mark}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                ended = os.pidfd_open(int(entry.name))
            except OSError:
                continue
            if not select.select([ended], [], [], ends_within_s)[0]:
                found.append(command)
            os.close(ended)
        return found

    return find


# --- well-behaved servers -----------------------------------------------------------------------------------------


def test_tree_is_mirrored_over_https_and_git(lab: Workspace, repository, server: HttpsServer, daemon: int) -> None:
    for name, url in (("https", server.url()), ("daemon", f"git://127.0.0.1:{daemon}/linux")):
        tree = Tree(name=name, summary="", url=url)
        assert update_mirror(tree, lab).head == repository.git("rev-parse", "master")
        repository.edit("kernel/fork.c", "for (;;)", f"for (;;) /* {name} */")
        moved = repository.commit("fork: go on")
        assert update_mirror(tree, lab).head == moved


@pytest.mark.parametrize("transport", ["https", "git"])
def test_branch_is_fetched_from_listed_private_host(
    lab: Workspace, repository, server: HttpsServer, daemon: int, transport: str
) -> None:
    """Tree and branch are on the same server; only the operator's list allows the branch."""
    url = {"https": server.url(), "git": f"git://127.0.0.1:{daemon}/linux"}[transport]
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active")
    repository.git("switch", "--quiet", "master")
    job = ApplyJob(
        submission_id=1,
        tree=Tree(name="toy", summary="", url=url),
        series=Series(git=GitSeries(url=url, ref="topic")),
    )
    result = apply(job, lab)
    assert result.failure and result.failure.kind is ErrorKind.USER
    result = apply(job, listing(lab, f"localhost:{server.port}", f"127.0.0.1:{daemon}"))
    assert result.outcome is Outcome.PASSED, result.failure
    assert result.candidate and result.candidate.tree_oid == repository.git("rev-parse", "topic^{tree}")
    assert result.baseline and result.baseline.commit == repository.git("rev-parse", "master")


def test_git_connects_to_checked_address_and_sends_host_name(lab: Workspace, repository, server: HttpsServer) -> None:
    """No resolver knows the name, so this works only with the pinned address and the certificate of that name."""
    lab = listing(lab, f"git.lab.example:{server.port}")
    remote = resolve_remote(
        server.url(host="git.lab.example"), lab, private_network=False, resolve=lambda host, port: ["127.0.0.1"]
    )
    output = create_bare(lab, lab.cache / "git").run(*remote.settings, "ls-remote", remote.url, "refs/heads/master")
    assert output.split()[0] == repository.git("rev-parse", "master")


# --- forbidden addresses ------------------------------------------------------------------------------------------


def test_private_address_is_rejected_without_a_connection(lab: Workspace, server: HttpsServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as quiet:
        quiet.setblocking(False)
        port = quiet.getsockname()[1]
        for url in (f"git://localhost:{port}/linux", f"https://127.0.0.1:{port}/linux", server.url()):
            failure = refused(lab, url)
            assert "127.0.0.1" in failure.summary and "private address" in failure.summary
            assert "WQLAB_PRIVATE_GIT_HOSTS" in failure.advice
        with pytest.raises(BlockingIOError):
            quiet.accept()
    assert server.requests == []


def test_listed_host_does_not_allow_other_ports(lab: Workspace, server: HttpsServer) -> None:
    for hosts in ("localhost", "localhost:1", "elsewhere.example"):
        assert "private address" in refused(listing(lab, hosts), server.url()).summary
    assert server.requests == []


def test_redirect_to_unlisted_host_is_rejected(
    lab: Workspace, repository, server: HttpsServer, certificate: Path
) -> None:
    def to(target: str):
        def redirect(handler: Handler) -> None:
            query = handler.path.partition("?")[2]
            handler.answer(302, {"Location": f"{target}/info/refs?{query}"})

        return redirect

    with HttpsServer(repository.path.parent, certificate).running() as inside:
        server.answers = {"/away/info/refs": to(inside.url()), "/moved/info/refs": to("/linux/.git")}
        allowed = listing(lab, f"localhost:{server.port}")
        failure = refused(allowed, server.url("/away"))
        assert f"localhost:{inside.port}" in failure.summary and "private address" in failure.summary
        assert inside.requests == []
        assert fetched(allowed, server.url("/moved")).commit("refs/heads/fetched")
        both = listing(lab, f"localhost:{server.port}", f"localhost:{inside.port}")
        assert fetched(both, server.url("/away")).commit("refs/heads/fetched")


def test_redirect_after_the_check_is_not_followed(
    lab: Workspace, repository, server: HttpsServer, certificate: Path
) -> None:
    with HttpsServer(repository.path.parent, certificate).running() as inside:
        first: list[str] = []

        def redirect_after_check(handler: Handler) -> None:
            if not first:
                first.append("asked")
                handler.backend()
            else:
                handler.answer(302, {"Location": inside.url() + handler.path.removeprefix("/linux/.git")})

        server.answers["/linux/.git/info/refs"] = redirect_after_check
        assert "cannot fetch" in refused(listing(lab, f"localhost:{server.port}"), server.url()).summary
        assert inside.requests == []


def test_http_alternates_do_not_lead_to_another_server(
    lab: Workspace, repository, server: HttpsServer, certificate: Path
) -> None:
    """The old HTTP protocol has alternates: lists of other places with objects."""
    head = repository.git("rev-parse", "master")
    with HttpsServer(repository.path.parent, certificate).running() as inside:
        listed = f"{inside.url('/linux/.git')}/objects\n".encode()
        texts = {
            "/plain/info/refs": f"{head}\trefs/heads/master\n".encode(),
            "/plain/HEAD": b"ref: refs/heads/master\n",
            "/plain/objects/info/http-alternates": listed,
            "/plain/objects/info/alternates": listed,
        }

        def file(handler: Handler) -> None:
            handler.answer(200, content=texts[handler.path.partition("?")[0]])

        server.answers = dict.fromkeys(texts, file)
        assert "cannot fetch" in refused(listing(lab, f"localhost:{server.port}"), server.url("/plain")).summary
        assert "GET /plain/objects/info/http-alternates" in server.requests
        assert inside.requests == []


# --- servers with errors ------------------------------------------------------------------------------------------


def test_server_that_asks_for_password_is_a_user_error(lab: Workspace, server: HttpsServer) -> None:
    def ask(handler: Handler) -> None:
        handler.answer(401, {"WWW-Authenticate": 'Basic realm="git"'})

    def ask_later(handler: Handler) -> None:
        answer = ask if f"GET {handler.path.partition('?')[0]}" in server.requests[:-1] else Handler.backend
        answer(handler)

    allowed = listing(lab, f"localhost:{server.port}")
    server.answers["/private/info/refs"] = ask
    failure = refused(allowed, server.url("/private"))
    assert "asks for a user name and password" in failure.summary
    assert "mbox" in failure.advice
    # A server that asks for the password only after the check reaches git, which must not prompt.
    server.answers["/linux/.git/info/refs"] = ask_later
    assert "Authentication failed" in refused(allowed, server.url()).excerpt


def test_url_without_repository_is_a_user_error(lab: Workspace, server: HttpsServer, daemon: int) -> None:
    allowed = listing(lab, f"localhost:{server.port}", f"127.0.0.1:{daemon}")
    assert "no git repository" in refused(allowed, server.url("/nothing")).summary
    assert "cannot fetch" in refused(allowed, f"git://127.0.0.1:{daemon}/nothing").summary


def test_server_error_is_an_infrastructure_error(lab: Workspace, server: HttpsServer) -> None:
    server.answers["/linux/.git/info/refs"] = lambda handler: handler.answer(503)
    assert "503" in refused(listing(lab, f"localhost:{server.port}"), server.url(), InfrastructureError).summary


def test_error_for_unknown_ca_names_the_fix(lab: Workspace, server: HttpsServer, tmp_path: Path) -> None:
    stranger = replace(listing(lab, f"localhost:{server.port}"), ca_file=make_authority(tmp_path / "other").file)
    failure = refused(stranger, server.url())
    assert "certificate" in failure.summary and f"localhost:{server.port}" in failure.summary
    assert "SSL_CERT_FILE" in failure.advice and "update-ca-certificates" in failure.advice
    with pytest.raises(InfrastructureError) as caught:
        update_mirror(Tree(name="toy", summary="", url=server.url()), stranger)
    assert "SSL_CERT_FILE" in caught.value.failure.advice
    assert server.requests == []


def test_error_for_certificate_of_other_name_has_no_operator_advice(
    lab: Workspace, authority: Authority, repository
) -> None:
    with HttpsServer(repository.path.parent, authority.certificate("DNS:other.example")).running() as server:
        failure = refused(listing(lab, f"localhost:{server.port}"), server.url())
    assert "localhost" in failure.summary and "SSL_CERT_FILE" not in failure.advice


def test_unreadable_ca_file_is_named(lab: Workspace, tmp_path: Path) -> None:
    for path in (tmp_path / "absent.pem", tmp_path / "empty.pem"):
        if path.name == "empty.pem":
            path.write_text("")
        broken = replace(lab, ca_file=path)
        with pytest.raises(InfrastructureError) as caught:
            resolve_remote("https://93.184.215.14/x", broken, private_network=False)
        assert str(path) in caught.value.failure.summary and "SSL_CERT_FILE" in caught.value.failure.advice


# --- servers that never finish ------------------------------------------------------------------------------------


def test_silent_server_times_out(lab: Workspace, remaining_processes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        allowed = listing(lab, host)
        assert "did not answer" in refused(allowed, f"https://{host}/x", InfrastructureError, QUICK).summary
        assert "took longer" in refused(allowed, f"git://{host}/x", limits=QUICK).summary
    assert remaining_processes(ends_within_s=60) == []


def test_slow_response_times_out(lab: Workspace, server: HttpsServer) -> None:
    """Every read succeeds, but the response never ends."""

    def send_slowly(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not handler.of.closing.wait(0.05):
            handler.wfile.write(b"x")

    server.answers["/slow/info/refs"] = send_slowly
    allowed = listing(lab, f"localhost:{server.port}")
    assert "did not answer" in refused(allowed, server.url("/slow"), InfrastructureError, QUICK).summary


def test_git_and_helpers_are_killed_when_server_stalls(
    lab: Workspace, server: HttpsServer, remaining_processes
) -> None:
    server.answers["/linux/.git/git-upload-pack"] = lambda handler: handler.of.closing.wait() and None
    allowed = listing(lab, f"localhost:{server.port}")
    failure = refused(allowed, server.url(), limits=replace(QUICK, check_s=60.0, wall_s=2.0))
    assert "took longer than 2 s" in failure.summary
    assert remaining_processes(ends_within_s=60) == []


def test_canceled_job_ends_its_fetch(lab: Workspace, server: HttpsServer, remaining_processes) -> None:
    """The progress call raises if the job was canceled or its claim lost."""

    class Canceled(Exception):
        pass

    stalled: list[bool] = []

    def stall(handler: Handler) -> None:
        stalled.append(True)
        handler.of.closing.wait()

    def progress() -> None:
        if stalled:
            assert any("remote-https" in command for command in remaining_processes())
            raise Canceled

    server.answers["/linux/.git/git-upload-pack"] = stall
    git = create_bare(listing(lab, f"localhost:{server.port}"), lab.cache / "git")
    with pytest.raises(Canceled):
        fetch(git, server.url(), [MASTER], private_network=False, on_tick=progress)
    assert remaining_processes(ends_within_s=60) == []


def test_endless_reference_list_hits_memory_limit(lab: Workspace, server: HttpsServer, remaining_processes) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        handler.end_headers()
        handler.wfile.write(b"001e# service=git-upload-pack\n0000")
        line = b"%s refs/heads/x\n" % (b"1" * 40)
        block = b"%04x%s" % (len(line) + 4, line) * 20_000
        while not handler.of.closing.is_set():
            handler.wfile.write(block)

    server.answers["/endless/info/refs"] = endless
    limits = Limits(memory_bytes=128 << 20)
    failure = refused(listing(lab, f"localhost:{server.port}"), server.url("/endless"), limits=limits)
    assert "memory" in failure.excerpt
    assert remaining_processes(ends_within_s=60) == []


@pytest.mark.parametrize("transport", ["https", "git"])
def test_pack_size_is_limited(
    lab: Workspace, repository, server: HttpsServer, daemon: int, transport: str, remaining_processes
) -> None:
    (repository.path / "big").write_bytes(random.Random(1).randbytes(1 << 20))
    repository.commit("something large")
    url = {"https": server.url(), "git": f"git://127.0.0.1:{daemon}/linux"}[transport]
    allowed = listing(lab, f"localhost:{server.port}", f"127.0.0.1:{daemon}")
    assert "cannot fetch" in refused(allowed, url, limits=Limits(file_bytes=256 << 10)).summary
    assert remaining_processes(ends_within_s=60) == []
    assert fetched(allowed, url, limits=Limits(file_bytes=4 << 20)).commit("refs/heads/fetched")


def test_leftovers_of_killed_fetch_do_not_block_the_next(lab: Workspace, repository, server: HttpsServer) -> None:
    mirror = update_mirror(Tree(name="toy", summary="", url=server.url()), lab).git.directory
    half, lock = mirror / "objects/pack/tmp_pack_abc", mirror / "refs/heads/master.lock"
    half.write_text("half a pack")
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("")
    moved = repository.commit("toy: go on")
    assert update_mirror(Tree(name="toy", summary="", url=server.url()), lab).head == moved
    assert not half.exists() and not lock.exists()
