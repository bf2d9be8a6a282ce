"""Enumerations shared by server, worker and client.

A *state* is the current stage, an *outcome* the result. An outcome is set only in the terminal state, and a terminal
state never changes.
"""

from enum import IntEnum, StrEnum

from .audit_enums import AuditAction as AuditAction
from .audit_enums import AuditOutcome as AuditOutcome
from .bisection_enums import BisectionState as BisectionState
from .bisection_enums import BisectionStepKind as BisectionStepKind
from .bisection_enums import BisectionStepState as BisectionStepState
from .history_enums import ShiftSource as ShiftSource
from .history_enums import ShiftState as ShiftState
from .intake_enums import CommandState as CommandState
from .intake_enums import DecisionReason as DecisionReason
from .intake_enums import DecisionState as DecisionState
from .intake_enums import ForgeHeadState as ForgeHeadState
from .intake_enums import HeadDecision as HeadDecision
from .intake_enums import HeadNews as HeadNews
from .intake_enums import OrderState as OrderState
from .intake_enums import WatchedHeadState as WatchedHeadState
from .outbox_enums import AttemptOutcome as AttemptOutcome
from .outbox_enums import DeliveryKind as DeliveryKind
from .outbox_enums import DeliveryState as DeliveryState
from .outbox_enums import OutboxEvent as OutboxEvent


class ErrorKind(StrEnum):
    """Kind of a failure, by who has to act on it."""

    USER = "user"
    """Fault of the submission: the series does not apply or compile, or the request is invalid."""
    KERNEL = "kernel"
    """Fault of the kernel under test: panic, oops, hang, lockdep, wrong result. Counts against its variant."""
    INFRASTRUCTURE = "infrastructure"
    """Fault of the lab: power, console, network, broker. Retried up to a limit; counts against no kernel."""
    CANCELED = "canceled"


class SubmissionState(StrEnum):
    """State of a submission."""

    APPLYING = "applying"
    BUILDING = "building"
    RUNNING = "running"
    COMPARING = "comparing"
    FINISHED = "finished"


class JobKind(StrEnum):
    """What a worker does in a job."""

    APPLY = "apply"
    """Apply a series to its base."""
    BUILD = "build"
    """Build a kernel."""
    RUN = "run"
    """Boot the kernels of a run on its device."""
    LIST_BRANCHES = "list_branches"
    """List branches and tags of a repository."""
    FIND_THREAD = "find_thread"
    """Find the series of a Message-ID in the mail archives."""
    READ_BRANCH = "read_branch"
    """Read what the patches of a branch change."""
    READ_HEAD = "read_head"
    """Read the head of a pull request or branch on a forge, and its `.wqlab.yaml`."""
    LIST_COMMITS = "list_commits"
    """List the commits of a bisection."""
    READ_LIST = "read_list"
    """Read the next mails of a watched list."""
    PREVIEW_WATCH = "preview_watch"
    """Read the last mails of a list for the preview of a watch."""


class JobState(StrEnum):
    """State of a job."""

    WAITING = "waiting"
    """Its inputs are not ready."""
    QUEUED = "queued"
    """Ready for a worker; a run also needs a free device."""
    RUNNING = "running"
    """Claimed by a worker; the claim has not expired."""
    FINISHED = "finished"


class Outcome(StrEnum):
    """Result of a submission, apply, build or run."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELED = "canceled"


class Arm(StrEnum):
    """Arm of a comparison. In a walk, `patch-K` is the kernel after patch K of a series that has more patches."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    PATCH_1 = "patch-1"
    PATCH_2 = "patch-2"
    PATCH_3 = "patch-3"
    PATCH_4 = "patch-4"
    PATCH_5 = "patch-5"
    PATCH_6 = "patch-6"
    PATCH_7 = "patch-7"
    PATCH_8 = "patch-8"
    PATCH_9 = "patch-9"
    PATCH_10 = "patch-10"
    PATCH_11 = "patch-11"
    PATCH_12 = "patch-12"
    PATCH_13 = "patch-13"
    PATCH_14 = "patch-14"
    PATCH_15 = "patch-15"


PAIR = (Arm.BASELINE, Arm.CANDIDATE)
"""The arms of every series, whether it is walked or not."""
BETWEEN = tuple(arm for arm in Arm if arm not in PAIR)
"""The arms between base and whole series, in the order of the patches."""


class BootState(StrEnum):
    """State of a boot."""

    BOOTING = "booting"
    MEASURING = "measuring"
    FINISHED = "finished"


