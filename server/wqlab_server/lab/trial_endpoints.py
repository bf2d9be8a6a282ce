"""REST endpoints of device trials."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, status

from wqlab_contracts.api.device_trials import DeviceTrial, DeviceTrialRequest
from wqlab_contracts.enums import AuditAction

from ..http import long_poll
from ..http.audit import Audit
from ..http.auth import Admin
from ..http.deps import Db
from ..http.paging import Id
from ..http.problems import documented
from ..storage.db import SessionFactory, transaction
from ..storage.events import TRIAL_CHANNEL
from . import trials

router = APIRouter(prefix="/device-trials", tags=["lab"], responses=documented(401, 403, 422, 429))


@router.post("", status_code=status.HTTP_202_ACCEPTED, responses=documented(400, 409))
def try_device(body: DeviceTrialRequest, session: Db, who: Admin, audit: Audit) -> DeviceTrial:
    """Try a machine that is to be added: console, power, golden system, SSH, kexec, reset, as seen from its lab's host.
    The machine is power-cycled. With `write`, the lab's worker writes its files if no step fails. For administrators,
    because the lab's host connects to the given addresses."""
    trial_id = trials.request(session, body.device, who.owner, write=body.write)
    audit.record(session, AuditAction.TRY_DEVICE, f"device/{body.device.name}", trial=trial_id, write=body.write)
    return trials.read(session, trial_id)


@router.get("/{trial_id}", responses=documented(404, 503))
async def get_device_trial(
    *,
    trial_id: Id,
    request: Request,
    _: Admin,
    seen: Annotated[int, Query(ge=-1, description="`changes` of the last response; wait until there are more")] = -1,
    wait_s: Annotated[float, Query(ge=0, le=long_poll.MAX_S, description="Longest time to wait, in seconds")] = 0,
) -> DeviceTrial:
    """Return the current state of a trial; long polling with `seen` and `wait_s`."""
    factory: SessionFactory = request.app.state.sessions

    def read() -> DeviceTrial:
        with transaction(factory) as session:
            return trials.read(session, trial_id)

    return await long_poll.wait_until(
        lambda trial: trial.changes > seen or trial.finished_at is not None,
        read,
        request=request,
        topic=(TRIAL_CHANNEL, str(trial_id)),
        wait_s=wait_s,
    )


@router.post("/{trial_id}/cancel", status_code=status.HTTP_202_ACCEPTED, responses=documented(404))
def cancel_device_trial(trial_id: Id, session: Db, _: Admin, audit: Audit) -> DeviceTrial:
    """Stop a trial; its machine is switched off. A finished one stays as it is."""
    trials.cancel(session, trial_id)
    view = trials.read(session, trial_id)
    audit.record(session, AuditAction.TRY_DEVICE, f"device/{view.device.name}", trial=trial_id, canceled=True)
    return view
