"""A real SMTP server that answers as the test tells it, and keeps the mails that it has accepted."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "wqlab", "a barge on the canal"


@dataclass
class MailServer:
    """A running server. Each list gives the answers in turn; an empty one means that all is accepted."""

    port: int = 0
    rcpt: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    """`hang` accepts the mail and answers nothing."""
    refused: dict[str, str] = field(default_factory=dict)
    """Recipient -> answer, always."""
    accepted: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    async def handle_RCPT(self, _: SMTP, __: Session, envelope: Envelope, address: str, ___: list[str]) -> str:
        answer = self.refused.get(address) or (self.rcpt.pop(0) if self.rcpt else "250 OK")
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, _: Session, envelope: Envelope) -> str:
        answer = self.data.pop(0) if self.data else "250 OK"
        if answer in {"hang", "250 OK"}:
            assert isinstance(envelope.content, bytes)
            parsed = BytesParser(policy=default).parsebytes(envelope.content)
            assert isinstance(parsed, EmailMessage)
            self.accepted.append(parsed)
            self.raw.append(envelope.content)
            self.recipients.append(list(envelope.rcpt_tos))
        if answer == "hang":
            await server.loop.run_in_executor(None, self.released.wait, 120)
            return "250 OK"
        return answer


@contextmanager
def mail_server(
    *, tls: tuple[Path, Path] | None = None, implicit: bool = False, auth: bool = False
) -> Iterator[MailServer]:
    """Run a server on loopback. `tls`: certificate and key, for STARTTLS or with `implicit` from the beginning."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        found = MailServer(free.getsockname()[1])
    more: dict[str, Any] = {}
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        more = {"ssl_context": context} if implicit else {"tls_context": context, "require_starttls": True}
    if auth:
        more |= {"authenticator": _check, "auth_required": True, "auth_require_tls": not implicit}
    controller = Controller(found, hostname="127.0.0.1", port=found.port, **more)
    controller.start()
    try:
        yield found
    finally:
        found.released.set()
        controller.stop()


def _check(_: SMTP, __: Session, ___: Envelope, ____: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=right)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for 127.0.0.1 and return it with its key."""
    key, made = folder / "smtp.key", folder / "smtp.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made, "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key
