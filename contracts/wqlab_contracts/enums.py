"""The closed vocabularies that server, worker and client share.

A *state* says where something is, an *outcome* how it ended; an outcome is only set in the terminal state, and a
terminal state never changes.
"""

from enum import IntEnum, StrEnum


class ErrorKind(StrEnum):
    """Who has to act on a failure."""

    USER = "user"
    """The submission: a series that does not apply or compile, a request that makes no sense."""
    KERNEL = "kernel"
    """The kernel under test: panic, oops, hang, lockdep, wrong result. Counts against the variant that showed it."""
    INFRASTRUCTURE = "infrastructure"
    """The lab: power, console, network, broker. Retried with a bound, never held against a kernel."""
    CANCELED = "canceled"


class SubmissionState(StrEnum):
    APPLYING = "applying"
    BUILDING = "building"
    RUNNING = "running"
    COMPARING = "comparing"
    FINISHED = "finished"


class JobState(StrEnum):
    """Where an apply, a build or a run is."""

    WAITING = "waiting"
    """Its inputs are not there yet."""
    QUEUED = "queued"
    """A worker (for a run also: a device) may take it."""
    RUNNING = "running"
    """A worker has claimed it and its claim has not expired."""
    FINISHED = "finished"


class Outcome(StrEnum):
    """How a submission, apply, build or run ended."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELED = "canceled"


class Arm(StrEnum):
    BASELINE = "baseline"
    CANDIDATE = "candidate"


class BootState(StrEnum):
    BOOTING = "booting"
    MEASURING = "measuring"
    FINISHED = "finished"


class DeviceHealth(StrEnum):
    UNKNOWN = "unknown"
    """Never checked since it was added or released; a health check comes before its first run."""
    GOOD = "good"
    SUSPECT = "suspect"
    """Its last run failed by infrastructure; a health check decides."""
    QUARANTINED = "quarantined"
    """Out of the pool, with a reason, until a maintainer releases it."""


class RunPurpose(StrEnum):
    MEASURE = "measure"
    HEALTH_CHECK = "health_check"
    NOISE = "noise"
    """Two arms of one kernel: what the lab measures where there is no difference."""


class DeviceStep(StrEnum):
    """What a check of a device looks at, in this order: each needs those before it."""

    POWER = "power"
    CONSOLE = "console"
    GOLDEN = "golden"
    KEXEC = "kexec"
    TOPOLOGY = "topology"
    DETECTORS = "detectors"
    FITNESS = "fitness"
    """The conditions that the type requires, clock, memory, and a small verified workload."""
    SCRATCH = "scratch"
    NOISE = "noise"


class StepOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class Direction(StrEnum):
    HIGHER_IS_BETTER = "higher_is_better"
    LOWER_IS_BETTER = "lower_is_better"
    NONE = "none"


class Scale(StrEnum):
    RATIO = "ratio"
    """Effect is log(candidate/baseline), shown in percent."""
    DIFFERENCE = "difference"
    """Effect is candidate - baseline, in the metric's unit."""


class MetricClass(StrEnum):
    MECHANISM = "mechanism"
    """What the kernel did (counts, shares): evidence on emulated devices too."""
    PERFORMANCE = "performance"
    """How fast it did it: evidence on real hardware only."""


class Evidence(StrEnum):
    """What a figure proves on the device where it was taken."""

    MECHANISM = "mechanism"
    PERFORMANCE = "performance"
    NONE = "none"
    """A performance metric on an emulated device."""


class Role(StrEnum):
    PRIMARY = "primary"
    SECONDARY = "secondary"
    EXPLANATORY = "explanatory"


class Question(StrEnum):
    KERNEL = "kernel"
    """Candidate kernel against baseline kernel, same setting."""
    SETTING = "setting"
    """A setting against the reference setting, same kernel, paired within the boot."""


class Verdict(StrEnum):
    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    EQUIVALENT = "equivalent"
    BELOW_THRESHOLD = "below_threshold"
    INCONCLUSIVE = "inconclusive"
    NO_EVIDENCE = "no_evidence"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


class TraceMode(StrEnum):
    """Which kind of repetition a metric is taken from: tracing costs time, so neither kind serves both."""

    TRACED = "traced"
    UNTRACED = "untraced"


class FindingKind(StrEnum):
    """What a detector can see on a kernel's console."""

    PANIC = "panic"
    OOPS = "oops"
    BUG = "bug"
    WARNING = "warning"
    LOCKDEP = "lockdep"
    HUNG_TASK = "hung_task"
    LOCKUP = "lockup"
    WORKQUEUE_STALL = "workqueue_stall"
    RCU_STALL = "rcu_stall"
    KASAN = "kasan"
    HANG = "hang"
    """No answer and no console output within the time allowed."""
    WRONG_RESULT = "wrong_result"
    """A workload's own verification failed."""


STALLS = frozenset({FindingKind.HUNG_TASK, FindingKind.LOCKUP, FindingKind.WORKQUEUE_STALL, FindingKind.RCU_STALL})
"""What the kernel reports of tasks and CPUs that do not get on; HANG is the lab's own word for a silent device."""


class EventKind(StrEnum):
    """What can appear in a submission's event stream."""

    SUBMISSION_STATE = "submission_state"
    APPLY_STATE = "apply_state"
    BUILD_STATE = "build_state"
    BUILD_PROGRESS = "build_progress"
    RUN_STATE = "run_state"
    RUN_PROGRESS = "run_progress"
    BOOT_STATE = "boot_state"
    BLOCK_FINISHED = "block_finished"
    BLOCK_DISCARDED = "block_discarded"
    SAMPLES = "samples"
    UNSUPPORTED = "unsupported"
    FINDING = "finding"
    ATTEMPT_FAILED = "attempt_failed"
    REPORT_READY = "report_ready"


class ArtifactKind(StrEnum):
    SERIES = "series"
    BUNDLE = "bundle"
    KERNEL = "kernel"
    VMLINUX = "vmlinux"
    SYSTEM_MAP = "system_map"
    CONFIG = "config"
    MODULES = "modules"
    """The kernel's own, as they would be installed."""
    MODULE = "module"
    """One of the lab's (kernels/modules), built against the kernel."""
    BUILD_LOG = "build_log"
    METADATA = "metadata"
    CONSOLE = "console"
    RAW_OUTPUT = "raw_output"
    WORKQUEUE_LAYOUT = "workqueue_layout"
    """Of a build: where its kernel keeps its workqueues' counters."""
    WORKQUEUE_SERIES = "workqueue_series"
    """Of a boot: those counters once a second, as `workqueues.write` makes them."""


class Scope(StrEnum):
    """What an API token may do; each role holds its own scope and those before it. `worker` stands apart."""

    READ = "read"
    SUBMIT = "submit"
    MAINTAIN = "maintain"
    ADMIN = "admin"
    WORKER = "worker"


class UserRole(StrEnum):
    """What a user may do: the scope of the same meaning, and those before it."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    MAINTAINER = "maintainer"
    ADMIN = "admin"


class ExitCode(IntEnum):
    """Exit codes of the `wqlab` command; precedence 4 > 3 > 1 > 0."""

    DONE = 0
    REGRESSION = 1
    USAGE = 2
    SERIES_FAILED = 3
    INFRASTRUCTURE = 4
