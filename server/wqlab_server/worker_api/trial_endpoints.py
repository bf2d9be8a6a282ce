"""Endpoints to claim device trials, report their steps and finish them."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from wqlab_contracts.messages import ClaimRequest, Heartbeat, HeartbeatAnswer
from wqlab_contracts.messages.device_trials import FinishTrial, TrialClaim, TrialProgress

from ..http.auth import Worker
from ..http.deps import AppSettings, Db
from ..jobs import claims
from ..lab import trials
from .lab_scope import check_lab
from .protocol import check_protocol

router = APIRouter(prefix="/device_trials")


@router.post("/{trial_id}/claim", dependencies=[Depends(check_protocol)])
def claim_trial(trial_id: int, body: ClaimRequest, db: Db, settings: AppSettings, principal: Worker) -> TrialClaim:
    check_lab(principal, trials.lock(db, trial_id).lab)
    trial, fence = trials.claim(db, trial_id, body.worker, settings, body.nonce)
    return TrialClaim(device=trial.device, write=trial.write, fence=fence, expires_in_s=settings.claim_s)


@router.post("/{trial_id}/heartbeat")
def heartbeat_trial(
    trial_id: int, body: Heartbeat, db: Db, settings: AppSettings, principal: Worker
) -> HeartbeatAnswer:
    trial = trials.lock(db, trial_id)
    check_lab(principal, trial.lab)
    claims.extend(trial, claims.check_fence(db, trial, body.fence), settings.claim_s)
    return HeartbeatAnswer(expires_in_s=settings.claim_s, cancel=trial.cancel_requested_at is not None)


@router.post("/{trial_id}/progress", status_code=204)
def trial_progress(trial_id: int, body: TrialProgress, db: Db, principal: Worker) -> None:
    check_lab(principal, trials.lock(db, trial_id).lab)
    trials.progress(db, trial_id, body)


@router.post("/{trial_id}/finish", status_code=204)
def finish_trial(trial_id: int, body: FinishTrial, db: Db, principal: Worker) -> None:
    check_lab(principal, trials.lock(db, trial_id).lab)
    trials.finish(db, trial_id, body.fence, body.result)
