"""Accounts with confirmed addresses, and the mails that they get."""

from __future__ import annotations

import re
import secrets
from typing import Any

from sqlalchemy import select

from wqlab_contracts.enums import Arm, DeliveryKind, DeliveryState, UserRole
from wqlab_server.models import Delivery, MailAddress, User
from wqlab_server.outbox.send import deliver
from wqlab_server.storage.db import clock

from .lab import LabUnderTest
from .people import add_user
from .smtp import MailServer


def configure(lab: LabUnderTest, **changes: Any) -> None:
    """Change settings of the lab and of its API."""
    lab.settings = lab.app.state.settings = lab.settings.model_copy(update=changes)


def send_mail_from(lab: LabUnderTest) -> None:
    """Let the lab send mail, and be reached by https."""
    configure(
        lab,
        smtp_host="127.0.0.1",
        smtp_tls="none",
        mail_from="wqlab <wqlab@lab.example>",
        public_url="https://lab.test",
    )


def account(lab: LabUnderTest, name: str, address: str | None = None, role: UserRole = UserRole.VIEWER) -> int:
    """Return the id of an account; with `address` it is made with this confirmed address, and gets its results."""
    with lab.transaction() as session:
        user = session.scalar(select(User).where(User.name == name)) or add_user(session, name, role)
        if address is not None:
            session.add(
                MailAddress(
                    user_id=user.id, secret=secrets.token_hex(8), address=address, confirmed_at=clock(session),
                    mail_results=True,
                )
            )  # fmt: skip
        return user.id


def measured(lab: LabUnderTest, locks: float = 5.0, *, target: str = "locks@single", **more: Any) -> int:
    """Submit a series and finish it: the candidate takes this number of locks, and the baseline 33."""
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else locks
    number = lab.submit(target, force=True, **more)
    lab.finished(number)
    return number


def mails(lab: LabUnderTest) -> list[Delivery]:
    """Return the personal mails, oldest first."""
    with lab.transaction() as session:
        of_kind = select(Delivery).where(Delivery.kind == DeliveryKind.PERSONAL_MAIL)
        return list(session.scalars(of_kind.order_by(Delivery.id)))


def send(lab: LabUnderTest, server: MailServer) -> None:
    """Make one attempt at each personal mail that waits."""
    configure(lab, smtp_port=server.port)
    for each in mails(lab):
        if each.state is DeliveryState.WAITING:
            assert deliver(lab.sessions, lab.settings, each.id) is not None


def link_in(text: str) -> str:
    """Return the path of the link in a text."""
    found = re.search(r"https://lab\.test(/api/v1/\S+?)>?(?:\s|$)", text)
    assert found is not None, text
    return found[1]
