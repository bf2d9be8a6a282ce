"""REST endpoints of remote labs: list, invite, join, remove."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, status
from fastapi.responses import PlainTextResponse

from wqlab_contracts.api.labs import LabInvitation, LabInvited, LabJoin, LabJoined, LabView
from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.auth import Admin, Reader
from ..http.browser_sessions import digest
from ..http.deps import AppSettings, Db
from ..http.paging import plain_text
from ..http.problems import ApiProblem, documented, not_found
from . import hosts

router = APIRouter(prefix="/labs", tags=["labs"], responses=documented(401, 403, 422, 429))

Lab = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@router.get("")
def list_labs(session: Db, _: Reader) -> list[LabView]:
    """List the labs that have a device, a worker, or credentials of their own."""
    return hosts.views(session)


@router.get("/ca", response_class=PlainTextResponse, responses=documented(404))
def get_ca(settings: AppSettings) -> str:
    """Return the certificate (PEM) of the private CA that signed this server's and its broker's certificates. No token
    is needed; a join token contains the certificate's SHA-256."""
    if settings.ca_file is None:
        raise not_found(
            "private CA", "here", hint="the server's certificate is checked with the system's CA certificates"
        )
    return settings.ca_file.read_text()


@router.post("/{lab}/invite", status_code=status.HTTP_201_CREATED, responses=documented(400, 409))
def invite_lab(
    *, lab: Lab, body: LabInvitation, session: Db, settings: AppSettings, who: Admin, audit: Audit
) -> LabInvited:
    """Create a single-use token with which a host joins as this lab; earlier join tokens of the lab are withdrawn. Only
    administrators may invite, because only they issue worker tokens."""
    row, secret = hosts.invite(
        session, lab, who.owner, settings, again=body.again, valid=timedelta(seconds=body.valid_s)
    )
    audit.record(session, AuditAction.INVITE_LAB, f"lab/{lab}", again=body.again, expires_at=row.expires_at.isoformat())
    if settings.ca_file is not None:
        secret += f".{digest(settings.ca_file.read_text())}"
    return LabInvited(lab=lab, url=settings.lab_url or settings.public_url, token=secret, expires_at=row.expires_at)


@router.post("/join", responses=documented(400, 409, 503))
def join_lab(body: LabJoin, session: Db, settings: AppSettings, audit: Audit) -> LabJoined:
    """Exchange a join token for the lab host's credentials. The join token works once; no other token is needed."""
    try:
        joined = hosts.join(session, plain_text("token", body.token, "body"), settings)
    except ApiProblem as refusal:
        audit.refuse(AuditAction.JOIN_LAB, "lab", reason=refusal.detail)
        raise
    audit.record(session, AuditAction.JOIN_LAB, f"lab/{joined.lab}")
    return joined


@router.delete("/{lab}", status_code=status.HTTP_204_NO_CONTENT, responses=documented(404))
def remove_lab(lab: Lab, session: Db, settings: AppSettings, who: Admin, audit: Audit) -> None:
    """Remove a lab. Its worker token, broker user and join tokens are revoked at once, and its devices are quarantined.
    Its running runs go to other devices when their leases end."""
    hosts.remove(session, lab, who.owner, settings)
    audit.record(session, AuditAction.REMOVE_LAB, f"lab/{lab}")
