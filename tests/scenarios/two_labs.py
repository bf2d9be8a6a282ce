"""Run two remote labs on machines linked to the server; one link is cut for a minute during a run.

test_two_labs.py runs this module inside `namespaces.enter`; it writes the results as JSON to the given file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from namespaces import Hub, Machine  # type: ignore[import-not-found]  # run as a script

from wqlab_client.client import Client
from wqlab_contracts.enums import EventKind, JobState

ROOT = Path(__file__).resolve().parents[2]
CUT_S = 60
LABS = ("berlin", "boston")
STUDY = (
    *(
        "--settings-only",
        "--scenario",
        "HIGH",
        "--setting",
        "scope=system,strict=0",
        "--setting",
        "scope=cache,strict=1",
    ),
    *("--blocks", "3", "--param", "total_ios=64", "--param", "traced_ios=200"),
)


def until(ready: Callable[[], bool]) -> None:
    while not ready():
        time.sleep(0.2)


class Server:
    """The server, with HTTPS and TLS for the remote labs."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.hub, self.folder = hub, folder
        data, tls = folder / "data", folder / "tls"
        for name in ("device-types", "kernels", "testplans"):
            shutil.copytree(ROOT / name, data / name)
        trees = data / "kernels/trees.yaml"
        spec = yaml.safe_load(trees.read_text())
        # The golden kernel is then the baseline, and no other one has to be built.
        trees.write_text(yaml.safe_dump({**spec, "default": spec["golden"]}))
        for path in (data / "device-types").glob("*.yaml"):
            if path.stem not in {"common", "tiny"}:
                path.unlink()
        for lab in LABS:
            spec = yaml.safe_load((data / "device-types" / "tiny.yaml").read_text())
            spec |= {"name": f"device-{lab}", "units": [{"name": f"{lab}-1", "lab": lab}]}
            (data / "device-types" / f"device-{lab}.yaml").write_text(yaml.safe_dump(spec))
        subprocess.run([ROOT / "lab/certificates.sh", hub.ADDRESS, tls], check=True)
        self.data = data
        state = {
            "WQLAB_STATE": str(folder / "server"),
            "WQLAB_DATA_DIR": str(data),
            "WQLAB_ARCHITECTURES": "",
            "NO_COLOR": "1",
        }
        self.environment = {**os.environ, **state, "WQLAB_SERVE": hub.ADDRESS, "WQLAB_TLS": str(tls)}
        (folder / "server").mkdir()

    def up(self) -> None:
        subprocess.run(self.hub.command("wqlab-lab", "up"), env=self.environment, check=True)
        state = folder_of(self.environment)
        self.environment["WQLAB_URL"] = f"http://127.0.0.1:{(state / 'run/api.port').read_text()}"
        self.environment["WQLAB_TOKEN"] = (state / "keys/admin.token").read_text().strip()

    def down(self) -> None:
        subprocess.run(self.hub.command("wqlab-lab", "down"), env=self.environment, check=False)

    def wqlab(self, *arguments: str) -> str:
        done = subprocess.run(
            ["wqlab", *arguments], env=self.environment, text=True, check=True, stdout=subprocess.PIPE
        )
        return done.stdout

    def client(self) -> Client:
        return Client(self.environment["WQLAB_URL"], self.environment["WQLAB_TOKEN"])


def folder_of(environment: dict[str, str]) -> Path:
    return Path(environment["WQLAB_STATE"])


