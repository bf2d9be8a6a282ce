"""Files, ports and environment variables of one lab."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from . import documentation, web

LAB = "local"
LAVA_LAB = "lava"
"""Lab of the units in device-types/ that are devices of the LAVA server at WQLAB_LAVA_URL."""
ADMIN = "admin"
"""Name of the administrator that a new lab has."""
PREFERRED_PORTS = {"api": 8750, "coordinator": 20408, "api-tls": 8443, "redis-tls": 6380}
SHARED_VARIABLES = (
    *("WQLAB_LOCAL_GIT_PATHS", "WQLAB_PRIVATE_GIT_HOSTS", "WQLAB_SANDBOX_WATCHED", "WQLAB_QEMU_TREE"),
    *("WQLAB_BUILD_JOBS", "WQLAB_CACHE_BYTES", "WQLAB_CACHE_KEEP_DAYS", "WQLAB_CACHE_RESERVE_BYTES"),
    *("FORWARDED_ALLOW_IPS", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy"),
)
"""Environment variables of `make up` that all processes of the lab get; those of the server get each WQLAB_ one too."""
OTHER_VARIABLES = ("WQLAB_URL", "WQLAB_TOKEN", "WQLAB_LAVA_URL", "WQLAB_LAVA_TOKEN_FILE")
"""Environment variables of the command `wqlab` and of the worker of LAVA's devices, which the server does not get."""
LAVA_SETTINGS = ("WQLAB_LAVA_LISTEN", "WQLAB_LAVA_WORKER_HOST")
LOOPBACK = "127.0.0.1,localhost"
LONGEST_SOCKET_PATH = 107
"""Bytes of sun_path in unix(7), without its terminating zero."""


class LabPathsError(Exception):
    """A folder or environment variable is unusable; the text names it and the fix."""


@dataclass(frozen=True)
class Serving:
    """Access for labs on other machines: HTTPS for the API and TLS for the broker, in addition to local access."""

    host: str
    """Name or address of this machine, for which the certificate is valid."""
    tls: Path
    """Folder with ca.crt, server.crt and server.key."""

    @classmethod
    def from_environment(cls) -> Serving | None:
        """Read WQLAB_SERVE and WQLAB_TLS; None if not set. Raises LabPathsError if a certificate file is missing."""
        host = os.environ.get("WQLAB_SERVE")
        if not host:
            return None
        serving = cls(host, Path(os.environ.get("WQLAB_TLS") or "/etc/wqlab/tls").absolute())
        for name in ("ca.crt", "server.crt", "server.key"):
            if not os.access(serving.tls / name, os.R_OK):
                raise LabPathsError(
                    f"WQLAB_SERVE={host} needs {serving.tls / name}, readable by this user: see docs/labs.md"
                )
        return serving


