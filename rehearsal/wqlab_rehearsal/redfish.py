"""Configure `sushy-emulator` as the Redfish service of a machine's BMC: power, users, and a certificate of its own."""

from __future__ import annotations

from pathlib import Path

from wqlab_host import tool

USER, PASSWORD = "lab", "rehearsal"
HOST = "127.0.0.1"


class CertificateError(Exception):
    """The certificate cannot be made; the message has the output of openssl."""


def write(folder: Path, name: str, port: int, start: Path) -> list[str]:
    """Write user and certificate to `folder` and return the service's command. `port` is its TCP port on the loopback.

    Raises CertificateError.
    """
    # Like sushy-tools, only rehearsals need it.
    import bcrypt

    folder.mkdir(parents=True, exist_ok=True)
    users = folder / "users"
    users.touch(mode=0o600)
    users.write_text(f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    (folder / "sushy.conf").write_text(f"SUSHY_EMULATOR_AUTH_FILE = {str(users)!r}\n")
    make_certificate(folder, name)
    return [
        "python", "-m", "wqlab_rehearsal.redfish_service", name, str(start),
        "--config", str(folder / "sushy.conf"), "--interface", HOST, "--port", str(port),
        "--ssl-certificate", str(certificate(folder)), "--ssl-key", str(folder / "key.pem"),
    ]  # fmt: skip


def certificate(folder: Path) -> Path:
    """Return the file with the BMC's certificate."""
    return folder / "certificate.pem"


def make_certificate(folder: Path, name: str) -> None:
    """Make a certificate as BMCs have it: signed by itself, with a name of its own. Raises CertificateError."""
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(folder / "key.pem")]
    tool.output(
        ["openssl", "req", "-x509", *key, "-out", str(certificate(folder)), "-days", "3650", "-subj", f"/CN={name}"],
        CertificateError,
    )
