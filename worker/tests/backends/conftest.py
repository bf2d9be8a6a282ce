"""A lab of real parts for the test session: virtual bench, labgrid coordinator and exporter."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest
import yaml

from wqlab_contracts.enums import Arm, ArtifactKind, RunPurpose
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import (
    Artifact,
    BlockPlan,
    BootKey,
    BuildResult,
    DeviceFacts,
    Kernel,
    LavaBoot,
    RunEvent,
    RunJob,
)
from wqlab_contracts.specs import Axis, ExternalPower, Profile, Repetitions, Scenario, TestPlan
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.labgrid import LabgridBackend
from wqlab_worker.claims.server import sha256_of

from .trial_lava import TrialLava

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
COMMANDED = "commanded"
if TYPE_CHECKING:
    from .lavalab import LavaLab

EventT = TypeVar("EventT")

SCRIPT = """\
#!/bin/sh
# Says its name on the console, so that a fault can wait for it.
echo "plan-$1 $SCENARIO ${SETTING_SCOPE-}" > /dev/console
case $1 in measure)
    printf 'command\\ttrue\\n'
    printf 'setting\\tscope\\tcache\\n'
    sleep "$SECONDS_TO_RUN"
    printf 'setting_after\\tscope\\tcache\\n'
    printf 'fact\\thealthy\\tyes\\n' ;;