@dataclass(frozen=True)
class LabPaths:
    """Folders of one lab, with the ports, tokens and environment variables stored in them."""

    data: Path
    """Folder of the operator's files: device-types/, kernels/, testplans/, intake/."""
    cache: Path
    """Folder of builds and images, which several labs may share."""
    state: Path
    """Folder of this lab's data."""
    serving: Serving | None = None

    @classmethod
    def from_environment(cls) -> LabPaths:
        """Read WQLAB_CACHE, WQLAB_STATE and WQLAB_DATA_DIR. Raises LabPathsError if one is missing or unusable."""
        folders = {}
        for name in ("WQLAB_CACHE", "WQLAB_STATE"):
            if not os.environ.get(name):
                raise LabPathsError(f"{name} is not set: start the lab with `make up` or `make demo`")
            folders[name] = Path(os.environ[name]).absolute()
        data = Path(os.environ.get("WQLAB_DATA_DIR") or Path(__file__).resolve().parents[2]).absolute()
        if not (data / "device-types").is_dir():
            raise LabPathsError(f"WQLAB_DATA_DIR={data} has no folder device-types")
        paths = cls(data, folders["WQLAB_CACHE"], folders["WQLAB_STATE"], Serving.from_environment())
        longest = str(paths.run / ".s.PGSQL.5432.lock")
        if len(longest) > LONGEST_SOCKET_PATH:
            raise LabPathsError(f"WQLAB_STATE is too long for a unix socket ({longest}): choose a shorter path")
        return paths

    def named(self, name: str) -> LabPaths:
        """Return the folders of another lab of this machine, whose state folder is beside this one's."""
        return replace(self, state=self.state.with_name(f"{self.state.name}-{name}"), serving=None)

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def log(self) -> Path:
        return self.state / "log"

    @property
    def keys(self) -> Path:
        return self.state / "keys"

    @property
    def signing_key(self) -> Path:
        """Private key that signs bundles; the name of its public key ends with `.pub`."""
        return self.keys / "signing_ed25519"

    @property
    def bench(self) -> Path:
        return self.state / "bench" / "bench.json"

    @property
    def rehearsal(self) -> Path:
        """Folder of rehearsal machines."""
        return self.state / "rehearsal"

    @property
    def rehearsal_programs(self) -> Path:
        """File with the daemons of rehearsal machines, written by `rehearse`; missing in any other lab."""
        return self.rehearsal / "programs.json"

    @property
    def addresses(self) -> Path:
        """File with the addresses of hardware, for device types and for labgrid's exporter; optional."""
        return self.data / "device-types" / "addresses.env"

    @property
    def exporter_files(self) -> Path:
        """Folder of the operator's files for labgrid's exporter, which includes each `*.yaml` in it."""
        return self.state / "labgrid" / "exporter.yaml.d"

    @property
    def golden(self) -> Path:
        """File with kernel and root filesystem of each architecture's golden system, written by `prepare`."""
        return self.state / "golden.json"

    @property
    def golden_tree(self) -> str:
        """Return the tree of the golden kernel, which kernels/trees.yaml names."""
        trees = yaml.safe_load((self.data / "kernels" / "trees.yaml").read_text())
        return str(trees.get("golden") or trees["default"])

    def architectures(self) -> list[str]:
        """Return the architectures of the emulated devices.

        `make arm64` adds one, because it costs a kernel build. The list is stored in the cache, as that kernel is;
        `WQLAB_ARCHITECTURES` overrides it for one lab.
        """
        added = os.environ.get("WQLAB_ARCHITECTURES")
        if added is None:
            file = self.cache / "architectures"
            added = file.read_text() if file.exists() else ""
        return ["x86_64", *added.split()]

    def add_architecture(self, arch: str) -> None:
        if arch not in self.architectures():
            with (self.cache / "architectures").open("a") as file:
                file.write(f"{arch}\n")

    def write_pins(self) -> None:
        """Name the files of the cache that this lab needs, so that retention keeps them: golden systems and pages."""
        golden = json.loads(self.golden.read_text()) if self.golden.exists() else {}
        files = [system[name] for system in golden.values() for name in ("kernel", "rootfs")]
        paths = [*files, web.pages(self.cache), documentation.site(self.cache)]
        paths.append(self.cache / "mirrors" / f"{self.golden_tree}.git")
        self._pins.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._pins.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"state": str(self.state), "paths": [str(path) for path in paths]}))
        fresh.replace(self._pins)

    def remove_pins(self) -> None:
        self._pins.unlink(missing_ok=True)

    @property
    def _pins(self) -> Path:
        digest = hashlib.sha256(str(self.state).encode()).hexdigest()[:16]
        return self.cache / "pins" / f"{digest}.json"

    def create(self) -> None:
        for folder in ("postgres", "redis", "run", "log", "artifacts", "bench", "labgrid", "keys"):
            (self.state / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.cache.mkdir(parents=True, exist_ok=True)

    def port(self, service: str) -> int:
        """Return the service's loopback port, chosen at the first call and stored in the state folder."""
        file = self.run / f"{service}.port"
        if not file.exists():
            file.write_text(str(free_port(PREFERRED_PORTS[service])))
        return int(file.read_text())

    def forget_ports(self) -> None:
        """Forget the local ports, so that the next start chooses others."""
        for service in ("api", "coordinator"):  # remote labs are configured with the other ports
            self.forget_port(service)

    def forget_port(self, service: str) -> None:
        """Forget one port, so that the next use chooses another."""
        (self.run / f"{service}.port").unlink(missing_ok=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port('api')}"

    def token(self, name: str) -> str:
        return (self.keys / f"{name}.token").read_text().strip()

    def daemon_environment(self) -> dict[str, str]:
        """Return the environment of supervisord and of programs that are not wqlab's: no secrets, no settings."""
        stand_ins = self.rehearsal / "bin"
        return {
            "no_proxy": _no_proxy(),
            "HOME": os.environ.get("HOME", "/"),
            "PATH": f"{stand_ins}:{os.environ['PATH']}" if stand_ins.is_dir() else os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "WQLAB_CACHE": str(self.cache),
            "WQLAB_STATE": str(self.state),
            "WQLAB_DATA_DIR": str(self.data),
        }

    def environment(self) -> dict[str, str]:
        """Return what the environments of wqlab's own processes have in common."""
        passed = {name: os.environ[name] for name in SHARED_VARIABLES if os.environ.get(name)}
        return {
            **passed,
            **self.daemon_environment(),
            "WQLAB_BROKER_URL": f"redis+socket://{self._broker_user()}{self.run}/redis.sock",
        }

    def broker_password(self) -> str:
        """Return the server's broker password, created on first use; needed when remote labs can reach the broker."""
        path = self.keys / "redis.password"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24))
        return path.read_text()

    def _broker_user(self) -> str:
        return f":{self.broker_password()}@" if self.serving else ""

    def _default_public_reading(self) -> str:
        """Return "true" if only this machine reaches the API; an operator who opens it to others decides."""
        host = urlsplit(os.environ.get("WQLAB_PUBLIC_URL") or self.url).hostname
        return "true" if self.serving is None and host in LOOPBACK.split(",") else "false"

    def remote_server_environment(self) -> dict[str, str]:
        """Return the environment of the API that remote labs and their users reach by HTTPS."""
        environment = self.server_environment()
        return {**environment, "WQLAB_PUBLIC_URL": os.environ.get("WQLAB_PUBLIC_URL") or environment["WQLAB_LAB_URL"]}

    def server_environment(self) -> dict[str, str]:
        served = self.serving
        settings = {name: value for name, value in os.environ.items() if name.startswith("WQLAB_") and value}
        for name in OTHER_VARIABLES:
            settings.pop(name, None)
        return {
            **settings,
            **self.environment(),
            **(
                {
                    "WQLAB_LAB_URL": f"https://{served.host}:{self.port('api-tls')}",
                    "WQLAB_LAB_BROKER_URL": f"rediss://{served.host}:{self.port('redis-tls')}/0",
                    "WQLAB_CA_FILE": str(served.tls / "ca.crt"),
                }
                if served
                else {}
            ),
            "WQLAB_DATABASE_URL": f"postgresql+psycopg:///wqlab?host={self.run}",
            "WQLAB_ARTIFACT_DIR": str(self.state / "artifacts"),
            "WQLAB_PUBLIC_URL": os.environ.get("WQLAB_PUBLIC_URL") or self.url,
            "WQLAB_SIGNING_KEY_FILE": str(self.signing_key),
            "WQLAB_PUBLIC_READING": os.environ.get("WQLAB_PUBLIC_READING") or self._default_public_reading(),
            "WQLAB_WEB_DIR": str(web.pages(self.cache)),
            "WQLAB_DOCS_DIR": str(documentation.site(self.cache)),
        }

    def worker_environment(self) -> dict[str, str]:
        return {
            **self.environment(),
            "WQLAB_SERVER_URL": self.url,
            "WQLAB_WORKER_TOKEN": self.token("worker"),
            "WQLAB_LAB": LAB,
            "LG_COORDINATOR": f"127.0.0.1:{self.port('coordinator')}",
        }

    def lava_environment(self) -> dict[str, str]:
        """Return the additional environment of a LAVA lab's worker; empty if there is no LAVA lab.

        Raises LabPathsError if WQLAB_LAVA_TOKEN_FILE is missing or unreadable.
        """
        if not os.environ.get("WQLAB_LAVA_URL"):
            return {}
        token = os.environ.get("WQLAB_LAVA_TOKEN_FILE", "")
        try:
            secret = Path(token).read_text().strip() if token else ""
        except OSError as error:
            raise LabPathsError(f"WQLAB_LAVA_TOKEN_FILE={token} cannot be read: {error.strerror}") from error
        if not secret:
            raise LabPathsError(
                "WQLAB_LAVA_URL is set: WQLAB_LAVA_TOKEN_FILE must name a file with a LAVA user's token"
            )
        passed = {name: value for name in LAVA_SETTINGS if (value := os.environ.get(name))}
        return {"WQLAB_LAVA_URL": os.environ["WQLAB_LAVA_URL"], "WQLAB_LAVA_TOKEN": secret, **passed}

    def user_environment(self) -> dict[str, str]:
        """Return the environment of the `wqlab` command."""
        return {**os.environ, "no_proxy": _no_proxy(), "WQLAB_URL": self.url, "WQLAB_TOKEN": self.token(ADMIN)}


def _no_proxy() -> str:
    """Exempt loopback, on which the lab's programs communicate, from proxies."""
    return ",".join(filter(None, (os.environ.get("no_proxy"), LOOPBACK)))


def free_port(preferred: int) -> int:
    """Return `preferred` if no program listens there, else a port that the kernel chooses."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LabPathsError("no free TCP port on 127.0.0.1")
