"""Calls on devices, labs, plans and trees."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import ValidationError

from wqlab_contracts.api.canaries import CanaryRecord
from wqlab_contracts.api.devices import DeviceTypeView, DeviceView, QuarantineRequest
from wqlab_contracts.api.labs import LabInvitation, LabInvited, LabView
from wqlab_contracts.api.plans import PlanView, TreeView
from wqlab_contracts.api.queue import DeviceCheck

from ..errors import UsageError
from ..transport import Params
from .connection import API, Connection

CHECK_WAIT_S = 20
"""Seconds for which the server may hold a request for a check's progress (long polling); its maximum."""


class LabCalls(Connection):
    """Calls on the lab and on what it offers."""

    def devices(self) -> list[DeviceView]:
        return self._get(list[DeviceView], f"{API}/devices", "list devices")

    def device(self, name: str) -> DeviceView:
        return self._get(DeviceView, f"{API}/devices/{quote(name, safe='')}", f"device {name}")

    def canaries(self, device: str | None, plan: str | None) -> list[CanaryRecord]:
        """Return what A/A comparisons have shown of a device, or of all devices with a plan."""
        params: Params = {name: value for name, value in (("device", device), ("plan", plan)) if value is not None}
        return self._get(list[CanaryRecord], f"{API}/canaries", "list A/A comparisons", params)

    def quarantine(self, name: str, reason: str) -> DeviceView:
        """Take a device out of the pool. Raises UsageError for an empty or overlong reason."""
        try:
            request = QuarantineRequest(reason=reason)
        except ValidationError:
            raise UsageError(
                "a quarantine needs a reason of 1 to 500 characters", "describe what is wrong with the device"
            ) from None
        path = f"{API}/devices/{quote(name, safe='')}/quarantine"
        return self._post(DeviceView, path, f"quarantine {name}", body=request.model_dump_json().encode())

    def release(self, name: str) -> DeviceView:
        """Put a quarantined device back into the pool; a health check precedes its first run."""
        return self._post(DeviceView, f"{API}/devices/{quote(name, safe='')}/release", f"release {name}")

    def check_device(self, name: str) -> DeviceCheck:
        """Start a check of a device, or return the check that is running. The caller must be a maintainer."""
        return self._post(DeviceCheck, f"{API}/devices/{quote(name, safe='')}/check", f"check of {name}")

    def await_device_check(self, known: DeviceCheck) -> DeviceCheck:
        """Wait up to CHECK_WAIT_S seconds for a change of a check and return it; `known` is its last known state."""
        path = f"{API}/devices/{quote(known.device, safe='')}/checks/{known.id}"
        params: Params = {"seen": known.changes, "wait_s": CHECK_WAIT_S}
        return self._get(DeviceCheck, path, f"check {known.id} of {known.device}", params)

    def labs(self) -> list[LabView]:
        return self._get(list[LabView], f"{API}/labs", "list labs")

    def invite_lab(self, name: str, *, valid_s: int, again: bool = False) -> LabInvited:
        """Create a token with which one host joins as this lab. For administrators.

        `valid_s`: seconds until the token expires; `again`: replace a host that has joined.
        """
        body = LabInvitation(valid_s=valid_s, again=again).model_dump_json().encode()
        return self._post(LabInvited, f"{API}/labs/{quote(name, safe='')}/invite", f"invite lab {name}", body=body)

    def remove_lab(self, name: str) -> None:
        """Revoke a lab's credentials and quarantine its devices. For administrators."""
        self._transport.call(
            "DELETE", f"{API}/labs/{quote(name, safe='')}", what=f"remove lab {name}", repeatable=False
        )

    def device_types(self) -> list[DeviceTypeView]:
        return self._get(list[DeviceTypeView], f"{API}/device-types", "list device types")

    def plans(self, *, files: bool = False) -> list[PlanView]:
        return self._get(list[PlanView], f"{API}/plans", "list plans", {"files": "true" if files else None})

    def trees(self) -> list[TreeView]:
        return self._get(list[TreeView], f"{API}/trees", "list trees")
