"""docker-compose.yml is not exposed by default, and runs the same programs as `make demo`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from wqlab_lab.paths import PREFERRED_PORTS, LabPaths
from wqlab_lab.services import Service, services, stores

from .composefile import FILE, ROOT, MissingVariable, load

DEVICES = 2
DIFFERENT = {
    # The socket of each store is in a separate volume, mounted only by the services that may use the store.
    "postgres": {"/var/lib/wqlab/run": "/run/postgres"},
    # supervisord starts Redis through a link in the state folder; the image has it under /usr/local/bin.
    "redis": {
        "/var/lib/wqlab/run/redis-server": "redis-server",
        "/var/lib/wqlab/run/redis.sock": "/run/redis/redis.sock",
    },
    # A container has its own loopback; the compose file chooses the published address.
    "api": {"127.0.0.1": "0.0.0.0"},
    "bench": {"127.0.0.1": "bench"},
    "coordinator": {
        "wqlab-bench places & exec labgrid-coordinator -l 127.0.0.1:20408": "wqlab-bench places & "
        "exec labgrid-coordinator -l 0.0.0.0:20408"
    },
}
"""Service -> words of its command in `make demo` -> words in a container. All other words are equal."""
LAVA = {"lava": "lava-devices"}
"""Program that `make up` starts for a LAVA lab -> its service. `make up` does not start LAVA itself."""
ONCE = {"database", "schema", "prepare"}
"""Services that do the one-time steps of `make up`, and then end."""
BUILDERS = {"wqlab-server": "database", "wqlab-worker": "prepare", "wqlab-lava": "lava"}
"""Image -> the one service that builds it, which starts before the others that use it."""


@pytest.fixture
def compose() -> dict[str, Any]:
    return load({"WQLAB_SECRETS": "./deploy/secrets"})


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Service]:
    """Return the programs of `make demo` with the folders and ports of a container."""
    monkeypatch.setenv("PATH", "/usr/bin")
    kept = tmp_path / "state"
    (kept / "run").mkdir(parents=True)
    (kept / "keys").mkdir()
    for name, port in PREFERRED_PORTS.items():
        (kept / "run" / f"{name}.port").write_text(str(port))
    (kept / "keys" / "worker.token").write_text("secret")
    (kept / "lava.token").write_text("secret")
    monkeypatch.setenv("WQLAB_LAVA_URL", "http://127.0.0.1:8760")
    monkeypatch.setenv("WQLAB_LAVA_TOKEN_FILE", str(kept / "lava.token"))
    paths = LabPaths(Path("/srv/wqlab"), Path("/var/cache/wqlab"), kept)

    def in_container(text: str) -> str:
        return text.replace(str(kept), "/var/lib/wqlab")

    return {
        LAVA.get(service.name, service.name): Service(
            service.name,
            [in_container(word) for word in service.command],
            {name: in_container(value) for name, value in service.environment.items()},
            Path(in_container(str(service.directory))),
            service.stop_signal,
            service.stop_wait_s,
        )
        for service in [*stores(paths), *services(paths, DEVICES)]
    }


def test_each_demo_program_has_a_service(compose: dict[str, Any], demo: dict[str, Service]) -> None:
    always = {name for name, service in compose["services"].items() if "profiles" not in service}
    assert always == set(demo) - set(LAVA.values()) | ONCE


@pytest.mark.parametrize(
    "name",
    [
        "postgres",
        "redis",
        "api",
        "bench",
        "coordinator",
        "server",
        "outbox",
        "beat",
        "apply",
        "build",
        "lookups",
        "lists",
        "devices",
        "lava-devices",
    ],
)
def test_service_runs_the_command_of_the_demo(name: str, compose: dict[str, Any], demo: dict[str, Service]) -> None:
    service, process = compose["services"][name], demo[name]
    different = DIFFERENT.get(name, {})
    assert set(different) <= set(process.command), "outdated exception"
    assert service["command"] == [different.get(word, word) for word in process.command]
    # The command has a path relative to this directory.
    if str(process.directory) != "/var/lib/wqlab":
        assert service["working_dir"] == str(process.directory)
    assert service.get("stop_signal", "SIGTERM") == f"SIG{process.stop_signal}"
    assert service["stop_grace_period"] == f"{process.stop_wait_s}s"


def test_exporter_writes_its_file_and_the_places_first(compose: dict[str, Any], demo: dict[str, Service]) -> None:
    """`make up` does both before it starts the demo's exporter; the engine starts containers in any order."""
    shell, option, text = compose["services"]["exporter"]["command"]
    assert (shell, option) == ("sh", "-c")
    *first, last = text.split(" && ")
    assert first == ["wqlab-bench exporter", "wqlab-bench places"]
    words = {"127.0.0.1:20408": "coordinator:20408", "127.0.0.1": "exporter"}
    assert last.split() == ["exec", *(words.get(word, word) for word in demo["exporter"].command)]