class DeviceHealth(StrEnum):
    """Health of a device."""

    UNKNOWN = "unknown"
    """Not checked since it was added or released; a health check precedes its first run."""
    GOOD = "good"
    SUSPECT = "suspect"
    """Its last run failed with an infrastructure failure; a health check decides."""
    QUARANTINED = "quarantined"
    """Not used until a maintainer releases it; the reason is recorded."""


class RunPurpose(StrEnum):
    """Purpose of a run."""

    MEASURE = "measure"
    HEALTH_CHECK = "health_check"
    CANARY = "canary"
    """An A/A comparison on an idle device, for its record; it gives way to every other run."""
    TRACE = "trace"
    """Traced boots of a run whose primary metric differs, to count what else differs; they have no samples."""


class CanaryKind(StrEnum):
    """How the arms of a canary, which have the same source, differ."""

    SAME_KERNEL = "same_kernel"
    """Not at all: both boot the golden kernel."""
    NOPS = "nops"
    """By the control series, whose nops no CPU executes: code is placed at other addresses."""
    OTHER_LAYOUT = "other_layout"
    """By the layout: the golden kernel, linked with text and data at other addresses."""


class DeviceStep(StrEnum):
    """Step of a device check, in order; each step needs the steps before it."""

    POWER = "power"
    CONSOLE = "console"
    GOLDEN = "golden"
    KEXEC = "kexec"
    TOPOLOGY = "topology"
    DETECTORS = "detectors"
    FITNESS = "fitness"
    """Required conditions of the device type, clock, memory, and a small verified workload."""
    SCRATCH = "scratch"


class StepOutcome(StrEnum):
    """Result of a step of a device check."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class Direction(StrEnum):
    """Direction in which a metric improves."""

    HIGHER_IS_BETTER = "higher_is_better"
    LOWER_IS_BETTER = "lower_is_better"
    NONE = "none"


class Scale(StrEnum):
    """Scale of a metric's effect."""

    RATIO = "ratio"
    """The effect is log(candidate/baseline), shown in percent."""
    DIFFERENCE = "difference"
    """The effect is candidate - baseline, in the metric's unit."""


class MetricClass(StrEnum):
    """Class of a metric."""

    MECHANISM = "mechanism"
    """Behaviour of the kernel (counts, shares): evidence on emulated devices too."""
    PERFORMANCE = "performance"
    """Speed: evidence on real hardware only."""
    INSTRUMENTED = "instrumented"
    """Instructions and cache line transfers that the emulator counted exactly: evidence on instrumented devices. They
    are no times: contention, prefetch and bandwidth are not part of them."""
    MODELLED = "modelled"
    """A figure of the workload in the virtual time of a modelled device. No plan's file states it."""


class Evidence(StrEnum):
    """Kind of evidence that a figure is on the device where it was measured."""

    MECHANISM = "mechanism"
    PERFORMANCE = "performance"
    INSTRUMENTED = "instrumented"
    """An exact count by the emulator; n counts seeds."""
    MODELLED = "modelled"
    """A figure in virtual time, from the stated costs of a cost profile; n counts seeds. It is no measurement."""
    NONE = "none"
    """A performance metric on an emulated device."""


SEEDED = frozenset({Evidence.INSTRUMENTED, Evidence.MODELLED})
"""Evidence of devices that repeat a boot exactly, so that n counts seeds. Neither is mixed with other evidence."""


class Role(StrEnum):
    """Role of a metric in a plan."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    EXPLANATORY = "explanatory"


class Question(StrEnum):
    """Kind of a comparison."""

    KERNEL = "kernel"
    """Candidate kernel against baseline kernel, same setting."""
    SETTING = "setting"
    """A setting against the reference setting, same kernel, paired within the boot."""


class Verdict(StrEnum):
    """Verdict of a comparison; docs/comparison.md defines each."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    EQUIVALENT = "equivalent"
    BELOW_THRESHOLD = "below_threshold"
    INCONCLUSIVE = "inconclusive"
    WITHHELD = "withheld"
    """Of a modelled figure: it is not validated with the cost profile, or its change is within the noise floor."""
    NOT_EXERCISED = "not_exercised"
    """Of two kernels: no changed line ran, so that no figure can say anything about the series."""
    NO_EVIDENCE = "no_evidence"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


VERDICT_ORDER = (
    Verdict.FAILED,
    Verdict.REGRESSION,
    Verdict.IMPROVEMENT,
    Verdict.BELOW_THRESHOLD,
    Verdict.EQUIVALENT,
    Verdict.INCONCLUSIVE,
    Verdict.WITHHELD,
    Verdict.NOT_EXERCISED,
    Verdict.UNSUPPORTED,
    Verdict.NO_EVIDENCE,
)
"""Order in which verdicts are listed: most severe first."""


