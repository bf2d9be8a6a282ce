"""A forge's API on loopback that behaves as GitHub, GitLab or Gitea document it, for one repository."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from wqlab_contracts.specs import Forge, ForgeKind

REPOSITORIES = {"github": "wq/linux", "gitea": "wq/linux", "gitlab": "kernel/wq/linux"}
PREFIXES = {
    "github": "/api/v3/repos/wq/linux",
    "gitea": "/api/v1/repos/wq/linux",
    "gitlab": "/api/v4/projects/kernel%2Fwq%2Flinux",
}
TOKEN = "token-of-the-bot"
BOT = "wqlab-bot"
_FINAL = {"success", "failed", "canceled"}


@dataclass(frozen=True)
class Fault:
    """An answer instead of the documented one. `after`: the request is carried out first."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    hang_up: bool = False
    only_headers: bool = False
    """The documented answer, with more headers."""


@dataclass
class StubForge:
    """State of the forge. `requests` has method and path of each request."""

    kind: str
    port: int
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Number -> what the API says of the pull request."""
    branches: dict[str, str] = field(default_factory=dict)
    writers: set[str] = field(default_factory=set)
    """Accounts (GitLab: their numbers as text) that may push."""
    statuses: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault | None] = field(default_factory=list)
    """Answers to the next requests; None: the documented one."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    unchanged: int = 0
    """Number of answers that said that a page has not changed."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def prefix(self) -> str:
        return PREFIXES[self.kind]

    def last_status(self) -> tuple[str, str, str]:
        """Return commit, state and description of the last status."""
        last = self.statuses[-1]
        return last["commit"], last["state"], last["description"]

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        path = path.removeprefix(self.prefix)
        if match := re.fullmatch(r"/statuses/([0-9a-f]{40})", path):
            return self._status(match[1], body)
        if re.fullmatch(r"/(?:pulls|merge_requests)", path):
            opened = "opened" if self.kind == "gitlab" else "open"
            assert query["state"] == [opened]
            return 200, [pull for pull in self.pulls.values() if pull["state"] == opened]
        if re.fullmatch(r"/(?:repository/)?branches", path):
            return 200, [self._branch(name)[1] for name in sorted(self.branches)]
        if match := re.fullmatch(r"/(?:pulls|merge_requests)/(\d+)", path):
            pull = self.pulls.get(int(match[1]))
            return (200, pull) if pull is not None else (404, {"message": "Not Found"})
        if match := re.fullmatch(r"/(?:repository/)?branches/(.+)", path):
            return self._branch(unquote(match[1]))
        if match := re.fullmatch(r"/collaborators/([^/]+)/permission", path):
            may = unquote(match[1]) in self.writers
            return 200, {"permission": "write" if may else "read", "role_name": "write" if may else "read"}
        if match := re.fullmatch(r"/members/all/(\d+)", path):
            may = match[1] in self.writers
            return (200, {"id": int(match[1]), "access_level": 30}) if may else (404, {"message": "404 Not found"})
        if re.fullmatch(r"/(?:issues|merge_requests)/\d+/(?:comments|notes)", path):
            return self._list(query) if method == "GET" else self._create(body)
        if match := re.fullmatch(r"/(?:issues/comments|merge_requests/\d+/notes)/(\d+)", path):
            return self._edit(int(match[1]), method, body)
        return 404, {"message": "Not Found"}

    def _status(self, commit: str, body: Any) -> tuple[int, Any]:
        gitlab = self.kind == "gitlab"
        states = {"pending", "running", "success", "failed", "canceled"} if gitlab else {
            "pending", "success", "failure", "error",
        }  # fmt: skip
        name = body["name" if gitlab else "context"]
        if body["state"] not in states or (not gitlab and len(body["description"]) > 140):
            return 422, {"message": "Validation Failed"}
        before = [each for each in self.statuses if each["commit"] == commit and each["name"] == name]
        if gitlab and before and before[-1]["state"] == body["state"]:
            state = body["state"]
            return 400, {"message": f"Cannot transition status via :{state} from :{state} (Reason(s): Status cannot)"}
        self.statuses.append({"commit": commit, "name": name, **body})
        return 201, {"id": len(self.statuses), "state": body["state"]}

    def _branch(self, branch: str) -> tuple[int, Any]:
        commit = self.branches.get(branch) or self._head_of(branch)
        if commit is None:
            return 404, {"message": "Branch not found"}
        return 200, {"name": branch, "commit": {"sha" if self.kind == "github" else "id": commit}}

    def _head_of(self, branch: str) -> str | None:
        """Return the head of a pull request whose head is a branch here: one by AGit (`agit` in tests) has none."""
        heads = [pull["head"] for pull in self.pulls.values() if "head" in pull and not pull.get("agit")]
        return next((head["sha"] for head in heads if head["ref"] == branch), None)

    def _list(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        if self.kind == "gitea":
            return 200, self.comments
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return 200, self.comments[(page - 1) * size : page * size]

    def add_comment(self, author: str, body: str) -> dict[str, Any]:
        account = {"author": {"username": author}} if self.kind == "gitlab" else {"user": {"login": author}}
        comment = {"id": 100 + len(self.comments), "body": body, **account}
        self.comments.append(comment)
        return comment

    def _create(self, body: Any) -> tuple[int, Any]:
        if len(body["body"]) > 65_536:
            return 422, {"message": "Validation Failed"}
        return 201, self.add_comment(BOT, body["body"])

    def _edit(self, number: int, method: str, body: Any) -> tuple[int, Any]:
        if method != ("PUT" if self.kind == "gitlab" else "PATCH"):
            return 405, {"message": "Method Not Allowed"}
        for comment in self.comments:
            if comment["id"] == number:
                comment["body"] = body["body"]
                return 200, comment
        return 404, {"message": "Not Found"}

    def config(self, folder: Any, **more: Any) -> Forge:
        """Return the forge as an operator configures it; the secrets are in files of `folder`."""
        (folder / "secret").write_text("secret of the webhook".replace(" ", "-") + "\n")
        (folder / "token").write_text(f"{TOKEN}\n")
        return Forge(
            name="hub",
            kind=ForgeKind(self.kind),
            url=self.url,
            repository=REPOSITORIES[self.kind],
            git="https://git.example.org/wq/linux.git",
            secret_file=str(folder / "secret"),
            token_file=str(folder / "token"),
            user=BOT,
            tree="lab-tree",
            owner="dev",
            private=True,
            **more,
        )


@contextmanager
def stub_forge(kind: str) -> Iterator[StubForge]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            forge.requests.append((self.command, parts.path))
            forge.tokens.add(self.headers.get("Authorization", ""))
            fault = forge.faults.pop(0) if forge.faults else None
            status = 401
            answer: Any = {"message": "Bad credentials"}
            allowed = self.headers.get("Authorization", "").endswith(f" {TOKEN}")
            if allowed and (fault is None or fault.after or fault.only_headers):
                body = json.loads(content) if content else None
                status, answer = forge.answer(self.command, parts.path, parse_qs(parts.query), body)
            headers: dict[str, str] = {}
            if status == 200 and re.search(r"/(?:pulls|merge_requests|branches)$", parts.path):
                status, answer, headers = self._paged(parts.path, parse_qs(parts.query), answer)
            if fault is not None and fault.only_headers:
                headers |= fault.headers
            elif fault is not None:
                status, answer, headers = fault.status, fault.body, fault.headers
                if fault.hang_up:
                    self.close_connection = True
                    return
            text = b"" if status == 304 else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            if status != 304:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _paged(
            self, path: str, query: dict[str, list[str]], found: list[Any]
        ) -> tuple[int, list[Any], dict[str, str]]:
            """Return one page with the headers that the forge sends: a link to the next page, and a validator."""
            size = int((query.get("per_page") or query["limit"])[0])
            page = int(query["page"][0])
            shown = found[(page - 1) * size : page * size]
            headers = {}
            if page * size < len(found):
                headers["Link"] = f'<{forge.url}{path}?page={page + 1}>; rel="next", <{forge.url}{path}>; rel="last"'
            if kind == "gitea":  # which sends no validators
                return 200, shown, headers
            etag = f'W/"{hashlib.sha256(json.dumps(shown).encode()).hexdigest()}"'
            is_known = self.headers.get("If-None-Match") == etag
            forge.unchanged += is_known
            return (304, [], headers | {"ETag": etag}) if is_known else (200, shown, headers | {"ETag": etag})

        do_GET = do_POST = do_PATCH = do_PUT = _serve

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    forge = StubForge(kind, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