@pytest.mark.parametrize(
    "name",
    [
        "api",
        "server",
        "outbox",
        "beat",
        "apply",
        "build",
        "lookups",
        "lists",
        "bench",
        "devices",
        "lava-devices",
    ],
)
def test_service_has_the_environment_of_the_demo(name: str, compose: dict[str, Any], demo: dict[str, Service]) -> None:
    image = set(re.findall(r"\b([A-Z_]+)=", (ROOT / "deploy/Dockerfile").read_text()))
    provided = {*image, *compose["services"][name]["environment"]}
    secret = {secret.upper() for secret in compose["services"][name].get("secrets", [])}
    if name == "bench":  # the demo sets the worker's variables for all programs of the lab
        secret.add("WQLAB_WORKER_TOKEN")
    assert set(demo[name].environment) <= provided | secret


def test_each_image_is_built_by_one_service(compose: dict[str, Any]) -> None:
    """Several builds of one image run at the same time and install everything anew."""
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE))
    builds = {name: service["build"] for name, service in compose["services"].items() if "build" in service}
    assert {compose["services"][name]["image"]: name for name in builds} == BUILDERS
    assert {service["image"] for service in compose["services"].values()} == set(BUILDERS)
    for name in ("database", "prepare"):
        assert builds[name]["target"] in stages
        assert builds[name]["args"]["WQLAB_UID"] == compose["services"][name]["user"].split(":")[0]


