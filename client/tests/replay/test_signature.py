"""Signatures of bundles: valid, of another key, of another manifest, damaged."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from bundles import read_files, resigned, write_files

from wqlab_client.errors import UsageError
from wqlab_client.replay.archive import BundleError, open_bundle
from wqlab_client.replay.signature import PublicKey, check_signature, read_keys
from wqlab_server.storage.signing import SigningKey

pytestmark = pytest.mark.integration


def signer(path: Path) -> PublicKey:
    with open_bundle(path) as bundle:
        return check_signature(bundle)


def public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")


def test_signer_is_the_key_that_ssh_keygen_shows(improvement: Path, signing_key: Path) -> None:
    key = signer(improvement)
    assert key in read_keys(str(public(signing_key)))
    shown = subprocess.run(["ssh-keygen", "-l", "-f", signing_key], check=True, capture_output=True, text=True).stdout
    assert key.fingerprint in shown


def test_another_key_is_another_signer(improvement: Path, signing_key: Path, other_key: Path) -> None:
    path = write_files(improvement.with_suffix(".other.zip"), resigned(read_files(improvement), other_key))
    assert signer(path) in read_keys(str(public(other_key)))
    assert signer(path) not in read_keys(str(public(signing_key)))


def test_manifest_changed_after_signing_is_refused(improvement: Path, signing_key: Path) -> None:
    files = read_files(improvement)
    files["manifest.json"] = json.dumps(json.loads(files["manifest.json"]) | {"lab_url": "http://other"}).encode()
    path = write_files(improvement.with_suffix(".changed.zip"), files)
    with pytest.raises(BundleError, match="the manifest was changed after it was signed"):
        signer(path)


def test_signature_for_another_purpose_is_refused(improvement: Path, signing_key: Path) -> None:
    files = read_files(improvement)
    files["manifest.json.sig"] = SigningKey.read(signing_key).sign(files["manifest.json"], "git")
    with pytest.raises(BundleError, match="signature is not valid"):
        signer(write_files(improvement.with_suffix(".changed.zip"), files))


def test_every_damaged_signature_is_refused(improvement: Path, signing_key: Path, tmp_path: Path) -> None:
    files = read_files(improvement)
    good = files["manifest.json.sig"]
    body = base64.b64decode(b"".join(good.splitlines()[1:-1]))
    path = tmp_path / "damaged.zip"
    bad = [b"", b"x", good[:40], good.replace(b"SSH SIGNATURE", b"PGP SIGNATURE"), good + good]
    for position in range(0, len(body), 9):
        changed = body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]
        encoded = base64.encodebytes(changed)
        bad.append(b"-----BEGIN SSH SIGNATURE-----\n" + encoded + b"-----END SSH SIGNATURE-----\n")
    for signature in bad:
        files["manifest.json.sig"] = signature
        with pytest.raises(BundleError, match="signature"):
            signer(write_files(path, files))


def test_keys_are_read_from_public_keys_and_allowed_signers(signing_key: Path, other_key: Path, tmp_path: Path) -> None:
    one, other = public(signing_key).read_text(), public(other_key).read_text()
    file = tmp_path / "signers"
    file.write_text(f'# labs\nlab@example.org namespaces="wqlab-bundle" {one}ssh-rsa AAAA\n{other}')
    assert [key.line for key in read_keys(str(file))] == [" ".join(text.split()[:2]) for text in (one, other)]
    for text in ("", "ssh-rsa AAAAB3NzaC1yc2E", "ssh-ed25519 AAAA", "ssh-ed25519 " + "A" * 68):
        file.write_text(text)
        with pytest.raises(UsageError, match="no Ed25519 public key"):
            read_keys(str(file))
    with pytest.raises(UsageError, match="cannot read"):
        read_keys(str(tmp_path / "none"))