class LabHost:
    """Host that joined with the command that the server printed; its devices are emulated on it."""

    def __init__(self, server: Server, name: str) -> None:
        self.name, self.machine = name, Machine(server.hub)
        self.folder = server.folder / name
        self._processes: list[subprocess.Popen[bytes]] = []
        # The host gets only the search path of programs, nothing else of the server's environment.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(server.folder), "NO_COLOR": "1"}

    def join(self, server: Server) -> None:
        name = self.name
        command = server.wqlab("lab", "invite", name).split()
        self.run(*command, "--folder", str(self.folder))
        self._bench(server)
        control = ("supervisord", "-n", "-c", self.folder / "supervisord.conf")
        self._start(*control, environment=self.environment)
        until(lambda: "ready." in self.log("worker"))
        self.run("wqlab-bench", "places", environment=self.bench_environment)

    def _bench(self, server: Server) -> None:
        given = dict(line.split("=", 1) for line in (self.folder / "lab.env").read_text().splitlines()[1:])
        self.bench_environment = {
            **self.environment, **given, "WQLAB_CACHE": os.environ["WQLAB_CACHE"], "WQLAB_DATA_DIR": str(server.data),
        }  # fmt: skip
        golden = folder_of(server.environment) / "golden.json"
        self._start("wqlab-bench", "serve", "--golden", golden, environment=self.bench_environment)
        until((self.folder / "bench" / "bench.json").exists)
        self.run("wqlab-bench", "exporter", environment=self.bench_environment)

    def _start(self, *command: str | Path, environment: dict[str, str]) -> None:
        with (self.folder / "log" / f"{command[0]}.out").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    self.machine.command(*command), env=environment, cwd=self.folder, stdout=log, stderr=log
                )
            )

    def run(self, *command: str | Path, environment: dict[str, str] | None = None) -> None:
        subprocess.run(self.machine.command(*command), env=environment or self.environment, check=True)

    def log(self, name: str) -> str:
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.machine.close()


def run_labs(server: Server) -> dict[str, Any]:
    hosts: dict[str, LabHost] = {}
    try:
        for name in LABS:
            hosts[name] = LabHost(server, name)
            hosts[name].join(server)
        return measure(server, hosts)
    finally:
        for host in hosts.values():
            host.close()


def measure(server: Server, hosts: dict[str, LabHost]) -> dict[str, Any]:
    client = server.client()
    submissions = {
        name: int(
            json.loads(server.wqlab("submit", "--json", *STUDY, "--target", f"dm-crypt-affinity@device-{name}"))["id"]
        )
        for name in LABS
    }
    seen: dict[str, Any] = {"submissions": submissions}
    events = iter(client.events(submissions["berlin"]))
    first = next(event for event in events if event.kind is EventKind.SAMPLES)
    run_id = first.run_id
    assert run_id is not None
    hosts["berlin"].machine.cut()
    cut_at = time.monotonic()
    states: list[str] = []

    def watch() -> None:
        while time.monotonic() < cut_at + CUT_S:
            state = str(client.run(run_id).state)
            if not states or states[-1] != state:
                states.append(state)
            time.sleep(0.5)

    watcher = threading.Thread(target=watch)
    watcher.start()
    watcher.join()
    seen["boot"] = first.boot_id
    seen["states"] = states
    seen["samples_when_mended"] = len(client.samples(run_id))
    hosts["berlin"].machine.reconnect()
    mended_at = time.monotonic()
    until(lambda: client.run(run_id).state in {JobState.RUNNING, JobState.FINISHED})
    seen["went_on_after_s"] = round(time.monotonic() - mended_at, 1)
    for name, submission in submissions.items():
        server.wqlab("watch", str(submission))
        report = json.loads(server.wqlab("report", str(submission), "--format", "json"))
        target = report["targets"][0]
        run = client.run(target["run_id"])
        seen[name] = {
            "submission": client.submission(submission).model_dump(mode="json"),
            "report": report,
            "run": run.model_dump(mode="json"),
            "samples": [sample.model_dump(mode="json") for sample in client.samples(run.id)],
            "log": hosts[name].log("worker"),
        }
    seen["labs"] = [lab.model_dump(mode="json") for lab in client.labs()]
    return seen


def main(output: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="wqlab-two-", dir="/tmp"))
    try:
        server = Server(Hub(), folder)
        try:
            server.up()
            output.write_text(json.dumps(run_labs(server)))
        finally:
            if os.environ.get("WQLAB_KEEP_LOGS"):
                for log in folder.glob("*/log"):
                    shutil.copytree(log, Path(os.environ["WQLAB_KEEP_LOGS"]) / log.parent.name, dirs_exist_ok=True)
            server.down()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
