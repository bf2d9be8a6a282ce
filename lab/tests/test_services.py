from __future__ import annotations

import configparser

import pytest

from wqlab_lab.paths import LabPaths, LabPathsError
from wqlab_lab.services import STOP_FIRST, services, stores, supervisor_config


def set_kernelci(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Configure KernelCI's jobs; return the variables."""
    for name in ("token", "jobs.yaml"):
        (paths.keys / f"kernelci.{name}").write_text("secret\n")
    given = {
        "WQLAB_KERNELCI_URL": "https://api.kernelci.org/latest",
        "WQLAB_KERNELCI_RUNTIME": "pull-labs-wqlab",
        "WQLAB_KERNELCI_TOKEN_FILE": str(paths.keys / "kernelci.token"),
        "WQLAB_KERNELCI_JOBS_FILE": str(paths.keys / "kernelci.jobs.yaml"),
        "WQLAB_KERNELCI_POLL_S": "30",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return given


def test_kernelci_is_polled_by_a_supervised_process_if_it_is_configured(
    paths: LabPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WQLAB_KERNELCI_URL", raising=False)
    assert "kernelci" not in {service.name for service in services(paths, 1)}
    given = set_kernelci(paths, monkeypatch)
    found = {service.name: service for service in services(paths, 1)}
    poller = found["kernelci"]
    assert poller.command[:3] == ["wqlab-server", "kernelci", "poll"]
    assert poller.environment.items() >= given.items()
    assert "WQLAB_DATABASE_URL" in poller.environment
    assert not given.keys() & found["build"].environment.keys(), "workers do not see where the token is"
    config = configparser.RawConfigParser(inline_comment_prefixes=(" ;", "\t;"))
    config.read_string(supervisor_config(paths, [*found.values()]))
    section = config["program:kernelci"]
    assert section["command"].startswith("wqlab-server kernelci poll --touch ")
    assert section["autorestart"] == "true"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("WQLAB_KERNELCI_RUNTIME", "", "set WQLAB_KERNELCI_RUNTIME too"),
        ("WQLAB_KERNELCI_TOKEN_FILE", "/nowhere/token", "WQLAB_KERNELCI_TOKEN_FILE=/nowhere/token cannot be read"),
        ("WQLAB_KERNELCI_JOBS_FILE", "", "set WQLAB_KERNELCI_JOBS_FILE too"),
    ],
)
def test_incomplete_settings_of_kernelci_are_named(
    paths: LabPaths, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    set_kernelci(paths, monkeypatch)
    monkeypatch.setenv(name, value)
    with pytest.raises(LabPathsError, match=says):
        services(paths, 1)


def test_celery_programs_stop_first(paths: LabPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    (token := paths.keys / "lava.token").write_text("secret\n")
    monkeypatch.setenv("WQLAB_LAVA_URL", "http://lava.test")
    monkeypatch.setenv("WQLAB_LAVA_TOKEN_FILE", str(token))
    set_kernelci(paths, monkeypatch)
    reporting = {service.name for service in services(paths, 1) if service.command[0] == "celery"}
    assert reporting | {"kernelci"} == STOP_FIRST


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
        "WQLAB_LEASE_S": "30",
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
