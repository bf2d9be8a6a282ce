"""Run the services of docker-compose.yml without a container engine.

`buildah run --isolation=chroot` runs them with the volumes, user, environment and secrets of the file, on the caller's
network. A process in a chroot cannot create user namespaces, so a service that builds kernels in bubblewrap is itself
started by bubblewrap, from the same image, with a read-only root and the file's seccomp profile.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .composefile import ROOT

_RELEASES = {"12": "bookworm"}
_FROM = re.compile(r"^FROM debian:(\S+)", re.MULTILINE)
HOST_NETWORK = 9
"""File descriptor of the network namespace in which images are built (lab/test-images.sh opens it)."""
HEALTHY_S = 180.0
_HOST_NETWORK = ["nsenter", f"--net=/proc/self/fd/{HOST_NETWORK}", "--"]
_CA = Path("/etc/ssl/certs/ca-certificates.crt")


class ContainerError(AssertionError):
    """A command of a service failed; the text has its output."""


def compiled_filter(profile: bytes) -> bytes:
    """Compile a seccomp profile for bubblewrap's --seccomp."""
    command = ["/usr/bin/python3", str(Path(__file__).with_name("seccompfilter.py"))]
    return subprocess.run(command, input=profile, stdout=subprocess.PIPE, check=True).stdout


