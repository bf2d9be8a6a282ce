"""The CA certificates with which https servers are verified."""

from __future__ import annotations

import ssl

from .failures import InfrastructureError
from .workspace import Workspace


def ssl_context(workspace: Workspace) -> ssl.SSLContext:
    """Return a context that trusts the workspace's CA certificates. Raises InfrastructureError."""
    try:
        return ssl.create_default_context(cafile=workspace.ca_file)
    except OSError as error:
        raise InfrastructureError(
            f"cannot read the CA certificates in {workspace.ca_file}: {error}",
            advice="Set SSL_CERT_FILE to a file in PEM format, or unset it to use the system's own (ca-certificates).",
        ) from error