esac
"""


@dataclass
class DeviceLab:
    """Services that a device session needs, with methods to inject faults."""

    state: Path
    coordinator: str
    bench: dict[str, Any]
    kernel: Path
    build_id: str
    release: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "WQLAB_STATE": str(self.state),
            "WQLAB_DATA_DIR": str(ROOT),
            "WQLAB_LAB": "local",
            "LG_COORDINATOR": self.coordinator,
        }

    @property
    def ssh_key(self) -> Path:
        return self.state / "keys" / "lab_ed25519"

    def start(self, name: str, *command: str) -> None:
        folder = self.state / "labgrid"
        folder.mkdir(parents=True, exist_ok=True)
        with (self.state / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop_all(self) -> None:
        for name in list(self.processes):
            self.stop(name)

    def start_coordinator(self) -> None:
        self.start("coordinator", "labgrid-coordinator", "-l", self.coordinator)
        host, port = self.coordinator.split(":")

        def listens() -> bool:
            with socket.create_connection((host, int(port))):
                return True

        until(listens)

    def start_exporter(self) -> None:
        options = ("-c", self.coordinator, "-n", "local", "--hostname", "127.0.0.1")
        self.start("exporter", "labgrid-exporter", *options, "exporter.yaml")

    def export_commanded(self) -> None:
        """Export tiny-1 under another name too, without a power port."""
        path = self.state / "labgrid/exporter.yaml"
        groups = yaml.safe_load(path.read_text())
        commanded = {cls: it for cls, it in groups["tiny-1"].items() if cls != "NetworkPowerPort"}
        with path.open("a") as file:
            file.write(f"{COMMANDED}: {json.dumps(commanded)}\n")

    def place(self, name: str) -> None:
        for words in (("create",), ("add-match", f"local/{name}/*")):
            self.command("labgrid-client", "-x", self.coordinator, "-p", name, *words)

    def power_commands(self, device: str) -> ExternalPower:
        url = self.bench["devices"][device]["power_url"]
        ask = "from urllib.request import Request, urlopen"
        return ExternalPower(
            **{
                name: shlex.join([sys.executable, "-c", f"{ask}; urlopen(Request({url!r}, {value!r}, method='PUT'))"])
                for name, value in (("turn_on", b"1"), ("turn_off", b"0"))
            }
        )

    def command(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout

    def faults(self, device: str, *faults: dict[str, Any]) -> None:
        answer = httpx.put(f"{self.bench['http']}/devices/{device}/faults", json={"faults": list(faults)}, timeout=None)
        answer.raise_for_status()

    def powered(self, device: str) -> bool:
        return httpx.get(self.bench["devices"][device]["power_url"], timeout=None).text == "1"

    def holder(self, place: str) -> str | None:
        shown = self.command("labgrid-client", "-x", self.coordinator, "-p", place, "show")
        acquired = next(line for line in shown.splitlines() if "acquired:" in line).partition(":")[2].strip()
        return None if acquired == "None" else acquired

    def backend(self) -> LabgridBackend:
        return LabgridBackend(
            coordinator=self.coordinator,
            state=self.state,
            ssh_key=self.ssh_key,
            logs=self.state / "sessions",
            fence=1,
            fetch=lambda artifact: self.kernel,
        )

    def job(
        self,
        blocks: list[list[Arm]],
        *,
        run_id: int,
        device: str = "tiny-1",
        seconds: float = 0.0,
        build_id: str | None = None,
    ) -> RunJob:
        return trivial_job(self.kernel, build_id or self.build_id, self.release, blocks, run_id, device, seconds)


def trivial_job(
    kernel: Path, build_id: str, release: str, blocks: list[list[Arm]], run_id: int, device: str, seconds: float
) -> RunJob:
    """A run of one kernel on a `tiny` device, for the given arms."""
    kind = load_data(ROOT).device_types["tiny"]
    image = Artifact(sha256=sha256_of(kernel), size=kernel.stat().st_size, kind=ArtifactKind.KERNEL, name="kernel")
    plan = trivial_plan(seconds)
    variant = Kernel(recipe="measure", build_id_gnu=build_id, release=release, image=image)
    return RunJob(
        run_id=run_id,
        purpose=RunPurpose.MEASURE,
        device=DeviceFacts(
            name=device,
            device_type=kind.name,
            lab="local",
            arch=kind.arch,
            topology=kind.topology,
            boot=kind.boot.model_copy(update={"kernel_arguments": kind.kernel_arguments}),
            emulated=True,
        ),
        plan=plan,
        profile=plan.emulated,
        files={"trivial.sh": SCRIPT},
        kernels={arm: variant for arms in blocks for arm in arms},
        blocks=[BlockPlan(block=number, arms=arms) for number, arms in enumerate(blocks)],
        seed=1,
    )


class RecordingSink:
    """An `EventSink` that records; console output must come without gap or overlap."""

    def __init__(self, on_event: Callable[[RunEvent], None] = lambda event: None) -> None:
        self.events: list[RunEvent] = []
        self.consoles: dict[BootKey, bytes] = defaultdict(bytes)
        self.artifacts: list[str] = []
        self._on_event = on_event

    def event(self, event: RunEvent) -> None:
        self.events.append(event)
        self._on_event(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        assert offset == len(self.consoles[boot])
        self.consoles[boot] += data

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self.artifacts.append(name)

    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.events if isinstance(event, kind)]


def trivial_plan(seconds: float) -> TestPlan:
    profile = Profile(
        parameters={"seconds_to_run": seconds},
        repetitions=Repetitions(warmup=0, untraced=1, traced=0),
        settings=["scope=cache", "scope=system"],
    )
    return TestPlan(
        name="trivial",
        summary="selects nothing, measures nothing, says so",
        script="trivial.sh",
        parser="health_check",
        scenarios=[Scenario(name="only", summary="only")],
        axes=[Axis(name="scope", values=["cache", "system"])],
        reference_setting="scope=system",
        hardware=profile,
        emulated=profile,
        metrics=[],
    )


def lasting() -> Stop:
    """Return a Stop whose lease does not expire during a test."""
    stop = Stop()
    stop.extend(time.monotonic() + 3600)
    return stop


def until(ready: Any) -> None:
    """Poll until `ready` returns true: the start of another program gives no event."""
    while True:
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@dataclass(frozen=True)
class Golden:
    """The golden system that `python -m wqlab_lab.prepare` made for this state folder."""

    published: Path
    kernel: Path
    rootfs: Path
    built: BuildResult


@pytest.fixture(scope="session")
def golden() -> Golden:
    prepared = Path(os.environ["WQLAB_STATE"]) / "golden.json"
    made = json.loads(prepared.read_text())["x86_64"]
    kernel = Path(made["kernel"])
    built = BuildResult.model_validate_json((kernel.parent / "result.json").read_text())
    return Golden(prepared, kernel, Path(made["rootfs"]), built)


@pytest.fixture(scope="session")
def lava_lab(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LavaLab]:
    from .lavalab import LavaLab

    folder = tmp_path_factory.mktemp("lava")
    trial = TrialLava(folder / "state", ["qemu-01", "qemu-02"])
    try:
        trial.start()
        trial.wait()
        yield LavaLab(
            trial, golden.kernel, golden.rootfs, golden.built.build_id_gnu, golden.built.release, folder / "scratch"
        )
    finally:
        trial.remove()


@pytest.fixture(scope="session")
def device_lab(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceLab]:
    lab = DeviceLab(
        state=tmp_path_factory.mktemp("device-lab"),
        coordinator=f"127.0.0.1:{_free_port()}",
        bench={},
        kernel=golden.kernel,
        build_id=golden.built.build_id_gnu,
        release=golden.built.release,
    )
    with ExitStack() as cleanup:
        cleanup.callback(lab.stop_all)
        # SIGKILL, because the coordinator takes five seconds to handle SIGTERM.
        cleanup.callback(lambda: lab.kill("coordinator"))
        lab.ssh_key.parent.mkdir()
        lab.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(lab.ssh_key))
        lab.start("bench", "wqlab-bench", "serve", "--golden", str(golden.published))
        published = lab.state / "bench" / "bench.json"
        until(published.exists)
        lab.bench = json.loads(published.read_text())
        lab.command("wqlab-bench", "exporter")
        lab.export_commanded()
        lab.start_coordinator()
        lab.start_exporter()
        lab.command("wqlab-bench", "places")
        lab.place(COMMANDED)
        yield lab
        shutil.rmtree(lab.state / "bench", ignore_errors=True)


@pytest.fixture
def job(tmp_path: Path) -> RunJob:
    """A run of two boots on a LAVA device."""
    kernel = tmp_path / "kernel"
    kernel.write_bytes(b"image")
    data = load_data(ROOT)
    mapping = data.device_types["tiny"].lava
    assert mapping is not None
    made = trivial_job(kernel, "ab" * 20, "6.12", [[Arm.BASELINE, Arm.CANDIDATE]], 12, "qemu-01", 1.0)
    lava = LavaBoot(mapping=mapping, template=data.lava_templates["qemu"])
    device = made.device.model_copy(update={"lab": "far", "backend": "lava", "lava": lava})
    return made.model_copy(update={"device": device, "priority": 70})


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits for a machine with an operating system of its own."""
    monkeypatch.setattr("wqlab_worker.backends.device_access.QUIET_S", 0.05)
    monkeypatch.setattr("wqlab_worker.backends.own_system.PAUSE_S", 0.01)
    monkeypatch.setattr("wqlab_worker.backends.own_system.HALT_S", 0.01)
    monkeypatch.setattr("wqlab_worker.backends.own_system.COMMAND_S", 0.05)
    monkeypatch.setattr("wqlab_worker.backends.own_system.POWER_ON_PAUSE_S", 0.01)


@pytest.fixture
def short_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the longest wait for a shutdown, for devices that never end theirs."""
    monkeypatch.setattr("wqlab_worker.backends.own_system.SHUTDOWN_S", 0.3)
