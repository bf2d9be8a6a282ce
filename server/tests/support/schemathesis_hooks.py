"""Hooks of the schemathesis command: no request may end the credentials that the requests are sent with.

The command imports this file by its path, in a process of its own. WQLAB_FUZZER_TOKEN is the id of the token, and
WQLAB_FUZZER_USER its owner's name.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

OTHER_ID, OTHER_NAME = 2**31 - 1, "nobody"


@schemathesis.hook
def before_call(_context: Any, case: schemathesis.Case[Any], _options: dict[str, Any]) -> None:
    """Replace the token and the user of this command in the path of a request that changes something."""
    if case.method == "GET":
        return
    path = case.path_parameters
    if case.path.startswith("/api/v1/tokens/") and str(path.get("token_id")) == os.environ["WQLAB_FUZZER_TOKEN"]:
        path["token_id"] = OTHER_ID
    if case.path.startswith("/api/v1/users/") and path.get("name") == os.environ["WQLAB_FUZZER_USER"]:
        path["name"] = OTHER_NAME
