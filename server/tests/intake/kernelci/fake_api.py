"""A server that answers as kernelci-api does to a lab that pulls jobs, and stores job definitions.

Read from kernelci-api (`get_events`, `get_node`, `put_node`, `_user_can_edit_node`) and kernelci-core
(`Node.validate_node_state_transition`, the template base/pull_labs.jinja2): a PUT replaces the whole node, missing
fields by their defaults; every PUT is an event; events are of the time of the change, with the node as it is now.
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-of-the-lab"
RUNTIME = "pull-labs-wqlab"
COMMIT = "c0ffee" + "1" * 34
TRANSITIONS = {
    "running": ["available", "closing", "done"],
    "available": ["closing", "done"],
    "closing": ["done"],
    "done": [],
}
DEFAULTS: dict[str, Any] = {
    "group": None, "parent": None, "state": "running", "result": None, "artifacts": {}, "data": {}, "debug": {},
    "jobfilter": None, "platform_filter": [], "created": "now", "updated": "now", "timeout": "in 6 hours",
    "holdoff": None, "treeid": None, "processed_by_kcidb_bridge": False, "retry_counter": 0,
}  # fmt: skip
KEPT = ("id", "owner", "submitter", "user_groups")
"""Fields that a PUT does not change."""

Answer = tuple[int, Any]


class KernelCiApi(ThreadingHTTPServer):
    """The API at `url`. `after_put` is called with a node after each PUT; `answer` replaces the next answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.nodes: dict[str, dict[str, Any]] = {}
        self.history: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and the Authorization header."""
        self.groups = {f"runtime:{RUNTIME}:node-editor"}
        self.after_put: Callable[[dict[str, Any]], None] = lambda _: None
        self.drop_answers_to: str | None = None
        """Method whose next answer is lost after the request was done."""
        self.down = False
        self.now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/latest"

    def schedule(self, number: int = 1, *, definition: Any = None, event: bool = True, **data: Any) -> str:
        """Add a job as the scheduler does, available with a job definition, and return the node's id."""
        node_id = f"{number:024x}"
        name = f"pull_labs_jobs/20260314/{number:032x}.json"
        content = job_definition(number) if definition is None else definition
        self.files[name] = content if isinstance(content, bytes) else json.dumps(content).encode()
        revision = {
            "tree": "mainline", "url": "https://git.example.org/linux.git", "branch": "master", "commit": COMMIT,
            "describe": "v6.18-rc1", "patchset": None,
        }  # fmt: skip
        self.nodes[node_id] = DEFAULTS | {
            "id": node_id,
            "kind": "job",
            "name": "wqlab-locks",
            "path": ["checkout", "kbuild-gcc-14-x86", "wqlab-locks"],
            "group": "wqlab-locks",
            "parent": "f" * 24,
            "owner": "production",
            "submitter": "service:pipeline",
            "user_groups": [],
            "state": "available",
            "treeid": "d2b3",
            "created": "2026-03-14T15:00:00",
            "timeout": "2026-03-14T21:00:00",
            "retry_counter": 1,
            "artifacts": {"job_definition": f"{self.url.removesuffix('/latest')}/{name}"},
            "data": {"platform": "board", "runtime": RUNTIME, "kernel_revision": revision, "arch": "x86_64"} | data,
        }
        if event:
            self.publish(self.nodes[node_id])
        return node_id

    def publish(self, node: dict[str, Any], step: timedelta = timedelta(milliseconds=1)) -> None:
        """Store an event of the node as it is now, `step` after the one before."""
        self.now += step
        data = {
            key: copy.deepcopy(node[key]) for key in ("id", "kind", "name", "path", "group", "state", "result", "data")
        }
        self.history.append({"timestamp": self.now, "channel": "node", "owner": node["owner"], "data": data})

    def events(self, query: dict[str, str]) -> Answer:
        recursive, limit = query.get("recursive"), query.get("limit")
        if recursive and (not limit or int(limit) > 1000):
            return 400, {"detail": "Recursive limit is too large, max is 1000"}
        after = datetime.fromisoformat(query["from"]) if "from" in query else datetime.min  # noqa: DTZ901
        found = [
            event
            for event in self.history
            if event["timestamp"] > after
            and all(event["data"][name] == query[name] for name in ("kind", "state") if name in query)
        ]
        page = copy.deepcopy(found[: int(limit)] if limit else found)
        for number, event in enumerate(page):
            event["id"] = f"{number:024x}"
            event["timestamp"] = event["timestamp"].isoformat()
            if recursive and (node := self.nodes.get(event["data"]["id"])):
                event["node"] = node
        return 200, page

    def put(self, node_id: str, sent: dict[str, Any]) -> Answer:
        old = self.nodes.get(node_id)
        if old is None:
            return 404, {"detail": f"Node not found with id: {node_id}"}
        if not self.groups & {"node:edit:any", f"runtime:{old['data'].get('runtime')}:node-editor"}:
            return 401, {"detail": "Unauthorized to complete the operation"}
        if "name" not in sent or "path" not in sent:
            return 422, {"detail": "Field required"}
        new = DEFAULTS | {key: value for key, value in sent.items() if key in {*DEFAULTS, "kind", "name", "path"}}
        new |= {key: old[key] for key in KEPT}
        if new["state"] != old["state"] and new["state"] not in TRANSITIONS[old["state"]]:
            return 400, {"detail": f"Transition not allowed with state: {new['state']}"}
        self.nodes[node_id] = new
        self.publish(new)
        self.after_put(new)
        return 200, new


class _Handler(BaseHTTPRequestHandler):
    server: KernelCiApi

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._answer(parts.path, lambda: self._read(parts.path, query))

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self.path, lambda: self.server.put(self.path.rpartition("/")[2], body))

    def _read(self, path: str, query: dict[str, str]) -> Answer:
        if path == "/latest/events":
            return self.server.events(query)
        if match := re.fullmatch(r"/latest/node/(\w+)", path):
            node = self.server.nodes.get(match[1])
            return (200, node) if node else (404, {"detail": f"Node not found with id: {match[1]}"})
        content = self.server.files.get(path[1:])
        return (200, content) if content is not None else (404, b"")

    def _answer(self, path: str, answer: Callable[[], Answer]) -> None:
        with self.server.lock:
            authorization = self.headers.get("Authorization")
            self.server.requests.append((self.command, path, authorization))
            if self.server.down:
                status, content = 503, {"detail": "down"}
            elif path.startswith("/latest/") and authorization != f"Bearer {TOKEN}":
                status, content = 401, {"detail": "Unauthorized"}
            else:
                status, content = answer()
            if self.server.drop_answers_to == self.command:
                self.server.drop_answers_to = None
                self.close_connection = True
                return
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def job_definition(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a job definition as the template of KernelCI renders it."""
    definition: dict[str, Any] = {
        "artifacts": {
            "kernel": "https://files.example.org/kbuild/bzImage",
            "modules": "https://files.example.org/kbuild/modules.tar.xz",
        },
        "tests": [
            {
                "id": "wqlab-locks", "type": "wqlab", "depends": [], "timeout_s": 3600, "pre-commands": [],
                "post-commands": [],
            }
        ],
        "environment": {"platform": "board", "arch": "x86_64", "console": {"method": "serial", "baud": 115200}},
        "callback": {"url": f"https://callback.example.org/node/{number:024x}", "token_name": "kernelci-pull-labs"},
    }  # fmt: skip
    return definition | changes
