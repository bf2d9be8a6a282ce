"""A scripted device and its plan. Only the device is scripted; the measuring loop is real."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wqlab_contracts.enums import Arm, ArtifactKind, Direction, ErrorKind, MetricClass, RunPurpose, Scale, TraceMode
from wqlab_contracts.messages import (
    Artifact,
    BlockPlan,
    BootKey,
    DeviceFacts,
    Failure,
    Kernel,
    MeasuredTopology,
    RunEvent,
    RunJob,
    RunResult,
)
from wqlab_contracts.specs import Axis, BootMethod, Metric, Profile, Repetitions, Scenario, TestPlan, Topology
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.measure.device_interface import DeviceFailure, ScriptOutput, VerifiedBoot
from wqlab_worker.measure.measuring_loop import measure

TOPOLOGY = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 0], node=[0, 0], package=[0, 0])
AB = [Arm.BASELINE, Arm.CANDIDATE]


def metric(name: str, taken_from: TraceMode) -> Metric:
    return Metric(
        name=name,
        summary=name,
        unit="percent",
        scale=Scale.DIFFERENCE,
        direction=Direction.NONE,
        metric_class=MetricClass.MECHANISM,
        taken_from=taken_from,
    )


def plan() -> TestPlan:
    """A plan with one untraced and one traced metric."""
    profile = Profile(
        parameters={"runtime": 1, "size": "1M"},
        repetitions=Repetitions(warmup=1, untraced=2, traced=1),
        settings=["scope=cache", "scope=system"],
    )
    return TestPlan(
        name="scripted",
        summary="for tests",
        script="scripted.sh",
        parser="scripted",
        scenarios=[
            Scenario(name="low", summary="low", parameters={"jobs": 1}),
            Scenario(name="high", summary="high", parameters={"jobs": 8, "size": "2M"}),
        ],
        axes=[Axis(name="scope", values=["cache", "system", "cache_shard"])],
        reference_setting="scope=system",
        hardware=profile,
        emulated=profile,
        metrics=[metric("speed", TraceMode.UNTRACED), metric("share", TraceMode.TRACED)],
    )


def job(
    blocks: int = 2,
    arms: list[list[Arm]] | None = None,
    purpose: RunPurpose = RunPurpose.MEASURE,
    kernels: tuple[Arm, ...] = (Arm.BASELINE, Arm.CANDIDATE),
    seed: int = 1,
) -> RunJob:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="bzImage")
    orders = arms or [AB if block % 2 == 0 else AB[::-1] for block in range(blocks)]
    return RunJob(
        run_id=7,
        purpose=purpose,
        device=DeviceFacts(
            name="unit-0",
            device_type="tiny",
            lab="local",
            arch="x86_64",
            topology=Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=1),
            boot=BootMethod(),
            emulated=True,
            scratch=["/dev/disk/by-id/a"],
        ),
        plan=plan(),
        profile=plan().emulated,
        files={"scripted.sh": "exit 0\n"},
        kernels={arm: Kernel(recipe="measure", build_id_gnu="ab", release="6.12", image=image) for arm in kernels},
        blocks=[BlockPlan(block=number, arms=order) for number, order in enumerate(orders)],
        seed=seed,
    )


def kernel_failure_error(signature: str = "oops: same") -> DeviceFailure:
    return DeviceFailure(Failure(kind=ErrorKind.KERNEL, summary=f"died: {signature}"), signature=signature)


def lab_failure(
    summary: str = "the console went away", suspect: bool = False, of_variant: bool = False
) -> DeviceFailure:
    failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary=summary, of_variant=of_variant)
    return DeviceFailure(failure, suspect=suspect)


def answer(environment: Mapping[str, str]) -> str:
    """Return the script's output for one repetition."""
    scope = environment["SETTING_SCOPE"]
    metric = "share" if environment["TRACE"] == "1" else "speed"
    return (
        f"command\tfio --numjobs={environment['JOBS']}\nsetting\tscope\t{scope}\n"
        f"value\t{metric}\t12.5\nsetting_after\tscope\t{scope}\n"
    )


@dataclass
class ScriptedDevice:
    """A scripted device. `on_boot` and `on_script` may raise; each step advances `clock`."""

    on_boot: Callable[[BootKey], None] = lambda key: None
    on_script: Callable[[BootKey, str, Mapping[str, str]], str | None] = lambda key, action, environment: None
    time: float = 0.0
    on: BootKey | None = None
    boots: list[BootKey] = field(default_factory=list)
    scripts: list[tuple[BootKey, str, dict[str, str]]] = field(default_factory=list)
    console: str = ""
    on_restore: Callable[[], dict[str, str]] = dict
    monitored: list[bool] = field(default_factory=list)
    """For each `measure` call in order, True if it was monitored."""

    def clock(self) -> float:
        return self.time

    def boot(self, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        assert self.on is None, "always through a power cycle"
        self.on = key
        self.boots.append(key)
        self.time += 10
        self.on_boot(key)
        self.time += 1.5
        number = len(self.boots)
        return VerifiedBoot(f"boot-{number}", f"t{number}", "ab", "6.12", "console", TOPOLOGY, {"HZ": "250"}, 7.0, 3.0)

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        assert self.on
        self.scripts.append((self.on, action, dict(environment)))
        if action == "measure":
            self.monitored.append(monitored)
        self.time += 2
        output = self.on_script(self.on, action, environment)
        if output is None:
            output = (
                answer(environment) if action == "measure" else "fact\tdisk\tnull_blk\n" if action == "setup" else ""
            )
        # A real script exits with 1 if its setup finds the plan unsupported.
        return ScriptOutput(output, "", int(action == "setup" and "unsupported" in output), 2.0)

    def restore(self) -> dict[str, str]:
        return self.on_restore()

    def wait_for_console(self, text: str, timeout_s: float) -> bool:
        return text in self.console

    def off(self) -> None:
        self.on = None


class RecordingSink:
    """An `EventSink` that records."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.artifacts: list[tuple[ArtifactKind, str, bytes]] = []
        self.consoles: dict[BootKey, bytes] = defaultdict(bytes)

    def event(self, event: RunEvent) -> None:
        self.events.append(event)

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        assert offset == len(self.consoles[boot]), "no gap, no overlap"
        self.consoles[boot] += data

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        self.artifacts.append((kind, name, data))

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [event for event in self.events if isinstance(event, kind)]


def run(
    work: RunJob, device: ScriptedDevice, stop: Stop | None = None, remaining: list[BlockPlan] | None = None
) -> tuple[RunResult, RecordingSink]:
    sink = RecordingSink()
    blocks = work.blocks if remaining is None else remaining
    result = measure(work, blocks, device, sink, stop or Stop(), clock=device.clock)
    assert device.on is None, "the device is left off"
    return result, sink


def key(block: int, position: int, arm: Arm, attempt: int = 0) -> BootKey:
    return BootKey(block=block, position=position, arm=arm, attempt=attempt)
