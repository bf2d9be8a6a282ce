"""Real git servers on loopback: `git daemon`, and https with certificates of a test CA."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

BACKEND = "/usr/lib/git-core/git-http-backend"


@dataclass(frozen=True)
class Authority:
    """A private certificate authority. `file` is its certificate."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "ca.pem"

    def certificate(self, *names: str) -> Path:
        """Make a file with a key and a certificate for these `DNS:...` and `IP:...` names."""
        both, request, extra = (self.folder / f"{len(names)}-{names[0][4:]}.{kind}" for kind in ("pem", "csr", "ext"))
        extra.write_text(f"subjectAltName={','.join(names)}\n")
        _openssl("req", "-new", *_KEY, "-keyout", both, "-out", request, "-subj", "/CN=git server")
        issued = _openssl(
            *("x509", "-req", "-in", request, "-days", "2", "-CA", self.file, "-CAkey", self.folder / "ca.key"),
            *("-CAcreateserial", "-extfile", extra),
        )
        with both.open("ab") as file:
            file.write(issued)
        return both


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_authority(folder: Path) -> Authority:
    folder.mkdir()
    ca = Authority(folder)
    _openssl(
        *("req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=the lab's own CA"),
        *("-keyout", folder / "ca.key", "-out", ca.file),
    )
    return ca


def _openssl(*arguments: object) -> bytes:
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True).stdout


Answer = Callable[["Handler"], None]


@dataclass
class HttpsServer:
    """An https server for the repositories below `root` with git's own CGI; `answers` by path take precedence."""

    root: Path
    certificate: Path
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    """Method and path of every request, in order."""
    port: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    """Set at the end of the test; answers that never end wait for it."""

    def url(self, path: str = "/linux/.git", host: str = "localhost") -> str:
        return f"https://{host}:{self.port}{path}"

    @contextmanager
    def running(self) -> Iterator[HttpsServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request: object, client_address: object) -> None:
                """Make the TLS handshake in the thread of the request, so that a stalled client blocks no other."""
                with context.wrap_socket(request, server_side=True) as secured:  # type: ignore[arg-type]
                    super().finish_request(secured, client_address)

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore clients that disconnect, as some tests do."""

        with Server(("127.0.0.1", 0), type("Bound", (Handler,), {"of": self})) as server:
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield self
            finally:
                self.closing.set()
                server.shutdown()
                thread.join()


class Handler(BaseHTTPRequestHandler):
    of: HttpsServer

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.of.requests.append(f"{self.command} {path}")
        self.of.answers.get(path, Handler.backend)(self)

    do_POST = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""

    def backend(self) -> None:
        parts = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.of.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": self.client_address[0],
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run([BACKEND], input=body, env=environment, stdout=subprocess.PIPE, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    def answer(self, status: int, headers: dict[str, str] | None = None, content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def git_daemon(root: Path) -> Iterator[int]:
    """Run `git daemon` for the repositories below `root` and return its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [
            *("git", "daemon", "--verbose", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"),
            *("--export-all", f"--base-path={root}", root),
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr
        output = [process.stderr.readline()]
        while "Ready to rumble" not in output[-1]:
            assert output[-1], output
            output.append(process.stderr.readline())
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
