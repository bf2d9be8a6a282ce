"""Hooks of the schemathesis command: no request may end its own credentials, and not all submissions may be refused.

The command imports this file by its path, in a process of its own. WQLAB_FUZZER_TOKEN is the id of the token,
WQLAB_FUZZER_USER its owner's name, and WQLAB_FUZZER_RUN the id of a run with a boot.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

OTHER_ID, OTHER_NAME = 2**31 - 1, "nobody"
DEVICE_TYPE = "tiny"
FIRST_ID = "1"
"""Id in most generated requests; the first job is not a run."""
REPOSITORY = "https://git.example.org/linux.git"


@schemathesis.hook
def before_call(_context: Any, case: schemathesis.Case[Any], _options: dict[str, Any]) -> None:
    """Replace the token and the user of this command in the path of a request that changes something.

    Targets of a submission without a sweep get a device type, which the schema does not require, but the lab does.
    Requests that read a run, and half of those that read a branch, name one that is there.
    """
    if case.method == "GET":
        _name_run_and_repository(case)
        return
    if case.path == "/api/v1/submissions" and isinstance(case.body, dict):
        _name_device_types(case.body)
    path = case.path_parameters
    if case.path.startswith("/api/v1/tokens/") and str(path.get("token_id")) == os.environ["WQLAB_FUZZER_TOKEN"]:
        path["token_id"] = OTHER_ID
    if case.path.startswith("/api/v1/users/") and path.get("name") == os.environ["WQLAB_FUZZER_USER"]:
        path["name"] = OTHER_NAME


def _name_run_and_repository(case: schemathesis.Case[Any]) -> None:
    path, query = case.path_parameters, case.query
    if str(path.get("run_id")) == FIRST_ID:
        path["run_id"] = int(os.environ["WQLAB_FUZZER_RUN"])
        query.pop("boot", None)
        if case.path.endswith("/values"):
            query |= {"scenario": "fsync", "metric": "locks"}
    if case.path == "/api/v1/git/branches/inspection" and len(str(query.get("ref", ""))) % 2 == 0:
        query |= {"url": REPOSITORY, "ref": "master"}
        query.pop("tree", None)
        query.pop("base", None)


def _name_device_types(body: dict[str, Any]) -> None:
    targets = body.get("targets")
    if body.get("sweep") is None and isinstance(targets, list):
        for target in targets:
            if isinstance(target, dict):
                target.setdefault("device_type", DEVICE_TYPE)
