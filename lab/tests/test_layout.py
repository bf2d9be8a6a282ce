from __future__ import annotations

import configparser
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_lab.paths import Layout, LayoutError, Serving, free_port
from wqlab_lab.services import END_FIRST, services, stores, supervisor_config


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(Path("/checkout with space/50%"), tmp_path / "cache", tmp_path / "state")
    layout.create()
    layout.golden.write_text('{"kernel": "/k", "rootfs": "/r", "key": "x"}')
    (layout.keys / "worker.token").write_text("secret\n")
    return layout


def test_environment_must_name_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_CACHE", raising=False)
    with pytest.raises(LayoutError, match="WQLAB_CACHE is not set"):
        Layout.from_environment()


def test_celerys_processes_end_before_what_they_talk_to(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    (token := layout.keys / "lava.token").write_text("secret\n")
    monkeypatch.setenv("WQLAB_LAVA_URL", "http://lava.test")
    monkeypatch.setenv("WQLAB_LAVA_TOKEN_FILE", str(token))
    assert {service.name for service in services(layout, 1) if service.command[0] == "celery"} == END_FIRST


def test_a_path_too_long_for_a_socket_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WQLAB_CACHE", str(tmp_path))
    monkeypatch.setenv("WQLAB_STATE", str(tmp_path / ("x" * 100)))
    with pytest.raises(LayoutError, match="WQLAB_STATE is too long"):
        Layout.from_environment()


def test_a_port_is_kept_and_a_taken_one_is_avoided(layout: Layout) -> None:
    assert layout.port("api") == layout.port("api")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert free_port(taken.getsockname()[1]) != taken.getsockname()[1]


def test_supervisor_reads_back_what_was_meant(layout: Layout) -> None:
    """supervisord expands % and splits on spaces: a folder with either must survive."""
    programs = [*stores(layout), *services(layout, capacity=3)]
    config = configparser.RawConfigParser(inline_comment_prefixes=(" ;", "\t;"))
    config.read_string(supervisor_config(layout, programs))
    assert [s.removeprefix("program:") for s in config.sections() if s.startswith("program:")] == [
        p.name for p in programs
    ]
    assert 'WQLAB_DATA_DIR="/checkout with space/50%%"' in config["program:api"]["environment"]
    assert "-c 3" in config["program:devices"]["command"]
    assert "secret" not in config["program:api"]["environment"]


def test_the_lab_on_this_machine_is_read_without_signing_in_unless_told_otherwise(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WQLAB_PUBLIC_READING", raising=False)
    assert layout.server_environment()["WQLAB_PUBLIC_READING"] == "true"
    monkeypatch.setenv("WQLAB_PUBLIC_READING", "false")
    assert layout.server_environment()["WQLAB_PUBLIC_READING"] == "false"
    assert "WQLAB_PUBLIC_READING" not in layout.worker_environment()


def test_what_the_operator_sets_reaches_the_workers_and_no_proxy_comes_between_the_labs_parts(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "WQLAB_PRIVATE_GIT_HOSTS": "git.lab.example,10.1.2.3:8443",
        "WQLAB_LEASE_S": "30",
        "SSL_CERT_FILE": "/etc/our-ca.pem",
        "https_proxy": "http://proxy.lab.example:3128",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("no_proxy", "lab.example")
    worker = next(service for service in services(layout, capacity=1) if service.name == "build")
    assert {name: worker.environment[name] for name in given} == given
    assert worker.environment["no_proxy"] == "lab.example,127.0.0.1,localhost"


def test_a_second_architecture_is_remembered_and_can_be_asked_for_once(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.cache.mkdir(parents=True, exist_ok=True)
    monkeypatch.delenv("WQLAB_ARCHITECTURES", raising=False)
    assert layout.architectures() == ["x86_64"]
    monkeypatch.setenv("WQLAB_ARCHITECTURES", "arm64")
    assert layout.architectures() == ["x86_64", "arm64"]
    monkeypatch.delenv("WQLAB_ARCHITECTURES")
    assert layout.architectures() == ["x86_64"], "nothing was noted"
    layout.add_architecture("arm64")
    layout.add_architecture("arm64")
    assert layout.architectures() == ["x86_64", "arm64"]


# --- labs elsewhere -------------------------------------------------------------------------------------------------


@pytest.fixture
def served(layout: Layout, tmp_path: Path) -> Layout:
    return replace(layout, serving=Serving("lab.test", tmp_path / "tls"))


def test_a_lab_that_serves_no_others_listens_as_ever(layout: Layout) -> None:
    redis = next(service for service in stores(layout) if service.name == "redis")
    assert not any("tls" in word for word in redis.command)
    assert "api-tls" not in [service.name for service in services(layout, 1)]
    assert layout.environment()["WQLAB_BROKER_URL"] == f"redis+socket://{layout.run}/redis.sock"
    assert not {"WQLAB_LAB_BROKER_URL", "WQLAB_LAB_URL", "WQLAB_CA_FILE"} & layout.server_environment().keys()


def test_a_lab_that_serves_others_has_a_password_that_no_command_line_shows(served: Layout) -> None:
    password = served.broker_password()
    environment = served.server_environment()
    assert environment["WQLAB_BROKER_URL"] == f"redis+socket://:{password}@{served.run}/redis.sock"
    assert environment["WQLAB_LAB_BROKER_URL"] == f"rediss://lab.test:{served.port('redis-tls')}/0"
    assert environment["WQLAB_LAB_URL"] == f"https://lab.test:{served.port('api-tls')}"
    programs = [*stores(served), *services(served, 1)]
    assert "api-tls" in [service.name for service in programs]
    assert not any(password in word for service in programs for word in service.command)
    assert (served.run / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_a_missing_certificate_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WQLAB_SERVE", "lab.test")
    monkeypatch.setenv("WQLAB_TLS", str(tmp_path))
    (tmp_path / "ca.crt").touch()
    with pytest.raises(LayoutError, match=r"needs .*server.crt, readable by this user"):
        Serving.from_environment()
