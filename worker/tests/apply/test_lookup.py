"""Branches listed by real git servers, well-behaved and hostile ones."""

from __future__ import annotations

import subprocess

import pytest

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import Failure
from wqlab_contracts.messages.lookups import BRANCH_LIMIT, LookupJob, LookupResult
from wqlab_worker.apply import lookup
from wqlab_worker.apply.lookup import look_up
from wqlab_worker.claims import jobs
from wqlab_worker.workspace import Workspace

from .gitservers import Handler, HttpsServer


def listing(lab: Workspace, *hosts: str) -> Workspace:
    environment = {
        "WQLAB_CACHE": str(lab.cache),
        "SSL_CERT_FILE": str(lab.ca_file),
        "WQLAB_PRIVATE_GIT_HOSTS": ",".join(hosts),
    }
    return Workspace.from_environment(environment)


def found(workspace: Workspace, url: str) -> LookupResult:
    result = look_up(LookupJob(url=url), workspace)
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def failed(workspace: Workspace, url: str) -> Failure:
    result = look_up(LookupJob(url=url), workspace)
    assert result.outcome is Outcome.FAILED
    assert result.branches == []
    assert result.failure is not None
    return result.failure


def test_branches_are_listed_over_https_and_git(lab: Workspace, repository, server: HttpsServer, daemon: int) -> None:
    repository.git("branch", "wq/faster")
    repository.git("tag", "v6.12")
    head = repository.git("rev-parse", "master")
    for url in (server.url(), f"git://127.0.0.1:{daemon}/linux"):
        hosts = (f"localhost:{server.port}", f"127.0.0.1:{daemon}")
        result = found(listing(lab, *hosts), url)
        assert [(branch.name, branch.commit) for branch in result.branches] == [("master", head), ("wq/faster", head)]
        assert (result.head, result.truncated) == ("master", False)


def test_only_the_refs_that_are_asked_for_are_listed(lab: Workspace, repository) -> None:
    repository.git("branch", "for-next")
    repository.git("branch", "other/for-next")
    head = repository.git("rev-parse", "master")
    repository.git("tag", "-a", "-m", "release", "v6.12.1")
    repository.git("tag", "v6.12.2")
    repository.git("tag", "-a", "-m", "release", "v6.13")
    repository.git("tag", "v6.13.1")
    environment = {"WQLAB_CACHE": str(lab.cache), "WQLAB_LOCAL_GIT_PATHS": str(repository.path)}
    refs = ["refs/heads/for-next", "refs/tags/v6.12.*", "refs/tags/v6.13"]
    result = look_up(LookupJob(url=str(repository.path), refs=refs), Workspace.from_environment(environment))
    assert [(each.name, each.commit) for each in result.branches] == [("for-next", head)]
    assert [(each.name, each.commit) for each in result.tags] == [
        ("v6.12.1", head),
        ("v6.12.2", head),
        ("v6.13", head),
    ], "of an annotated tag its commit"


def test_repository_of_the_operator_may_be_in_the_private_network(lab: Workspace, repository, daemon: int) -> None:
    url = f"git://127.0.0.1:{daemon}/linux"
    job = LookupJob(url=url, refs=["refs/heads/master"], private_network=True)
    assert [each.name for each in look_up(job, listing(lab)).branches] == ["master"]
    assert "private address" in failed(listing(lab), url).summary


def test_unlisted_host_is_not_asked(lab: Workspace, server: HttpsServer) -> None:
    failure = failed(lab, server.url())
    assert failure.kind is ErrorKind.USER
    assert "private address" in failure.summary
    assert server.requests == [], "no request was sent"
    assert "only https:// and git://" in failed(lab, "ssh://git.example.org/linux").summary
    assert "this lab may not fetch from the local path" in failed(lab, "/etc").summary