def test_every_service_has_health_check_and_limits(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if name == "lava":  # its own test below
            continue
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        uid = service["user"].split(":")[0]
        assert uid.isdigit() and int(uid) > 0, name
        if name in ONCE:
            assert service["restart"] == "no", name
            assert "healthcheck" not in service, name
        else:
            assert service["restart"] == "unless-stopped", name
            assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name


def test_lava_is_optional_and_confined(compose: dict[str, Any]) -> None:
    asked_for = {name: service["profiles"] for name, service in compose["services"].items() if "profiles" in service}
    assert asked_for == {"lava": ["lava"], "lava-devices": ["lava"]}
    service = compose["services"]["lava"]
    assert service["build"]["dockerfile"] == "deploy/lava/Dockerfile"
    assert service["cap_drop"] == ["ALL"]
    assert service["cap_add"] == ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"][0] == "CMD-SHELL"


def test_only_builders_may_create_user_namespaces(compose: dict[str, Any]) -> None:
    loosened = {name for name, service in compose["services"].items() if len(service["security_opt"]) > 1}
    assert loosened == {"apply", "build", "lookups", "lists", "prepare"}
    rules = json.loads((ROOT / "deploy/seccomp.json").read_text())["syscalls"]
    assert rules[-1]["names"] == ["clone", "unshare", "mount", "umount2", "pivot_root", "sethostname", "setns"]


def test_services_wait_for_completion_or_health(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for other, wait in service["depends_on"].items():
            condition = "service_completed_successfully" if other in ONCE else "service_healthy"
            assert wait == {"condition": condition}, f"{name} waits for {other}"


def test_volumes_are_named_and_declared(compose: dict[str, Any]) -> None:
    named = set()
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (ROOT / source).is_dir(), f"{name} mounts {source}"
                assert mode == ["ro"], f"{name} may write to {source}"
                continue
            assert target.startswith("/"), name
            named.add(source)
    assert named == set(compose["volumes"])


def test_only_the_server_reaches_the_database(compose: dict[str, Any]) -> None:
    def holders(volume: str) -> set[str]:
        return {
            name
            for name, service in compose["services"].items()
            if any(mount.startswith(f"{volume}:") for mount in service.get("volumes", []))
        }

    assert holders("postgres") == {"database", "postgres"}
    assert holders("postgres-socket") == {"postgres", "schema", "api", "server", "outbox", "beat"}
    for store in ("postgres", "redis"):
        assert compose["services"][store]["network_mode"] == "none"
    assert compose["networks"]["lab"]["internal"], "labgrid and the consoles have no password"
    reachable = {name for name, service in compose["services"].items() if "lab" in service.get("networks", ())}
    assert reachable == {"bench", "coordinator", "exporter", "devices", "lava", "lava-devices"}
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8750:8750"]}, "only the API, and by default only on loopback"


def test_only_a_declared_proxy_may_name_the_client(compose: dict[str, Any]) -> None:
    """Whoever connects from a trusted address can pretend to be any client; without one, a header changes nothing."""
    network = compose["networks"]["default"]["ipam"]["config"][0]
    assert network["gateway"] == "172.31.87.1"
    assert compose["services"]["api"]["environment"]["FORWARDED_ALLOW_IPS"] == ""
    other = load({"WQLAB_SECRETS": "x", "WQLAB_NETWORK": "10.1.2", "WQLAB_PROXY": "10.1.2.1,10.9.9.9"})
    assert other["services"]["api"]["environment"]["FORWARDED_ALLOW_IPS"] == "10.1.2.1,10.9.9.9"
    assert other["networks"]["default"]["ipam"]["config"] == [{"subnet": "10.1.2.0/25", "gateway": "10.1.2.1"}]


def test_no_secret_is_in_the_file(compose: dict[str, Any]) -> None:
    for secret in compose["secrets"].values():
        assert set(secret) == {"file"}
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            assert not re.search(r"PASSWORD(?!_FILE)|TOKEN(?!_FILE)|SECRET(?!S_DIR|_FILE)|KEY(?!_FILE)", variable), (
                f"{name} is provided {variable}"
            )
            assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), f"{name}: {variable} has a password"
    assert not re.search(r"wql_\w{8}", FILE.read_text())


def test_missing_secret_error_names_the_script() -> None:
    with pytest.raises(MissingVariable, match=r"^WQLAB_SECRETS is not set\. Run deploy/secrets\.sh"):
        load({})


def test_docker_context_is_an_allow_list() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[1] == "*", "everything is excluded first"
    assert not {"!deploy", "!deploy/secrets"} & set(lines)
    for line in lines:
        if line.startswith("!"):
            assert list(ROOT.glob(line[1:])), line


def test_dockerfiles_name_no_mirror_and_base_images_by_digest() -> None:
    for file in (ROOT / "deploy").rglob("Dockerfile"):
        text = file.read_text()
        defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
        bases = {defaults.get(base.strip("${}"), base) for base in re.findall(r"^FROM (\S+)", text, re.MULTILINE)}
        stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
        # A tag is whatever its registry says today.
        by_digest = {base for base in bases if re.fullmatch(r"debian:\w+@sha256:[0-9a-f]{64}", base)}
        assert by_digest and bases == by_digest | (bases & stages), file
        assert not re.search(r"https?://", text), file


def test_yaml_merge_keys_are_unambiguous() -> None:
    """Compose and PyYAML merge `<<` in the same way only if no key is given twice."""

    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if key.value != "<<"]
            assert len(keys) == len(set(keys)), f"given twice: {keys}"
            return super().construct_mapping(node, deep)

    yaml.load(FILE.read_text(), Strict)
