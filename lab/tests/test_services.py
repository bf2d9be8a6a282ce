from __future__ import annotations

import configparser

import pytest

from wqlab_lab.paths import LabPaths
from wqlab_lab.services import STOP_FIRST, services, stores, supervisor_config


def test_celery_programs_stop_first(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    (token := paths.keys / "lava.token").write_text("secret\n")
    monkeypatch.setenv("WQLAB_LAVA_URL", "http://lava.test")
    monkeypatch.setenv("WQLAB_LAVA_TOKEN_FILE", str(token))
    reporting = {service.name for service in services(paths, 1) if service.command[0] == "celery"}
    assert reporting == STOP_FIRST


def test_supervisor_config_escapes_percent_and_spaces(paths: LabPaths) -> None:
    """supervisord expands % and splits on spaces, so both must be escaped in paths."""
    programs = [*stores(paths), *services(paths, capacity=3)]
    config = configparser.RawConfigParser(inline_comment_prefixes=(" ;", "\t;"))
    config.read_string(supervisor_config(paths, programs))
    assert [s.removeprefix("program:") for s in config.sections() if s.startswith("program:")] == [
        p.name for p in programs
    ]
    assert 'WQLAB_DATA_DIR="/checkout with space/50%%"' in config["program:api"]["environment"]
    assert "-c 3" in config["program:devices"]["command"]
    assert config["program:api"]["autorestart"] == "true"
    assert "secret" not in config["program:api"]["environment"]


def test_local_lab_has_no_remote_services(paths: LabPaths) -> None:
    redis = next(service for service in stores(paths) if service.name == "redis")
    assert not any("tls" in word for word in redis.command)
    assert "api-tls" not in [service.name for service in services(paths, 1)]
    assert paths.environment()["WQLAB_BROKER_URL"] == f"redis+socket://{paths.run}/redis.sock"
    assert not {"WQLAB_LAB_BROKER_URL", "WQLAB_LAB_URL", "WQLAB_CA_FILE"} & paths.server_environment().keys()


def test_broker_password_is_on_no_command_line(served: LabPaths) -> None:
    password = served.broker_password()
    environment = served.server_environment()
    assert environment["WQLAB_BROKER_URL"] == f"redis+socket://:{password}@{served.run}/redis.sock"
    assert environment["WQLAB_LAB_BROKER_URL"] == f"rediss://lab.test:{served.port('redis-tls')}/0"
    assert environment["WQLAB_LAB_URL"] == f"https://lab.test:{served.port('api-tls')}"
    programs = [*stores(served), *services(served, 1)]
    assert "api-tls" in [service.name for service in programs]
    assert not any(password in word for service in programs for word in service.command)
    assert (served.run / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_api_for_remote_labs_has_an_https_url_and_no_public_reading(
    served: LabPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WQLAB_PUBLIC_READING", raising=False)
    environments = {service.name: service.environment for service in services(served, 1)}
    assert environments["api-tls"]["WQLAB_PUBLIC_READING"] == "false"
    assert environments["api-tls"]["WQLAB_PUBLIC_URL"] == f"https://lab.test:{served.port('api-tls')}"
    assert environments["api"]["WQLAB_PUBLIC_URL"] == served.url


def test_operator_variables_reach_workers_and_loopback_bypasses_proxies(
    paths: LabPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "WQLAB_PRIVATE_GIT_HOSTS": "git.lab.example,10.1.2.3:8443",
        "WQLAB_BUILD_JOBS": "2",
        "FORWARDED_ALLOW_IPS": "10.1.2.4",
        "SSL_CERT_FILE": "/etc/our-ca.pem",
        "https_proxy": "http://proxy.lab.example:3128",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("no_proxy", "lab.example")
    worker = next(service for service in services(paths, capacity=1) if service.name == "build")
    assert {name: worker.environment[name] for name in given} == given
    assert worker.environment["no_proxy"] == "lab.example,127.0.0.1,localhost"
