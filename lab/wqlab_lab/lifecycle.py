"""Up, stop, down: one lab on this machine, under supervisord."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from . import supervision
from .paths import ADMIN, LAB, Layout
from .services import END_FIRST, POSTGRES_BIN, Service, services, stores, supervisor_config

READY_TIMEOUT_S = 60.0
END_TIMEOUT_S = 60.0


class LabError(Exception):
    """The lab could not be started or stopped; the text says what failed and where its log is."""


class PortTakenError(LabError):
    """Another lab, started at the same time, listens where this one was to."""


class Lab:
    def __init__(self, layout: Layout, say: Callable[[str], None]) -> None:
        self.layout = layout
        self.say = say
        self.first_password: str | None = None
        """Of the administrator that this `up` made; kept nowhere else."""
        self._supervisor = supervision.Supervisor(layout.run / "supervisor.sock")

    # --- state ------------------------------------------------------------------------------------------------

    @property
    def config(self) -> Path:
        return self.layout.run / "supervisord.conf"

    def running(self) -> bool:
        return self._supervisor.answers()

    def status(self) -> str:
        return "\n".join(f"{name:12} {state}" for name, state in self._supervisor.states().items())

    # --- up ---------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Starts what does not run. On a running lab: applies device types that were added or changed.

        One that was cut short is done again: each step leaves alone what is there.
        """
        layout = self.layout
        layout.create()
        if self.running() and self._seen_device_types.exists():
            self._apply_device_types()
            return
        self._seen_device_types.unlink(missing_ok=True)
        try:
            self._start_all()
        except PortTakenError as error:
            self.say(f"{error}: starting again on a port of its own")
            self.stop()
            layout.forget_ports()
            self._start_all()

    def _start_all(self) -> None:
        layout = self.layout
        self._make_database()
        self._make_ssh_key()
        redis = layout.run / "redis-server"
        if not redis.is_symlink():
            redis.symlink_to("/usr/bin/redis-check-rdb")
        if not self.running():
            self._write_config(stores(layout))
            subprocess.run(["supervisord", "-c", self.config], check=True, env=layout.environment(), cwd=layout.state)
        self._start("postgres")
        self._start("redis")
        self._wait("postgres", self._postgres_answers)
        self._run(["createdb", "-h", str(layout.run), "wqlab"], already="already exists")
        self._run(["wqlab-server", "migrate"])
        self._make_token("worker", "worker")
        self._write_config([*stores(layout), *services(layout, capacity=1)])
        self._start("bench")
        self._wait("bench", layout.bench.exists)
        # The bench knows how many devices this host can run at once: as many sessions may run.
        programs = services(layout, self._capacity())
        self._write_config([*stores(layout), *programs])
        self._start("api")
        self._wait("api", lambda: api_answers(layout.url, layout.token("worker")))
        self._start("coordinator")
        self._export_devices()
        for program in programs:
            self._start(program.name)
        if layout.serving:
            self._wait("api-tls", lambda: listens(layout.port("api-tls")))
        self._check_all_run()
        self._make_admin()
        self._remember_device_types()

    def _make_database(self) -> None:
        data = self.layout.state / "postgres"
        if (data / "PG_VERSION").exists():
            return
        self._run(
            [
                str(POSTGRES_BIN / "initdb"), "-D", str(data), "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                "--no-instructions", "--no-sync",
            ]
        )  # fmt: skip

    def _make_ssh_key(self) -> None:
        key = self.layout.keys / "lab_ed25519"
        if not key.exists():
            self._run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "wqlab", "-f", str(key)])

    def _make_token(self, name: str, scope: str) -> None:
        path = self.layout.keys / f"{name}.token"
        if not path.exists():
            token = self._run(["wqlab-server", "token", "create", "--name", name, "--scope", scope])
            path.touch(mode=0o600)
            path.write_text(token.strip() + "\n")

    def _make_admin(self) -> None:
        """The first user, for browsers, and a token of that user's for the `wqlab` command."""
        made = self._run(["wqlab-server", "user", "create", "--name", ADMIN, "--role", "admin", "--unless-there"])
        self.first_password = made.strip() or None
        self._make_token(ADMIN, "admin")

    def new_password(self, user: str) -> str:
        if not self.running():
            raise LabError("the lab is not running: start it by `make up`")
        return self._run(["wqlab-server", "user", "password", "--name", user]).strip()

    def _export_devices(self) -> None:
        """Tells labgrid which devices there are: the exporter's file, and a place for each."""
        environment = self.layout.worker_environment()
        self._run(["wqlab-bench", "exporter"], environment=environment)
        self._start("exporter")
        self._run(["wqlab-bench", "places"], environment=environment)

    def _capacity(self) -> int:
        return int(json.loads(self.layout.bench.read_text())["capacity"])

    # --- device types added by hand ---------------------------------------------------------------------------

    def _device_types(self) -> str:
        """All that decides which devices there are and what they boot."""
        folder = self.layout.data / "device-types"
        files = [*sorted(folder.glob("*.yaml")), self.layout.golden]
        return "\n".join(f"{path.name} {path.read_text()}" for path in files)

    @property
    def _seen_device_types(self) -> Path:
        """What the running lab was started with; there is none until all of it runs."""
        return self.layout.run / "device-types"

    def _remember_device_types(self) -> None:
        self._seen_device_types.write_text(self._device_types())

    def _apply_device_types(self) -> None:
        if self._seen_device_types.read_text() == self._device_types():
            self.say("the lab is running; device types are unchanged")
            return
        self.say("device types changed: restarting the bench and labgrid's exporter (running devices are cut off)")
        for name in ("exporter", "bench"):
            self._supervisor.stop(name)
        self.layout.bench.unlink(missing_ok=True)
        self._start("bench")
        self._wait("bench", self.layout.bench.exists)
        self._export_devices()
        self._remember_device_types()

    # --- down -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends every process of this lab, those it left behind included."""
        if self.running():
            used = {store.name for store in stores(self.layout)}
            every = self._supervisor.states().keys()
            try:
                self._supervisor.end((every & END_FIRST, every - END_FIRST - used, every & used), END_TIMEOUT_S)
            except supervision.SupervisorError as error:
                self.say(f"{error}: killing what is left")
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.layout.bench.unlink(missing_ok=True)

    def down(self) -> None:
        self.stop()
        shutil.rmtree(self.layout.state, ignore_errors=True)
        if self.layout.state.exists():  # the folder itself may belong to root
            for left in self.layout.state.iterdir():
                raise LabError(f"could not remove {left}")

    def processes(self) -> list[int]:
        """This lab's processes: they carry its state folder in their environment."""
        mark = f"WQLAB_STATE={self.layout.state}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in _own_ancestry():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment and b"WQLAB_DATA_DIR=" + bytes(self.layout.data) in environment:
                found.append(int(entry.name))
        return found

    # --- helpers ----------------------------------------------------------------------------------------------

    def _write_config(self, programs: list[Service]) -> None:
        self.config.write_text(supervisor_config(self.layout, programs))
        self.config.chmod(0o600)
        if self.running():
            self._supervisor.reload()

    def _start(self, name: str) -> None:
        try:
            self._supervisor.start(name)
        except supervision.SupervisorError as error:
            raise LabError(f"{error}:\n{self._log_tail(name)}") from error

    def _check_all_run(self) -> None:
        for name, state in self._supervisor.states().items():
            if state not in {"RUNNING", "STARTING"}:
                raise LabError(f"{name} does not run ({state}):\n{self._log_tail(name)}")

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not ready():
            if time.monotonic() > deadline:
                raise LabError(f"{name} is not ready after {READY_TIMEOUT_S:.0f} s:\n{self._log_tail(name)}")
            time.sleep(0.05)

    def _postgres_answers(self) -> bool:
        command = [str(POSTGRES_BIN / "pg_isready"), "-q", "-h", str(self.layout.run)]
        return subprocess.run(command, check=False).returncode == 0

    def _run(self, command: list[str], *, already: str | None = None, environment: dict[str, str] | None = None) -> str:
        result = subprocess.run(
            command,
            check=False,
            text=True,
            capture_output=True,
            env=environment or self.layout.server_environment(),
            cwd=self.layout.state,
        )
        if result.returncode and not (already and already in result.stderr):
            raise LabError(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}".strip())
        return result.stdout

    def _log_tail(self, name: str) -> str:
        path = self.layout.log / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-15:] if path.exists() else []
        return "\n".join([*lines, f"(the whole log: {path})"])


def api_answers(url: str, token: str) -> bool:
    """Whether the API is ready. Raises PortTakenError when the one that answers does not know this lab's token."""
    try:
        with httpx.Client(base_url=url, timeout=5, trust_env=False) as api:
            if not api.get("/readyz").is_success:
                return False
            answer = api.get(f"/api/worker/v1/labs/{LAB}/leases", headers={"Authorization": f"Bearer {token}"})
    except httpx.TransportError:
        return False
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise PortTakenError(f"the API at {url} is another lab's")
    return answer.is_success


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _own_ancestry() -> set[int]:
    """This process and its parents: started by `make`, they may carry the same environment."""
    pids, pid = set(), os.getpid()
    while pid > 1:
        pids.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pids


__all__ = ["LAB", "Lab", "LabError"]
