"""Start and stop one lab on this machine, under supervisord."""

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

from . import development, supervision
from .errors import LabError
from .paths import ADMIN, LAB, LabPaths
from .services import POSTGRES_BIN, STOP_FIRST, Service, services, stores, supervisor_config

READY_TIMEOUT_S = 120.0
END_TIMEOUT_S = 60.0
_DATABASES = "SELECT datname FROM pg_database"


class PortTakenError(LabError):
    """Another lab that started at the same time listens on this lab's port."""


class Lab:
    """One lab on this machine."""

    def __init__(self, paths: LabPaths, report: Callable[[str], None], *, reload: bool = False) -> None:
        """Create a lab; `report` prints progress, and with `reload` programs restart when their code changes."""
        self.paths = paths
        self._reload = reload
        self.report = report
        self.first_password: str | None = None
        """Password of the administrator, if this `up` created that user; it is stored nowhere else."""
        self.supervisor = supervision.Supervisor(paths.run / "supervisor.sock")

    # --- state ------------------------------------------------------------------------------------------------

    @property
    def config(self) -> Path:
        return self.paths.run / "supervisord.conf"

    def running(self) -> bool:
        return self.supervisor.answers()

    def status(self) -> str:
        return "\n".join(f"{name:12} {state}" for name, state in self.supervisor.states().items())

    # --- up ---------------------------------------------------------------------------------------------------

    def complete(self) -> bool:
        """Return True if a start of this lab was finished and it still runs."""
        return self.running() and self._applied_device_types.exists()

    def up(self, wait_for_golden: Callable[[], None] = lambda: None) -> None:
        """Start what is not running. On a running lab, apply added and changed device types.

        The server starts first; `wait_for_golden` returns when the devices can start, and its exception stops the lab.
        An interrupted start can be repeated: each step skips what exists. Raises LabError.
        """
        paths = self.paths
        paths.create()
        if self.complete():
            wait_for_golden()
            paths.write_pins()
            self._apply_device_types()
            return
        self._applied_device_types.unlink(missing_ok=True)
        try:
            self._start_server()
        except PortTakenError as error:
            self.report(f"{error}: starting again on another port")
            self.stop()
            paths.forget_ports()
            self._start_server()
        try:
            wait_for_golden()
        except BaseException:
            self.stop()
            raise
        paths.write_pins()
        self._start_devices()

    def _start_server(self) -> None:
        """Start the stores and the API, and create the schema, the tokens and the administrator."""
        paths = self.paths
        self.make_database()
        self.make_keys()
        redis = paths.run / "redis-server"
        if not redis.is_symlink():
            redis.symlink_to("/usr/bin/redis-check-rdb")
        if not self.running():
            self._write_config(stores(paths))
            # Programs also get supervisord's own environment, so it has no secrets.
            command = ["supervisord", "-c", str(self.config)]
            subprocess.run(command, check=True, env=paths.daemon_environment(), cwd=paths.state)
        self._start("postgres")
        self._start("redis")
        self._wait("postgres", self._postgres_answers)
        known = self.run_program(["psql", "-h", str(paths.run), "-d", "postgres", "-XAtc", _DATABASES]).split()
        if "wqlab" not in known:  # asking first keeps an error out of PostgreSQL's log
            self.run_program(["createdb", "-h", str(paths.run), "wqlab"])
        self.run_program(["wqlab-server", "migrate"])
        self._make_token("worker", "worker")
        self._make_admin()
        self._write_config([*stores(paths), *self._services(capacity=1)])
        self._start("api")
        self._wait_for_api()

    def _wait_for_api(self) -> None:
        self._wait("api", lambda: api_answers(self.paths.url, self.paths.token("worker")))

    def _start_devices(self) -> None:
        """Start the bench, labgrid and all remaining programs. The golden systems must exist."""
        paths = self.paths
        self._start("bench")
        self._wait("bench", paths.bench.exists)
        if not self._coordinator_runs() and listens(paths.port("coordinator")):
            paths.forget_port("coordinator")  # another lab took it since it was chosen
        self._start_with_bench()
        self._wait_for_api()  # it was started anew, because its configuration has the capacity
        if paths.serving:
            self._wait("api-tls", lambda: listens(paths.port("api-tls")))
        self._check_all_run()
        self._remember_device_types()

    def _start_with_bench(self) -> None:
        """Write the configuration that fits the running bench, and start every program that does not run.

        A running program whose configuration has changed is started anew.
        """
        # The bench determines how many devices this host can run at once, which limits the device sessions.
        programs = self._services(self._capacity())
        self._write_config([*stores(self.paths), *programs])
        for store in stores(self.paths):
            self._start(store.name)
        self._wait("postgres", self._postgres_answers)
        self._start("coordinator")
        # Stopped by the new configuration if this command's environment differs from that of the command before.
        self._start("bench")
        self._wait("bench", self.paths.bench.exists)
        self._export_devices()
        for program in programs:
            self._start(program.name)

    def _coordinator_runs(self) -> bool:
        return self.supervisor.states().get("coordinator") == "RUNNING"

    def _services(self, capacity: int) -> list[Service]:
        found = services(self.paths, capacity)
        return development.reloading(found) if self._reload else found

    def make_database(self) -> None:
        """Create an empty PostgreSQL cluster in the state folder, unless there is one."""
        data = self.paths.state / "postgres"
        if (data / "PG_VERSION").exists():
            return
        self.run_program(
            [
                str(POSTGRES_BIN / "initdb"), "-D", str(data), "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                "--no-instructions", "--no-sync",
            ]
        )  # fmt: skip

    def make_keys(self) -> None:
        """Create the SSH key for logging in to devices and the key that signs bundles. Existing keys are kept."""
        self._make_key(self.paths.keys / "lab_ed25519")
        self._make_key(self.paths.signing_key)

    def _make_key(self, key: Path) -> None:
        """Create an Ed25519 key that only this user can read, and its public key in `key`.pub."""
        if not key.exists():
            self.run_program(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "wqlab", "-f", str(key)])

    def _make_token(self, name: str, scope: str) -> None:
        path = self.paths.keys / f"{name}.token"
        if not path.exists():
            token = self.run_program(["wqlab-server", "token", "create", "--name", name, "--scope", scope])
            path.touch(mode=0o600)
            path.write_text(token.strip() + "\n")

    def _make_admin(self) -> None:
        """Create the administrator, and this user's token for the `wqlab` command."""
        password = self.run_program(
            ["wqlab-server", "user", "create", "--name", ADMIN, "--role", "admin", "--unless-there"]
        )
        self.first_password = password.strip() or None
        self._make_token(ADMIN, "admin")

    def new_password(self, user: str) -> str:
        if not self.running():
            raise LabError("the lab is not running; start it with `make up`")
        return self.run_program(["wqlab-server", "user", "password", "--name", user]).strip()

    def _export_devices(self) -> None:
        """Write the exporter's file and create a labgrid place for each device."""
        environment = self.paths.worker_environment()
        self.run_program(["wqlab-bench", "exporter"], environment=environment)
        self._start("exporter")
        self.run_program(["wqlab-bench", "places"], environment=environment)

    def _capacity(self) -> int:
        return int(json.loads(self.paths.bench.read_text())["capacity"])

    # --- device types added by hand ---------------------------------------------------------------------------

    def _device_types(self) -> str:
        """Return the text that determines the devices and what they boot."""
        folder = self.paths.data / "device-types"
        files = [*sorted(folder.glob("*.yaml")), *sorted(folder.glob("costs/*.yaml"))]
        files += [*folder.glob(self.paths.addresses.name), self.paths.golden]
        files += sorted(self.paths.exporter_files.glob("*.yaml"))
        return "\n".join(f"{path.name} {path.read_text()}" for path in files)

    @property
    def _applied_device_types(self) -> Path:
        """File with the device types that the running lab uses; created once all programs run."""
        return self.paths.run / "device-types"

    def _remember_device_types(self) -> None:
        self._applied_device_types.write_text(self._device_types())

    def _apply_device_types(self) -> None:
        if self._applied_device_types.read_text() == self._device_types():
            self.report("the lab is running; device types are unchanged")
            return
        self._services(capacity=1)  # reports mistakes in addresses before anything is stopped
        self.report("device types changed: restarting the bench and labgrid's exporter (running boots are interrupted)")
        for name in ("exporter", "bench"):
            self.supervisor.stop(name)
        self.paths.bench.unlink(missing_ok=True)
        self._start("bench")
        self._wait("bench", self.paths.bench.exists)
        self._start_with_bench()  # addresses are in the exporter's environment, which only the configuration changes
        self._wait_for_api()  # started anew if this command's environment differs
        self._remember_device_types()

    # --- down -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop every process of this lab, including orphaned ones."""
        if self.running():
            used = {store.name for store in stores(self.paths)}
            every = self.supervisor.states().keys()
            try:
                self.supervisor.end((every & STOP_FIRST, every - STOP_FIRST - used, every & used), END_TIMEOUT_S)
            except supervision.SupervisorError as error:
                self.report(f"{error}: killing the remaining processes")
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.paths.bench.unlink(missing_ok=True)

    def restart(self) -> None:
        """Stop every program and start it with the current code, pages and documentation. The data stays.

        Raises LabError if the lab does not run.
        """
        if not self.running():
            raise LabError("the lab is not running; `make up` starts it")
        self.stop()
        self.up()

    def down(self) -> None:
        self.stop()
        self.paths.remove_pins()
        shutil.rmtree(self.paths.state, ignore_errors=True)
        if self.paths.state.exists():  # the folder itself may belong to root
            for remaining in self.paths.state.iterdir():
                raise LabError(f"could not remove {remaining}")

    def processes(self) -> list[int]:
        """Return the process ids of this lab, which have its state folder in their environment."""
        mark = f"WQLAB_STATE={self.paths.state}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in _ancestor_pids():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment and b"WQLAB_DATA_DIR=" + bytes(self.paths.data) in environment:
                found.append(int(entry.name))
        return found

    # --- helpers ----------------------------------------------------------------------------------------------

    def _write_config(self, programs: list[Service]) -> None:
        self.config.write_text(supervisor_config(self.paths, programs))
        self.config.chmod(0o600)
        if self.running():
            self.supervisor.reload()

    def _start(self, name: str) -> None:
        try:
            self.supervisor.start(name)
        except supervision.SupervisorError as error:
            raise LabError(f"{error}:\n{self._log_tail(name)}") from error

    def _check_all_run(self) -> None:
        for name, state in self.supervisor.states().items():
            if state not in {"RUNNING", "STARTING"}:
                raise LabError(f"{name} is not running ({state}):\n{self._log_tail(name)}")

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not ready():
            if time.monotonic() > deadline:
                raise LabError(f"{name} is not ready after {READY_TIMEOUT_S:.0f} s:\n{self._log_tail(name)}")
            time.sleep(0.05)

    def _postgres_answers(self) -> bool:
        command = [str(POSTGRES_BIN / "pg_isready"), "-q", "-h", str(self.paths.run), "-d", "postgres"]
        return subprocess.run(command, check=False).returncode == 0

    def run_program(self, command: list[str], *, environment: dict[str, str] | None = None) -> str:
        """Run a program and return its standard output. Raises LabError if it fails."""
        result = subprocess.run(
            command,
            check=False,
            text=True,
            capture_output=True,
            env=environment or self.paths.server_environment(),
            cwd=self.paths.state,
        )
        if result.returncode:
            raise LabError(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}".strip())
        return result.stdout

    def _log_tail(self, name: str) -> str:
        path = self.paths.log / f"{name}.log"
        lines = path.read_text(errors="replace").splitlines()[-15:] if path.exists() else []
        return "\n".join([*lines, f"(the whole log: {path})"])


def api_answers(url: str, token: str) -> bool:
    """Return True if the API is ready. Raises PortTakenError if the answering API does not know this lab's token."""
    try:
        with httpx.Client(base_url=url, timeout=5, trust_env=False) as api:
            if not api.get("/readyz").is_success:
                return False
            answer = api.get(f"/api/worker/v1/labs/{LAB}/leases", headers={"Authorization": f"Bearer {token}"})
    except httpx.TransportError:
        return False
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise PortTakenError(f"the API at {url} belongs to another lab")
    return answer.is_success


def listens(port: int) -> bool:
    """Return True if a program listens on this loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ancestor_pids() -> set[int]:
    """Return the ids of this process and its parents, which may have the same environment when `make` started them."""
    pids, pid = set(), os.getpid()
    while pid > 1:
        pids.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pids


__all__ = ["LAB", "Lab", "LabError"]
