"""Where one lab keeps its files, and the environment its processes get."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from . import web

LAB = "local"
LAVA_LAB = "lava"
"""To which units of the device-types folder belong that are devices of the LAVA server in WQLAB_LAVA_URL."""
ADMIN = "admin"
"""The user that a new lab has."""
DEFAULT_TREE = "linux-6.12"
PREFERRED_PORTS = {"api": 8750, "coordinator": 20408, "api-tls": 8443, "redis-tls": 6380}
PASSED_ON = (
    *("WQLAB_LOCAL_GIT_PATHS", "WQLAB_PRIVATE_GIT_HOSTS", "WQLAB_LEASE_S"),
    *("WQLAB_ARTIFACT_URL", "WQLAB_ARTIFACT_OPTIONS"),
    *("SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy"),
)
"""What an operator sets in the environment of `make up` and the lab's processes read in theirs."""
LAVA_SETTINGS = ("WQLAB_LAVA_LISTEN", "WQLAB_LAVA_WORKER_HOST")
LOOPBACK = "127.0.0.1,localhost"
LONGEST_SOCKET_PATH = 107
"""sun_path of unix(7), less its terminating zero."""


class LayoutError(Exception):
    """A folder or variable that the lab cannot work with; the text names it and the fix."""


@dataclass(frozen=True)
class Serving:
    """How labs elsewhere reach this one: HTTPS for the API and TLS for the broker, beside what is local."""

    host: str
    """Name or address that they use; the certificate is for it."""
    tls: Path
    """Folder with ca.crt, server.crt and server.key."""

    @classmethod
    def from_environment(cls) -> Serving | None:
        """Raises LayoutError for a folder without one of the files."""
        host = os.environ.get("WQLAB_SERVE")
        if not host:
            return None
        found = cls(host, Path(os.environ.get("WQLAB_TLS") or "/etc/wqlab/tls").absolute())
        for name in ("ca.crt", "server.crt", "server.key"):
            if not os.access(found.tls / name, os.R_OK):
                raise LayoutError(f"WQLAB_SERVE={host} needs {found.tls / name}, readable by this user: docs/labs.md")
        return found


@dataclass(frozen=True)
class Layout:
    data: Path
    """The folder with what an operator edits: device-types/, kernels/, testplans/."""
    cache: Path
    state: Path
    serving: Serving | None = None

    @classmethod
    def from_environment(cls) -> Layout:
        folders = {}
        for name in ("WQLAB_CACHE", "WQLAB_STATE"):
            if not os.environ.get(name):
                raise LayoutError(f"{name} is not set: start the lab by `make up` or `make demo`")
            folders[name] = Path(os.environ[name]).absolute()
        data = Path(os.environ.get("WQLAB_DATA_DIR") or Path(__file__).resolve().parents[2]).absolute()
        if not (data / "device-types").is_dir():
            raise LayoutError(f"WQLAB_DATA_DIR={data} has no folder device-types")
        layout = cls(data, folders["WQLAB_CACHE"], folders["WQLAB_STATE"], Serving.from_environment())
        longest = str(layout.run / ".s.PGSQL.5432.lock")
        if len(longest) > LONGEST_SOCKET_PATH:
            raise LayoutError(f"WQLAB_STATE is too long a path for a unix socket ({longest}): choose a shorter one")
        return layout

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
    def bench(self) -> Path:
        return self.state / "bench" / "bench.json"

    @property
    def golden(self) -> Path:
        """What the golden system of each architecture boots: written by `prepare`, read when the bench starts."""
        return self.state / "golden.json"

    def architectures(self) -> list[str]:
        """Of which the lab emulates devices: a second one costs a kernel build, so it is asked for (`make arm64`).

        Kept in the cache, beside the kernel that was built for it. `WQLAB_ARCHITECTURES` says it for one lab alone.
        """
        asked = os.environ.get("WQLAB_ARCHITECTURES")
        if asked is None:
            kept = self.cache / "architectures"
            asked = kept.read_text() if kept.exists() else ""
        return ["x86_64", *asked.split()]

    def add_architecture(self, arch: str) -> None:
        if arch not in self.architectures():
            with (self.cache / "architectures").open("a") as kept:
                kept.write(f"{arch}\n")

    def create(self) -> None:
        for folder in ("postgres", "redis", "run", "log", "artifacts", "bench", "labgrid", "keys"):
            (self.state / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.cache.mkdir(parents=True, exist_ok=True)

    def port(self, service: str) -> int:
        """A free loopback port, the same one as long as the state folder lives."""
        kept = self.run / f"{service}.port"
        if not kept.exists():
            kept.write_text(str(free_port(PREFERRED_PORTS[service])))
        return int(kept.read_text())

    def forget_ports(self) -> None:
        """Others are chosen at the next start."""
        for service in ("api", "coordinator"):  # those that labs elsewhere were told stay
            (self.run / f"{service}.port").unlink(missing_ok=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port('api')}"

    def token(self, name: str) -> str:
        return (self.keys / f"{name}.token").read_text().strip()

    def environment(self) -> dict[str, str]:
        """What every process of the lab is started with."""
        passed = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        return {
            **passed,
            "no_proxy": _no_proxy(),
            "HOME": os.environ.get("HOME", "/"),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "WQLAB_CACHE": str(self.cache),
            "WQLAB_STATE": str(self.state),
            "WQLAB_DATA_DIR": str(self.data),
            "WQLAB_BROKER_URL": f"redis+socket://{self._broker_user()}{self.run}/redis.sock",
        }

    def broker_password(self) -> str:
        """Of the server's own user, once others can reach the broker; made when it is first asked for."""
        path = self.keys / "redis.password"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24))
        return path.read_text()

    def _broker_user(self) -> str:
        return f":{self.broker_password()}@" if self.serving else ""

    def server_environment(self) -> dict[str, str]:
        served = self.serving
        return {
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
            "WQLAB_PUBLIC_URL": self.url,
            # It listens on this machine only; whoever opens it to others says whether they may read unasked.
            "WQLAB_PUBLIC_READING": os.environ.get("WQLAB_PUBLIC_READING") or "true",
            "WQLAB_WEB_DIR": str(web.pages(self.cache)),
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
        """For the worker of a LAVA lab; empty where there is none. Raises LayoutError."""
        if not os.environ.get("WQLAB_LAVA_URL"):
            return {}
        token = os.environ.get("WQLAB_LAVA_TOKEN_FILE", "")
        try:
            secret = Path(token).read_text().strip() if token else ""
        except OSError as error:
            raise LayoutError(f"WQLAB_LAVA_TOKEN_FILE={token} cannot be read: {error.strerror}") from error
        if not secret:
            raise LayoutError("WQLAB_LAVA_URL is set: WQLAB_LAVA_TOKEN_FILE must name a file with a LAVA user's token")
        passed = {name: value for name in LAVA_SETTINGS if (value := os.environ.get(name))}
        return {"WQLAB_LAVA_URL": os.environ["WQLAB_LAVA_URL"], "WQLAB_LAVA_TOKEN": secret, **passed}

    def user_environment(self) -> dict[str, str]:
        """For the `wqlab` command."""
        return {**os.environ, "no_proxy": _no_proxy(), "WQLAB_URL": self.url, "WQLAB_TOKEN": self.token(ADMIN)}


def _no_proxy() -> str:
    """The lab's own parts talk on loopback, where no proxy reaches them."""
    return ",".join(filter(None, (os.environ.get("no_proxy"), LOOPBACK)))


def free_port(preferred: int) -> int:
    """`preferred` if nobody listens there, else one the kernel chooses."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LayoutError("no free TCP port on 127.0.0.1")
