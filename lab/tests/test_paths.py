from __future__ import annotations

import socket
from pathlib import Path

import pytest

from wqlab_lab.paths import LabPaths, LabPathsError, Serving, free_port


def test_missing_folder_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_CACHE", raising=False)
    with pytest.raises(LabPathsError, match="WQLAB_CACHE is not set"):
        LabPaths.from_environment()


def test_state_path_too_long_for_a_socket_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WQLAB_CACHE", str(tmp_path))
    monkeypatch.setenv("WQLAB_STATE", str(tmp_path / ("x" * 100)))
    with pytest.raises(LabPathsError, match="WQLAB_STATE is too long"):
        LabPaths.from_environment()


def test_port_is_stored_and_used_ports_are_avoided(paths: LabPaths) -> None:
    assert paths.port("api") == paths.port("api")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) != taken.getsockname()[1]


def test_public_reading_is_on_if_only_this_machine_reaches_the_api(
    paths: LabPaths, served: LabPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WQLAB_PUBLIC_READING", raising=False)
    monkeypatch.delenv("WQLAB_PUBLIC_URL", raising=False)
    assert paths.server_environment()["WQLAB_PUBLIC_READING"] == "true"
    monkeypatch.setenv("WQLAB_PUBLIC_READING", "false")
    assert paths.server_environment()["WQLAB_PUBLIC_READING"] == "false"
    assert "WQLAB_PUBLIC_READING" not in paths.worker_environment()
    monkeypatch.delenv("WQLAB_PUBLIC_READING")
    assert served.server_environment()["WQLAB_PUBLIC_READING"] == "false", "other machines reach this API"
    monkeypatch.setenv("WQLAB_PUBLIC_URL", "https://lab.example.org")
    assert paths.server_environment()["WQLAB_PUBLIC_READING"] == "false", "a proxy passes requests on"
    monkeypatch.setenv("WQLAB_PUBLIC_READING", "true")
    assert served.server_environment()["WQLAB_PUBLIC_READING"] == "true", "the operator decides"


def test_each_setting_reaches_the_server_only(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WQLAB_SESSION_IDLE_S", "3600")
    monkeypatch.setenv("WQLAB_DATABASE_URL", "postgresql://elsewhere")
    monkeypatch.setenv("WQLAB_TOKEN", "secret of a user")
    server, worker = paths.server_environment(), paths.worker_environment()
    assert (server["WQLAB_SESSION_IDLE_S"], "WQLAB_SESSION_IDLE_S" in worker) == ("3600", False)
    assert server["WQLAB_DATABASE_URL"].startswith("postgresql+psycopg:///wqlab?host="), "the lab has its own"
    assert "WQLAB_TOKEN" not in server | worker


def test_only_the_server_gets_the_signing_key(paths: LabPaths) -> None:
    assert paths.server_environment()["WQLAB_SIGNING_KEY_FILE"] == str(paths.keys / "signing_ed25519")
    assert "WQLAB_SIGNING_KEY_FILE" not in paths.worker_environment()


def test_added_architecture_is_stored_and_can_be_overridden(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.cache.mkdir(parents=True, exist_ok=True)
    monkeypatch.delenv("WQLAB_ARCHITECTURES", raising=False)
    assert paths.architectures() == ["x86_64"]
    monkeypatch.setenv("WQLAB_ARCHITECTURES", "arm64")
    assert paths.architectures() == ["x86_64", "arm64"]
    monkeypatch.delenv("WQLAB_ARCHITECTURES")
    assert paths.architectures() == ["x86_64"], "the override is not stored"
    paths.add_architecture("arm64")
    paths.add_architecture("arm64")
    assert paths.architectures() == ["x86_64", "arm64"]


def test_missing_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WQLAB_SERVE", "lab.test")
    monkeypatch.setenv("WQLAB_TLS", str(tmp_path))
    (tmp_path / "ca.crt").touch()
    with pytest.raises(LabPathsError, match=r"needs .*server.crt, readable by this user"):
        Serving.from_environment()
