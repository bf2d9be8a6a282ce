"""Check the signature of a bundle's manifest with `ssh-keygen`, and compare keys.

The format is that of OpenSSH, PROTOCOL.sshsig: "SSHSIG", version, public key, namespace, reserved, hash, signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.bundle import SIGNATURE_NAMESPACE

from ..client import Client
from ..errors import UsageError
from .archive import Bundle, BundleError

TIMEOUT_S = 60
KEY_FILE_BYTES = 100_000
_ARMOR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----\s*")
_KEY_LINE = re.compile(r"(?:^|[ \t])ssh-ed25519[ \t]+([A-Za-z0-9+/]+={0,2})(?=\s|$)", re.MULTILINE)
_MAGIC = b"SSHSIG\0\0\0\1"
_TYPE = b"ssh-ed25519"


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key in the encoding of OpenSSH."""

    blob: bytes

    @property
    def line(self) -> str:
        return f"{_TYPE.decode()} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


def check_signature(bundle: Bundle) -> PublicKey:
    """Return the key that signed the manifest. Raises BundleError if the signature is missing or not valid."""
    key = _signer(bundle)
    with tempfile.TemporaryDirectory(prefix="wqlab-replay-") as folder:
        signers, signature = Path(folder, "signers"), Path(folder, "signature")
        # Only this key is allowed, so what is shown is what ssh-keygen has verified.
        signers.write_text(f'lab namespaces="{SIGNATURE_NAMESPACE}" {key.line}\n')
        signature.write_bytes(bundle.signature_content)
        command = ["ssh-keygen", "-q", "-Y", "verify", "-f", str(signers), "-I", "lab", "-n", SIGNATURE_NAMESPACE]
        try:
            done = subprocess.run(
                [*command, "-s", str(signature)],
                input=bundle.manifest_content,
                capture_output=True,
                check=False,
                timeout=TIMEOUT_S,
            )
        except FileNotFoundError:
            raise UsageError("ssh-keygen is missing", "install OpenSSH's client (Debian: openssh-client)") from None
        except subprocess.TimeoutExpired:
            raise BundleError(bundle.path, "ssh-keygen did not end while it checked the signature") from None
    if done.returncode:
        raise BundleError(bundle.path, "the signature is not valid: the manifest was changed after it was signed")
    return key


def _signer(bundle: Bundle) -> PublicKey:
    match = _ARMOR.fullmatch(bundle.signature_content)
    try:
        content = base64.b64decode(match[1].translate(None, b"\r\n"), validate=True) if match else b""
        if not content.startswith(_MAGIC):
            raise ValueError("it does not begin with SSHSIG and version 1")
        return _ed25519(_string(content, len(_MAGIC)))
    except (ValueError, binascii.Error, struct.error) as error:
        raise BundleError(bundle.path, f"manifest.json.sig is not a signature by an Ed25519 key: {error}") from None


def _ed25519(blob: bytes) -> PublicKey:
    """Return the key with this encoding. Raises ValueError if it is not an Ed25519 key."""
    if len(blob) != 51 or _string(blob, 0) != _TYPE or len(_string(blob, 15)) != 32:
        raise ValueError("the key is not an Ed25519 key")
    return PublicKey(blob)


def _string(content: bytes, offset: int) -> bytes:
    """Return the string at `offset`: its length in four bytes, then its bytes (RFC 4251, section 5)."""
    (length,) = struct.unpack_from(">I", content, offset)
    if offset + 4 + length > len(content):
        raise ValueError("it ends early")
    return content[offset + 4 : offset + 4 + length]


def read_keys(source: str) -> list[PublicKey]:
    """Return the Ed25519 keys in a file (a public key, or ssh-keygen's allowed signers), or of the lab at a URL.

    Raises UsageError if there is none, and the errors of `Client` if the lab does not answer.
    """
    if source.startswith(("https://", "http://")):
        with Client(source.rstrip("/").removesuffix("/api/v1/lab-key")) as client:
            text = client.lab_key()
    else:
        try:
            with Path(source).open(encoding="utf-8", errors="replace") as file:
                text = file.read(KEY_FILE_BYTES)
        except OSError as error:
            raise UsageError(f"--key: cannot read {source}: {error.strerror}") from None
    keys = []
    for blob in _KEY_LINE.findall(text):
        try:
            keys.append(_ed25519(base64.b64decode(blob, validate=True)))
        except (ValueError, binascii.Error, struct.error):
            continue
    if not keys:
        raise UsageError(
            f"--key: no Ed25519 public key in {source}", "pass what `wqlab lab-key` prints: ssh-ed25519 AAAA..."
        )
    return keys