def _on_host_network(command: Sequence[str]) -> str:
    result = subprocess.run(
        [*_HOST_NETWORK, *command],
        pass_fds=[HOST_NETWORK],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        raise ContainerError(f"{' '.join(command)} failed:\n{result.stdout[-6000:]}")
    return result.stdout


class Containers:
    """Containers of the services. `store` keeps images between test runs; `folder` is temporary."""

    def __init__(self, compose: dict[str, Any], store: Path, folder: Path, uid: int, cache: Path) -> None:
        self.services: dict[str, dict[str, Any]] = compose["services"]
        self._secrets = {name: Path(secret["file"]) for name, secret in compose["secrets"].items()}
        self._folder, self._uid, self._cache = folder, uid, cache
        self._buildah = [
            "buildah", "--storage-driver", "overlay", "--root", str(store), "--runroot", str(folder / "buildah"),
        ]  # fmt: skip
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()
        self._healthy: set[str] = set()
        self._began = time.monotonic()

    # --- images -----------------------------------------------------------------------------------------------

    def build(self) -> list[str]:
        """Build every image that a service names; return their names."""
        self._output("rm", "--all")  # containers of a killed test
        images = {service["image"]: service["build"] for service in self.services.values()}
        # The stage from which the others copy gets a tag too, because untagged images are removed at the end.
        [compiled] = [build for image, build in images.items() if image == "wqlab-server"]
        for image, build in {"wqlab-build": compiled | {"target": "build"}, **images}.items():
            for base in set(_FROM.findall((ROOT / build["dockerfile"]).read_text())):
                self._make_base(base)
            arguments = [f"--build-arg={name}={value}" for name, value in build.get("args", {}).items()]
            if "target" in build:
                arguments.append(f"--target={build['target']}")
            _on_host_network(
                [
                    *self._buildah, "bud", "--isolation=chroot", "--layers", "--pull-never", *arguments,
                    f"--tag={image}", f"--file={ROOT / build['dockerfile']}", str(ROOT),
                ]
            )  # fmt: skip
        return list(images)

    def _make_base(self, suite: str) -> None:
        """Build the Debian base image from packages, under the name that the Dockerfiles use."""
        image = f"docker.io/library/debian:{suite}"
        if image in _on_host_network([*self._buildah, "images", "--format", "{{.Name}}:{{.Tag}}"]).split():
            return
        archive = self._folder / "debian.tar"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates"]
        # The mirror may be a snapshot with expired metadata.
        command += ['--aptopt=Acquire::Check-Valid-Until "false"']
        # Images need the certificate authorities of this machine, through which it may reach a registry.
        command += [f"--customize-hook=copy-in {_CA} {_CA.parent}"]
        _on_host_network([*command, _RELEASES.get(suite, suite), str(archive), *_apt_sources(suite)])
        made = self._output("from", "scratch").strip()
        self._output("add", "--quiet", made, str(archive), "/")
        self._output("commit", "--quiet", "--rm", made, image)
        archive.unlink()

    # --- services ---------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a service, after its dependencies are healthy or have succeeded."""
        if name in self._running or name in self._ended:
            return
        if not self._running and not self._ended:
            self._began = time.monotonic()
        service = self.services[name]
        namespace = str(service.get("network_mode", "")).removeprefix("service:")
        if namespace in self.services:
            self.start(namespace)
        for other, wait in service["depends_on"].items():
            self.start(other)
            if wait["condition"] == "service_healthy":
                self.await_health(other)
        self._output(
            "from", "--pull-never", f"--name={name}", "--cap-drop=ALL", "--add-host=api:127.0.0.1",
            *(f"--cap-add=CAP_{capability}" for capability in service.get("cap_add", [])), service["image"],
        )  # fmt: skip
        if service["restart"] == "no":
            self.execute(name, service["command"])
            self._ended.add(name)
            print(f"{time.monotonic() - self._began:6.1f} s  {name} has succeeded")
        else:
            with self._log(name).open("wb") as log:
                self._running[name] = subprocess.Popen(
                    **self._prepared(name, service["command"]), stdout=log, stderr=subprocess.STDOUT
                )

    def execute(self, name: str, command: Sequence[str]) -> str:
        """Run a command in a service's container, as `docker compose exec` does; return its output."""
        prepared = self._prepared(name, command)
        result = subprocess.run(**prepared, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ContainerError(f"{name}: {' '.join(command)} failed:\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
        return str(result.stdout)

    def await_health(self, name: str) -> None:
        kind, *words = self.services[name]["healthcheck"]["test"]
        check = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        deadline = time.monotonic() + HEALTHY_S
        while True:
            self.check_runs(name)
            try:
                self.execute(name, check)
            except ContainerError as error:
                if time.monotonic() > deadline:
                    raise ContainerError(f"{error}\n{self.log_tail(name)}") from error
                time.sleep(0.5)
            else:
                if name not in self._healthy:
                    print(f"{time.monotonic() - self._began:6.1f} s  {name} is healthy")
                self._healthy.add(name)
                return

    def check_runs(self, name: str) -> None:
        status = self._running[name].poll()
        if status is not None:
            raise ContainerError(f"{name} ended with status {status}:\n{self.log_tail(name)}")

    def secret(self, name: str) -> str:
        return self._secrets[name].read_text().strip()

    def log_tail(self, name: str) -> str:
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-30:])

    def stop(self) -> None:
        """Stop the services; orphaned processes end with the test's process namespace."""
        for process in reversed(self._running.values()):
            process.terminate()
        for process in self._running.values():
            with _killing_after(process, 20):
                process.wait(20)
        self._output("rm", "--all")
        self._output("rmi", "--prune")

    def written(self, name: str) -> set[str]:
        """Return the files that the container wrote outside its image, volumes and mount points."""
        root = self._output("mount", name).strip()
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        [options] = [line.split(" - ")[1] for line in lines if line.split()[4] == root]
        upper = Path(options.split("upperdir=")[1].split(",")[0])
        found = {str(path.relative_to(upper)) for path in upper.rglob("*") if path.is_file() and path.stat().st_size}
        return found - {"etc/hosts", "etc/resolv.conf", "run/.containerenv"}

    # --- how a command is run -----------------------------------------------------------------------------------

    def _prepared(self, name: str, command: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of Popen for a command in a service's container."""
        service = self.services[name]
        environment = {key: str(value) for key, value in service.get("environment", {}).items()}
        mounts = list(self._mounts(name))
        if any(option.startswith("seccomp=") for option in service["security_opt"]):
            prepared = self._in_bubblewrap(name, command, environment, mounts)
            if (
                service["restart"] == "no" and "network_mode" not in service
            ):  # it downloads files and needs no other service
                return prepared | {"args": [*_HOST_NETWORK, *prepared["args"]], "pass_fds": [HOST_NETWORK]}
            return prepared
        words = [*self._buildah, "run", "--isolation=chroot", "--network=host", f"--hostname={name}"]
        words += [f"--user={service['user']}", *(f"--env={key}={value}" for key, value in environment.items())]
        words += [f"--volume={source}:{target}{':ro' if fixed else ''}" for source, target, fixed in mounts]
        if "working_dir" in service:
            words.append(f"--workingdir={service['working_dir']}")
        return {"args": [*words, name, "--", *command]}

    def _in_bubblewrap(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], mounts: list[tuple[Path, str, bool]]
    ) -> dict[str, Any]:
        service = self.services[name]
        root = Path(self._output("mount", name).strip())
        [profile] = [word for word in service["security_opt"] if word.startswith("seccomp=")]
        filter_file = self._folder / f"{name}.bpf"
        filter_file.write_bytes(compiled_filter((ROOT / profile.removeprefix("seccomp=")).read_bytes()))
        config = json.loads(self._output("inspect", name))["OCIv1"]["config"]
        words = ["bwrap", "--ro-bind", str(root), "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
        names = self._folder / "hosts"
        names.write_text("127.0.0.1 localhost api\n")
        names.chmod(0o644)
        mounts += [(names, "/etc/hosts", True), (Path("/etc/resolv.conf"), "/etc/resolv.conf", True)]
        for source, target, fixed in mounts:
            mount_point = root / target.lstrip("/")
            if source.is_dir():
                mount_point.mkdir(parents=True, exist_ok=True)
            else:
                mount_point.parent.mkdir(parents=True, exist_ok=True)
                mount_point.touch()
            words += ["--ro-bind" if fixed else "--bind", str(source), target]
        variables = {**dict(variable.split("=", 1) for variable in config["Env"]), **environment}
        words += ["--clearenv", *(word for item in variables.items() for word in ("--setenv", *item))]
        words += ["--unshare-uts", "--hostname", name, "--chdir", service.get("working_dir", config["WorkingDir"])]
        uid, gid = service["user"].split(":")
        words += ["--seccomp", "0", "--", "setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        words += ["--bounding-set=-all", "--inh-caps=-all", "--", *command]
        return {"args": words, "stdin": filter_file.open("rb")}

    def _mounts(self, name: str) -> Iterator[tuple[Path, str, bool]]:
        """Yield for each mount the path here, the path in the container, and whether it is read-only."""
        service = self.services[name]
        for volume in service.get("volumes", []):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                yield ROOT / source, target, mode == ["ro"]
            elif source == "cache":
                yield self._cache, target, False
            else:
                yield self._owned("volumes", source), target, False
        for memory in service["tmpfs"]:
            target = memory.split(":")[0]
            yield self._owned("tmpfs", name + target.replace("/", "-")), target, False
        for secret in service.get("secrets", []):
            yield self._secrets[secret], f"/run/secrets/{secret}", True

    def _owned(self, kind: str, name: str) -> Path:
        folder = self._folder / kind / name
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(0o700)
            os.chown(folder, self._uid, self._uid)
        return folder

    def _log(self, name: str) -> Path:
        (self._folder / "log").mkdir(exist_ok=True)
        return self._folder / "log" / f"{name}.log"

    def _output(self, *arguments: str) -> str:
        result = subprocess.run([*self._buildah, *arguments], capture_output=True, text=True, check=False)
        if result.returncode:
            raise ContainerError(f"buildah {' '.join(arguments)} failed:\n{result.stdout}{result.stderr}")
        return result.stdout


def _apt_sources(suite: str) -> list[str]:
    """Return mmdebstrap's sources: this machine's for its own release, else a line with its main mirror."""
    if suite in _RELEASES:
        given = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("debian.*"))]
        return [str(path) for path in given if path.exists() and path.read_text().strip()]
    sites = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    [site, *_] = [site for site in sites if "security" not in site and "snapshot" not in site]
    return [f"deb {site} {suite} main"]


@contextmanager
def _killing_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    try:
        yield
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(seconds)


def copy_of_secrets_script(folder: Path) -> Path:
    """Copy deploy/secrets.sh, which writes beside itself, so that the checkout stays unchanged."""
    script = folder / "deploy" / "secrets.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "deploy/secrets.sh", script)
    return script
