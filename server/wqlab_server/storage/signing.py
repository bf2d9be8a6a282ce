"""Sign with the lab's Ed25519 key, in the signature format of OpenSSH (PROTOCOL.sshsig), by `ssh-keygen`.

Readers can verify such a signature with `ssh-keygen -Y verify`, without a program of this project.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 20


class SigningError(Exception):
    """There is no usable key; the message names the setting and the fix."""


@dataclass(frozen=True)
class SigningKey:
    """The lab's private key, and its public key in the format of OpenSSH: `ssh-ed25519 BASE64`."""

    private: Path
    public: str

    @classmethod
    def read(cls, private: Path | None) -> SigningKey:
        """Read the public key in `private`.pub. Raises SigningError if there is none, or if it is no Ed25519 key."""
        if private is None:
            raise SigningError(
                "this lab has no signing key: the operator makes one with ssh-keygen, see docs/replay.md"
            )
        public = private.with_name(f"{private.name}.pub")
        try:
            kind, blob = public.read_text().split()[:2]
        except (OSError, ValueError) as error:
            raise SigningError(f"WQLAB_SIGNING_KEY_FILE={private}: cannot read its public key in {public}") from error
        if kind != "ssh-ed25519":
            raise SigningError(f"WQLAB_SIGNING_KEY_FILE={private} is a key of type {kind}: make one with -t ed25519")
        return cls(private, f"{kind} {blob}")

    def sign(self, content: bytes, namespace: str) -> bytes:
        """Return the armored signature of `content`. Equal content gives an equal signature. Raises SigningError."""
        try:
            done = subprocess.run(
                ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(self.private)],
                input=content,
                capture_output=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SigningError(f"cannot run ssh-keygen to sign: {error}") from error
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip()
            raise SigningError(f"ssh-keygen cannot sign with WQLAB_SIGNING_KEY_FILE={self.private}: {reason}")
        return done.stdout
