"""Signatures with the lab's key, and keys that cannot be used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_server.storage.signing import SigningError, SigningKey


def make(folder: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    key = folder / f"{kind}-{passphrase}"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", key], check=True)
    return key


def test_equal_content_has_an_equal_signature(tmp_path: Path) -> None:
    key = SigningKey.read(make(tmp_path))
    assert key.public.startswith("ssh-ed25519 AAAA")
    assert key.sign(b"content", "wqlab-bundle") == key.sign(b"content", "wqlab-bundle")
    assert key.sign(b"content", "wqlab-bundle") != key.sign(b"content", "other")
    assert key.sign(b"x" * 3_000_000, "wqlab-bundle").startswith(b"-----BEGIN SSH SIGNATURE-----\n")


def test_unusable_keys_are_named_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(SigningError, match="no signing key"):
        SigningKey.read(None)
    with pytest.raises(SigningError, match=r"WQLAB_SIGNING_KEY_FILE=.*cannot read its public key"):
        SigningKey.read(tmp_path / "none")
    with pytest.raises(SigningError, match="a key of type ecdsa-sha2-nistp256: make one with -t ed25519"):
        SigningKey.read(make(tmp_path, "ecdsa"))
    locked = SigningKey.read(make(tmp_path, passphrase="secret-of-the-key"))
    with pytest.raises(SigningError, match="ssh-keygen cannot sign with"):
        locked.sign(b"content", "wqlab-bundle")