class Ran(StrEnum):
    """Whether changed lines ran in the boots of their kernel."""

    MEASURED = "measured"
    """In a window in which the device counted."""
    OUTSIDE = "outside"
    """Only outside of the windows: while the kernel booted, or in the plan's preparation."""
    NEVER = "never"
    UNKNOWN = "unknown"
    """The file is not part of the kernel's image, or the lines are no code: a variable, a type, a macro, an option."""


class NotMeasuredCause(StrEnum):
    """Cause of a missing figure."""

    LACKING = "lacking"
    """The kernel or device lacks the setting, event or program that the measurement needs."""
    SETTING_NOT_USED = "setting_not_used"
    """The kernel did not use the requested setting."""
    NO_SAMPLES = "no_samples"
    """The workload ended successfully and gave no data."""
    EVENTS_LOST = "events_lost"
    """The trace buffer lost events."""
    UNRELIABLE = "unreliable"
    """The data are too few or contradict each other."""
    RUN_FAILED = "run_failed"
    """The run failed before."""
    UNPAIRED = "unpaired"
    """No block, or no boot, has the figures of both sides."""
    NOT_RUN = "not_run"
    """It was not run, or nothing is known of it."""


UNEXPECTED_CAUSES = frozenset({NotMeasuredCause.NO_SAMPLES, NotMeasuredCause.EVENTS_LOST, NotMeasuredCause.UNRELIABLE})
"""Causes of a boot that gave no figure although kernel and device support the measurement. On one side only they are a
difference that nothing explains, not a missing feature."""


class TraceMode(StrEnum):
    """Kind of repetition that a metric is measured in. Tracing costs time, so timed metrics are untraced."""

    TRACED = "traced"
    UNTRACED = "untraced"


class FindingKind(StrEnum):
    """Kind of kernel report that a detector finds on a console, or of a failure that the lab detects."""

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
    """No answer and no console output within the time limit."""
    WRONG_RESULT = "wrong_result"
    """The verification of a workload failed."""


STALLS = frozenset({FindingKind.HUNG_TASK, FindingKind.LOCKUP, FindingKind.WORKQUEUE_STALL, FindingKind.RCU_STALL})
"""Kernel reports of tasks or CPUs that make no progress. HANG is not among them: the lab reports it for a silent
device."""


class EventKind(StrEnum):
    """Kind of an event in a submission's event stream."""

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
    """Kind of an artifact."""

    SERIES = "series"
    BUNDLE = "bundle"
    KERNEL = "kernel"
    VMLINUX = "vmlinux"
    SYSTEM_MAP = "system_map"
    CONFIG = "config"
    MODULES = "modules"
    """Modules of the kernel itself, as `make modules_install` installs them."""
    MODULE = "module"
    """One of the lab's modules (kernels/modules), built against the kernel."""
    BUILD_LOG = "build_log"
    METADATA = "metadata"
    CONSOLE = "console"
    RAW_OUTPUT = "raw_output"
    SOURCES = "sources"
    """Of a build: zip archive of the source files that were compiled into vmlinux."""
    WORKQUEUE_LAYOUT = "workqueue_layout"
    """Of a build: offsets of the workqueue counters in the kernel's memory."""
    WORKQUEUE_SERIES = "workqueue_series"
    """Of a boot: the workqueue counters once a second, as written by `workqueue_series.write`."""
    INSTRUMENT_PROFILE = "instrument_profile"
    """Of a boot on an instrumented device: exact counts by function and cache line, as written by
    `instrument.write`."""
    TRACED_COUNTS = "traced_counts"
    """What histograms of the tracer counted in a traced boot, or in traced repetitions of a measured one, as written by
    `traced_counts.write`."""


class Scope(StrEnum):
    """Rights of an API token. Each scope includes those before it, except `worker`, which is separate."""

    READ = "read"
    SUBMIT = "submit"
    MAINTAIN = "maintain"
    ADMIN = "admin"
    WORKER = "worker"


class UserRole(StrEnum):
    """Role of a user: grants the corresponding scope and those before it."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    MAINTAINER = "maintainer"
    ADMIN = "admin"


class SignInMethod(StrEnum):
    """How a user signs in."""

    PASSWORD = "password"  # noqa: S105
    OIDC = "oidc"
    """With the lab's OpenID provider, whose groups give the role."""


class ExitCode(IntEnum):
    """Exit codes of the `wqlab` command; precedence 4 > 3 > 1 > 0."""

    DONE = 0
    REGRESSION = 1
    USAGE = 2
    SERIES_FAILED = 3
    INFRASTRUCTURE = 4
