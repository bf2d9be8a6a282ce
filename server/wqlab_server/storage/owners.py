"""Find the account that owns submissions that the lab makes by itself, from a list, a tree or a forge."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import UserRole

from ..models import User


class UnusableOwner(ValueError):
    """The account cannot own submissions; the text says why and what to do."""


def owner_of(session: Session, name: str) -> User:
    """Return the account `name`, which may submit. Raises UnusableOwner."""
    user = session.scalar(select(User).where(User.name == name))
    if user is None:
        raise UnusableOwner(f"no account {name!r}; an administrator makes it with `wqlab-server user create`")
    if user.disabled_at is not None:
        raise UnusableOwner(f"the account {name} is disabled")
    if user.role is UserRole.VIEWER or user.without_role_since is not None:
        raise UnusableOwner(f"the account {name} may not submit; give it the role submitter")
    return user
