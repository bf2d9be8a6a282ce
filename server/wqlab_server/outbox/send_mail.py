"""Give one mail to the SMTP server, and tell what it answered."""

from __future__ import annotations

import smtplib
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.enums import AttemptOutcome
from wqlab_contracts.mail import OutgoingMail, address_of, recipients, to_bytes

from ..settings import Settings
from .post_webhook import Result

LIMIT_S = 120.0
"""Time for a whole attempt."""
_STEP_S = 30.0
"""Time for one command and its answer."""
_ANSWER_SHOWN = 1000


@dataclass(frozen=True)
class Server:
    """The SMTP server and how to reach it."""

    host: str
    port: int
    tls: str
    user: str = ""
    password_file: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> Server:
        return cls(
            settings.smtp_host, settings.smtp_port, settings.smtp_tls, settings.smtp_user, settings.smtp_password_file
        )


def send(
    server: Server,
    mail: OutgoingMail,
    *,
    unsubscribe: str | None = None,
    last: bool = False,
    limit_s: float = LIMIT_S,
    step_s: float = _STEP_S,
) -> Result:
    """Send once. No answer makes this raise. `unsubscribe`: URL for the header `List-Unsubscribe`.

    A recipient that the server refuses for now (4xx, greylisting) delays the mail for all, so that nobody gets it
    twice; in the `last` attempt it goes to those that are accepted. A recipient that is refused for good (5xx) is left
    out.
    """
    try:
        return _Conversation(server, limit_s, step_s).send(mail, unsubscribe, last=last)
    except _Answered as answered:
        return answered.result
    except smtplib.SMTPResponseException as error:
        return _refusal(error.smtp_code, error.smtp_error, "the connection was refused", retry=True)
    except smtplib.SMTPNotSupportedError as error:
        return Result(AttemptOutcome.FAILED, problem=f"the server cannot do what the settings ask for: {error}")
    except (ssl.SSLError, smtplib.SMTPException, OSError, ValueError) as error:
        problem = f"the mail was not sent: {error or type(error).__name__}"
        return Result(AttemptOutcome.FAILED, problem=problem)


class _Answered(Exception):
    """The conversation is over."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.problem)
        self.result = result


class _Conversation:
    """One connection, until the mail is accepted or refused."""

    def __init__(self, server: Server, limit_s: float, step_s: float) -> None:
        self._server = server
        self._deadline = time.monotonic() + limit_s
        self._step_s = step_s

    def send(self, mail: OutgoingMail, unsubscribe: str | None, *, last: bool) -> Result:
        with self._connect() as smtp:
            self._limit(smtp)
            if self._server.user:
                assert self._server.password_file is not None  # noqa: S101 - the settings are validated
                self._sign_in(smtp, self._server.user, self._server.password_file.read_text().strip())
            wide = smtp.has_extn("8bitmime")
            content = to_bytes(mail, seven_bit=not wide, unsubscribe=unsubscribe)
            self._sender(smtp, mail, ["BODY=8BITMIME"] if wide and not content.isascii() else [])
            refused = self._recipients(smtp, recipients(mail), last=last)
            result = self._content(smtp, content)
            if refused and result.outcome is AttemptOutcome.ACCEPTED:
                problem = f"accepted, but not for {'; '.join(refused)}"
                return Result(result.outcome, result.status, result.answer, problem)
            return result

    def _connect(self) -> smtplib.SMTP:
        server, context = self._server, ssl.create_default_context()
        if server.tls == "tls":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=self._step_s, context=context)
        smtp = smtplib.SMTP(server.host, server.port, timeout=self._step_s)
        if server.tls == "starttls":
            smtp.starttls(context=context)
        smtp.ehlo()
        return smtp

    def _sign_in(self, smtp: smtplib.SMTP, user: str, password: str) -> None:
        """Sign in once. `login` would try every mechanism with a wrong password, which locks accounts."""
        if "PLAIN" not in smtp.esmtp_features.get("auth", "").split():
            smtp.login(user, password)
            return
        smtp.user, smtp.password = user, password
        smtp.auth("PLAIN", smtp.auth_plain)

    def _limit(self, smtp: smtplib.SMTP) -> None:
        """Give the next command what is left of the time."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the server is too slow")
        if smtp.sock is not None:
            smtp.sock.settimeout(min(self._step_s, remaining))

    def _sender(self, smtp: smtplib.SMTP, mail: OutgoingMail, options: Sequence[str]) -> None:
        self._limit(smtp)
        code, answer = smtp.mail(address_of(mail.sender), options)
        if code >= 300:
            raise _Answered(_refusal(code, answer, "the sender was refused"))

    def _recipients(self, smtp: smtplib.SMTP, addresses: Sequence[str], *, last: bool) -> list[str]:
        """Announce the recipients, and return those that are refused, with the answer."""
        refused: list[str] = []
        accepted = 0
        for address in addresses:
            self._limit(smtp)
            code, answer = smtp.rcpt(address)
            if code < 300:
                accepted += 1
            elif code < 500 and not last:
                raise _Answered(_refusal(code, answer, f"{address} was refused for now"))
            else:
                refused.append(f"{address} ({code} {_text(answer)})")
                final = Result(
                    AttemptOutcome.REFUSED if code >= 500 else AttemptOutcome.FAILED,
                    code,
                    _text(answer),
                    f"every recipient was refused: {'; '.join(refused)}",
                )
        if not accepted:
            raise _Answered(final if addresses else Result(AttemptOutcome.REFUSED, problem="it has no recipients"))
        return refused

    def _content(self, smtp: smtplib.SMTP, content: bytes) -> Result:
        """Send the mail itself. Once it is sent, a missing answer leaves open whether it was accepted."""
        self._limit(smtp)
        code, answer = smtp.docmd("DATA")
        if code != 354:
            return _refusal(code, answer, "the mail was refused")
        try:
            self._limit(smtp)
            smtp.send(smtplib._quote_periods(content))  # type: ignore[attr-defined]
            smtp.send(b".\r\n")
            code, answer = smtp.getreply()
        except (OSError, smtplib.SMTPException) as error:
            problem = f"no answer after the mail was sent ({error or type(error).__name__}); it may have been accepted"
            smtp.close()
            return Result(AttemptOutcome.UNKNOWN, problem=problem)
        if code >= 300:
            return _refusal(code, answer, "the mail was refused")
        return Result(AttemptOutcome.ACCEPTED, code, _text(answer))


def _refusal(code: int, answer: bytes | str, what: str, *, retry: bool = False) -> Result:
    """Return the result of an answer 4xx (try again) or 5xx (for good). `retry`: 5xx is tried again too."""
    final = code >= 500 and not retry
    shown = _text(answer)
    outcome = AttemptOutcome.REFUSED if final else AttemptOutcome.FAILED
    return Result(outcome, code if code > 0 else None, shown, f"{what}: {code} {shown}")


def _text(answer: bytes | str) -> str:
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return " ".join(text.split())[:_ANSWER_SHOWN].replace("\0", "\N{REPLACEMENT CHARACTER}")
