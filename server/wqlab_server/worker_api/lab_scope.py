"""Access checks for worker tokens that are bound to one lab."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..http.auth import Principal
from ..http.problems import ApiProblem
from ..models import Device, Run


def check_lab(principal: Principal, lab: str) -> None:
    """Raise ApiProblem 403 if the token is bound to another lab."""
    if principal.lab is not None and principal.lab != lab:
        raise ApiProblem(403, f"this token is for lab {principal.lab}, not {lab}")


def check_lab_of_run(db: Session, principal: Principal, run_id: int) -> None:
    """Raise ApiProblem 403 if the run has a device of another lab than the token's.

    A run without a device passes: it has no holder, so no fence is valid for it.
    """
    lab = db.scalar(select(Device.lab).join(Run, Run.device_name == Device.name).where(Run.id == run_id))
    if lab is not None:
        check_lab(principal, lab)
