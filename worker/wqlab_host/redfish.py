"""Switch a machine's power through the Redfish service of its BMC.

    wqlab-redfish --url https://192.0.2.40 --user lab --password-file FILE --certificate BMC.pem on|off|restart|status

`on` and `off` do nothing if the power is in that state. Each command returns when the state is reached.
"""

from __future__ import annotations

import argparse
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

_ACTION = "#ComputerSystem.Reset"
_RESET = {"on": "On", "off": "ForceOff", "restart": "ForceRestart"}
"""ForceOff and ForceRestart, and not the graceful types: a kernel that hangs does not shut down."""
_REACHED = {"on": "On", "off": "Off", "restart": "On"}
_ANSWER_S = 20.0
_POLL_S = 0.5


class RedfishError(Exception):
    """The power was not switched or not read; the message says why."""


class System:
    """One computer system of a Redfish service."""

    def __init__(self, client: httpx.Client, name: str | None) -> None:
        """Find the system `name`, or the only one. Raises RedfishError."""
        self._client = client
        members = [
            str(each.get("@odata.id", ""))
            for each in _get(client, "/redfish/v1/Systems").get("Members", [])
            if isinstance(each, dict)
        ]
        names = [path.rstrip("/").rpartition("/")[2] for path in members]
        if name is None and len(members) != 1:
            raise RedfishError(f"the service has {len(members)} systems; choose one by --system: {', '.join(names)}")
        if name is not None and name not in names:
            raise RedfishError(f"no system {name!r}; the service has: {', '.join(names) or 'none'}")
        self._path = members[names.index(name) if name is not None else 0]

    def power(self) -> str:
        """Return the value of Redfish's `PowerState`: On, Off, PoweringOn or PoweringOff. Raises RedfishError."""
        state = _get(self._client, self._path).get("PowerState")
        if not isinstance(state, str):
            raise RedfishError(f"{self._path} does not tell its PowerState")
        return state

    def switch(self, to: str, timeout_s: float) -> None:
        """Bring the power to "on" or "off", or "restart" the machine, and wait for it. Raises RedfishError."""
        if to != "restart" and self.power() == _REACHED[to]:
            return
        action = _get(self._client, self._path).get("Actions", {}).get(_ACTION, {})
        if not isinstance(action.get("target"), str):
            raise RedfishError(f"{self._path} has no action {_ACTION}")
        allowed = action.get("ResetType@Redfish.AllowableValues")
        if isinstance(allowed, list) and _RESET[to] not in allowed:
            raise RedfishError(f"the system allows no {_RESET[to]}, only: {', '.join(map(str, allowed))}")
        _check(_request(self._client, "POST", action["target"], {"ResetType": _RESET[to]}))
        deadline = time.monotonic() + timeout_s
        while (state := self.power()) != _REACHED[to]:
            if time.monotonic() >= deadline:
                raise RedfishError(f"{timeout_s:.0f} s after {_RESET[to]} the power is {state}")
            time.sleep(_POLL_S)


def _get(client: httpx.Client, path: str) -> dict[str, Any]:
    response = _request(client, "GET", path)
    _check(response)
    try:
        found = response.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RedfishError(f"{path} is no Redfish resource: the answer is no JSON object")
    return found


def _request(client: httpx.Client, method: str, path: str, body: Mapping[str, str] | None = None) -> httpx.Response:
    try:
        return client.request(method, path, json=body)
    except httpx.TimeoutException as error:
        raise RedfishError(f"{client.base_url} did not answer in {_ANSWER_S:.0f} s") from error
    except httpx.HTTPError as error:
        hint = ""
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            hint = "; give the BMC's own certificate with --certificate"
        raise RedfishError(f"{client.base_url} cannot be reached: {error}{hint}") from error


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    path = response.request.url.path
    if response.status_code in {401, 403}:
        raise RedfishError(f"{path}: user or password is wrong, or the user may not do this ({response.status_code})")
    raise RedfishError(f"{path}: {response.status_code} {response.reason_phrase}{_reason(response)}")


def _reason(response: httpx.Response) -> str:
    """Return what the service says about an error, or nothing."""
    try:
        error = response.json()["error"]
        messages = [each["Message"] for each in error.get("@Message.ExtendedInfo", []) if each.get("Message")]
        text = "; ".join(map(str, messages or [error["message"]]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f": {' '.join(text.split())[:300]}"


def connect(url: str, user: str, password: str, certificate: Path | None) -> httpx.Client:
    """Return a client. `certificate` is the BMC's own: then no other is accepted, whatever name it has.

    Raises RedfishError if the certificate cannot be read.
    """
    context = ssl.create_default_context()
    if certificate is not None:
        try:
            context = ssl.create_default_context(cafile=str(certificate))
        except (OSError, ssl.SSLError) as error:
            raise RedfishError(f"{certificate} is no readable certificate: {error}") from error
        # BMCs have certificates of their own making, with any name: only this one is trusted, so its name says nothing.
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return httpx.Client(
        base_url=url, auth=(user, password), verify=context, timeout=_ANSWER_S, follow_redirects=True, trust_env=False
    )


def run(given: argparse.Namespace) -> str:
    """Execute the command; return what to print. Raises RedfishError."""
    try:
        password = given.password_file.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RedfishError(f"the password file cannot be read: {error}") from error
    with connect(given.url, given.user, password, given.certificate) as client:
        system = System(client, given.system)
        if given.command != "status":
            system.switch(given.command, given.wait)
        return system.power()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("wqlab-redfish", description="Switch a machine's power through Redfish.")
    parser.add_argument("command", choices=[*_RESET, "status"])
    parser.add_argument("--url", required=True, help="address of the BMC, such as https://192.0.2.40")
    parser.add_argument("--user", required=True)
    parser.add_argument("--password-file", type=Path, required=True, help="a file keeps it out of process lists")
    parser.add_argument("--system", help="name of the system, if the service has several")
    parser.add_argument("--certificate", type=Path, help="the BMC's certificate (PEM); no other is accepted then")
    parser.add_argument("--wait", type=float, default=40.0, metavar="SECONDS", help="for the state to be reached")
    try:
        print(run(parser.parse_args(arguments)))
    except RedfishError as error:
        print(f"wqlab-redfish: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