def test_listed_local_path_is_allowed(lab: Workspace, repository) -> None:
    environment = {"WQLAB_CACHE": str(lab.cache), "WQLAB_LOCAL_GIT_PATHS": str(repository.path)}
    assert found(Workspace.from_environment(environment), str(repository.path)).head == "master"


def test_url_without_repository_fails(lab: Workspace, server: HttpsServer) -> None:
    listed = listing(lab, f"localhost:{server.port}")
    assert failed(listed, server.url("/nowhere.git")).kind is ErrorKind.USER


def test_endless_answer_times_out(lab: Workspace, server: HttpsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "TIME_LIMIT_S", 1)
    requests = 0

    def stall(handler: Handler) -> None:
        nonlocal requests
        requests += 1
        if requests == 1:  # the check before git sees the URL
            Handler.backend(handler)
        else:
            server.closing.wait()

    server.answers["/linux/.git/info/refs"] = stall
    failure = failed(listing(lab, f"localhost:{server.port}"), server.url())
    assert "did not list its branches within 1 s" in failure.summary


def test_number_of_branches_is_limited(lab: Workspace, repository) -> None:
    head = repository.git("rev-parse", "master")
    lines = "".join(f"create refs/heads/b/{number:05d} {head}\n" for number in range(BRANCH_LIMIT + 50))
    subprocess.run(["git", "update-ref", "--stdin"], cwd=repository.path, input=lines, text=True, check=True)
    environment = {"WQLAB_CACHE": str(lab.cache), "WQLAB_LOCAL_GIT_PATHS": str(repository.path)}
    result = found(Workspace.from_environment(environment), str(repository.path))
    assert (len(result.branches), result.truncated) == (BRANCH_LIMIT, True)
    assert result.branches[0].name == result.head == "master", "the default branch is kept"


def test_answer_is_truncated_at_a_whole_line(lab: Workspace, repository, monkeypatch: pytest.MonkeyPatch) -> None:
    head = repository.git("rev-parse", "master")
    lines = "".join(f"create refs/heads/b/{number:05d} {head}\n" for number in range(300))
    subprocess.run(["git", "update-ref", "--stdin"], cwd=repository.path, input=lines, text=True, check=True)
    monkeypatch.setattr(lookup, "OUTPUT_LIMIT", 8192)
    environment = {"WQLAB_CACHE": str(lab.cache), "WQLAB_LOCAL_GIT_PATHS": str(repository.path)}
    result = found(Workspace.from_environment(environment), str(repository.path))
    assert result.truncated
    assert 50 < len(result.branches) < 300
    assert all(len(branch.name) == len("b/00000") for branch in result.branches if branch.name != "master")


def test_lookup_job_is_claimed_and_finished(monkeypatch: pytest.MonkeyPatch, tmp_path, repository) -> None:
    """Use a server that follows the claim protocol."""
    import httpx

    from wqlab_worker.claims.server import Server
    from wqlab_worker.settings import Settings

    posted: list[tuple[str, bytes]] = []
    job = {"kind": "list_branches", "url": str(repository.path)}

    def answer(request: httpx.Request) -> httpx.Response:
        posted.append((request.url.path, request.content))
        if request.url.path.endswith("/claim"):
            return httpx.Response(200, json={"job": job, "fence": 7, "expires_in_s": 60})
        return httpx.Response(204)

    server = Server("http://lab.test", "t", worker="w", lab="l", transport=httpx.MockTransport(answer))
    monkeypatch.setattr(jobs, "connect_server", lambda _: server)
    monkeypatch.setenv("WQLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WQLAB_LOCAL_GIT_PATHS", str(repository.path))
    (tmp_path / "cache").mkdir()
    settings = Settings(server_url="http://lab.test", worker_token="t", cache=tmp_path / "cache", state=tmp_path)
    jobs.process(3, settings)
    assert [path for path, _ in posted] == ["/api/worker/v1/jobs/3/claim", "/api/worker/v1/jobs/3/finish"]
    assert b'"fence":7' in posted[1][1]
    assert b'"name":"master"' in posted[1][1]
