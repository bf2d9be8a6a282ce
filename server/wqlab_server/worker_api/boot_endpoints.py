"""Endpoints of shared boots: a run's worker shares them, and build hosts make them."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from wqlab_contracts.messages import Heartbeat, HeartbeatAnswer
from wqlab_contracts.messages.shared_boots import (
    BootHostAnswer,
    BootHostRequest,
    FinishSharedBoot,
    ShareAnswer,
    ShareBoots,
    SharedBootClaim,
)

from ..http.auth import BuildWorker, Worker
from ..http.deps import AppSettings, Db
from ..jobs import claims
from ..runs import shared_boots
from .lab_scope import check_lab_of_run
from .protocol import check_protocol

router = APIRouter()


@router.post("/runs/{run_id}/boots")
def share_boots(run_id: int, body: ShareBoots, db: Db, principal: Worker) -> ShareAnswer:
    check_lab_of_run(db, principal, run_id)
    return shared_boots.share(db, run_id, body)


@router.post("/boots/claim", dependencies=[Depends(check_protocol)])
def claim_boot(body: BootHostRequest, db: Db, settings: AppSettings, _: BuildWorker) -> BootHostAnswer:
    boot = shared_boots.claim(db, body, settings)
    if boot is None:
        return BootHostAnswer(claim=None)
    job = shared_boots.make_job(db, boot)
    return BootHostAnswer(claim=SharedBootClaim(job=job, fence=boot.fence or 0, expires_in_s=settings.claim_s))


@router.post("/boots/{boot_id}/heartbeat")
def heartbeat_boot(boot_id: int, body: Heartbeat, db: Db, settings: AppSettings, _: BuildWorker) -> HeartbeatAnswer:
    boot = shared_boots.lock_boot(db, boot_id)
    claims.extend(boot, shared_boots.check_boot(db, boot, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=False)


@router.post("/boots/{boot_id}/finish", status_code=204)
def finish_boot(boot_id: int, body: FinishSharedBoot, db: Db, _: BuildWorker) -> None:
    shared_boots.finish(db, boot_id, body.fence, body.result)
