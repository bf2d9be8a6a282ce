"""A real public-inbox archive on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.specs import Archive

LIST = "wq@lists.example.org"


@dataclass(frozen=True)
class PublicInbox:
    """An archive of one list in `folder`, served on `port`."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/wq"

    def archive(self, **changes: object) -> Archive:
        fields: dict[str, object] = {
            "name": "loopback",
            "summary": "an archive on loopback",
            "url": f"{self.url}/{{message_id}}/",
            "search": f"{self.url}/?x=m&t=1&q={{query}}",
            "list": LIST,
            "private": True,
        }
        return Archive.model_validate(fields | changes)

    def run(self, *command: str, text: bytes = b"") -> None:
        subprocess.run(command, input=text, env=self.environment(), check=True, capture_output=True)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PI_CONFIG": str(self.folder / "config"),
            "ORIGINAL_RECIPIENT": LIST,
            "TZ": "UTC",
        }

    def receive(self, mail: str) -> None:
        """Deliver one mail as a mail server does."""
        _, _, text = mail.partition("\n") if mail.startswith("From ") else ("", "", mail)
        self.run("public-inbox-mda", "--no-precheck", text=text.encode())

    def remove(self, mail: str, epoch: int = 0) -> None:
        """Remove a mail: a commit in which it is named `d`."""
        repository = self.folder / "wq" / "git" / f"{epoch}.git"
        text = (mail.partition("\n")[2] if mail.startswith("From ") else mail).encode()
        head = "commit refs/heads/master\ncommitter A <a@example.org> 1767700000 +0000\ndata 2\nrm\n"
        stream = f"{head}from refs/heads/master^0\nD m\nM 100644 inline d\ndata {len(text)}\n".encode() + text + b"\n"
        self.run("git", f"--git-dir={repository}", "fast-import", "--quiet", text=stream)

    def import_mails(self, mails: Sequence[str], epoch: int = 0) -> None:
        """Add many mails at once: they become commits of the archive, which is then indexed."""
        repository = self.folder / "wq" / "git" / f"{epoch}.git"
        head = subprocess.run(
            ["git", f"--git-dir={repository}", "rev-parse", "--verify", "--quiet", "refs/heads/master"],
            check=False,
            capture_output=True,
            text=True,
        )
        stream, parent = [], head.stdout.strip()
        for number, mail in enumerate(mails, 1):
            text = (mail.partition("\n")[2] if mail.startswith("From ") else mail).encode()
            before = f"from {parent}\n" if parent else ""
            stream.append(
                f"commit refs/heads/master\nmark :{number}\ncommitter A <a@example.org> 1767600000 +0000\n"
                f"data 4\nmail\n{before}M 100644 inline m\ndata {len(text)}\n".encode()
                + text
                + b"\n"
            )
            parent = f":{number}"
        self.run("git", f"--git-dir={repository}", "fast-import", "--quiet", text=b"".join(stream))
        self.run("public-inbox-index", str(self.folder / "wq"))


@contextmanager
def public_inbox(folder: Path) -> Iterator[PublicInbox]:
    """Create an empty archive in `folder` and serve it."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        inbox = PublicInbox(folder, free.getsockname()[1])
    inbox.run("public-inbox-init", "-V2", "--skip-docdata", "wq", str(folder / "wq"), inbox.url, LIST)
    inbox.run("git", "config", "-f", str(folder / "config"), "publicinboxmda.spamcheck", "none")
    with (folder / "httpd.log").open("wb") as log:
        server = subprocess.Popen(
            ["public-inbox-httpd", "-W0", "-l", f"127.0.0.1:{inbox.port}"],
            env=inbox.environment(),
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_it_answers(inbox, server)
        yield inbox
    finally:
        server.terminate()
        server.wait()


def _wait_until_it_answers(inbox: PublicInbox, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", inbox.port)):
            return
        time.sleep(0.02)
    raise RuntimeError((inbox.folder / "httpd.log").read_text())
