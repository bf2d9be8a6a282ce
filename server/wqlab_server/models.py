"""Every table. Rows are the truth of the lab; no column holds what another can tell, except counters marked as such."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    BigInteger,
    Dialect,
    Enum,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Sequence,
    String,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from wqlab_contracts.api import Comparison as ComparisonData
from wqlab_contracts.api import SubmissionRequest
from wqlab_contracts.enums import (
    Arm,
    ArtifactKind,
    BootState,
    DeviceHealth,
    EventKind,
    FindingKind,
    JobState,
    Outcome,
    Question,
    Role,
    RunPurpose,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import ApplyResult, BuildResult, DeviceFacts, Failure, MeasuredTopology, Source
from wqlab_contracts.specs import DeviceType, KernelRecipe, Profile, TestPlan, Tree


class Typed(TypeDecorator[Any]):
    """A JSONB column whose values are contract models, validated when read."""

    impl = JSONB
    cache_ok = True

    def __init__(self, type_: Any) -> None:
        super().__init__(none_as_null=True)
        self.type_ = type_
        self._adapter: TypeAdapter[Any] = TypeAdapter(type_)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else self._adapter.dump_python(value, mode="json", by_alias=True)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else self._adapter.validate_python(value)

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        return self  # `column == model` compares with the model as JSON


def closed(enum: type[StrEnum]) -> Enum:
    """A closed vocabulary as text with a check constraint (a new member needs a migration)."""
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in enum.__name__).lstrip("_")
    return Enum(
        enum,
        name=name,
        native_enum=False,
        create_constraint=True,
        length=32,
        values_callable=lambda e: [m.value for m in e],
    )


Timestamp = TIMESTAMP(timezone=True)


_COLUMN_TYPES: dict[Any, Any] = {
    datetime: Timestamp,
    str: Text,
    bytes: LargeBinary,
    **{
        enum: closed(enum)
        for enum in (
            Arm,
            ArtifactKind,
            BootState,
            DeviceHealth,
            EventKind,
            FindingKind,
            JobState,
            Outcome,
            Question,
            Role,
            RunPurpose,
            SubmissionState,
            Verdict,
        )
    },
    **{
        type_: Typed(type_)
        for type_ in (
            ApplyResult,
            BuildResult,
            ComparisonData,
            DeviceFacts,
            DeviceType,
            Failure,
            KernelRecipe,
            MeasuredTopology,
            Profile,
            Source,
            SubmissionRequest,
            TestPlan,
            Tree,
            dict[str, str],
            dict[str, Any],
            list[list[Arm]],
        )
    },
}


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = _COLUMN_TYPES


fences = Sequence("fences", metadata=Base.metadata)
"""One counter for every claim and lease: a number is never given twice, so no stale holder can pass for another."""


class Token(Base):
    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    owner: Mapped[str]
    """Who acts: a submission made with this token belongs to this name."""
    digest: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of the secret, in hex."""
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    lab: Mapped[str | None]
    """A worker token may be bound to one lab's runs."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class Submission(Base):
    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("owner", "idempotency_key"),
        Index("ix_submissions_unfinished", "id", postgresql_where=text("state <> 'finished'")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    request: Mapped[SubmissionRequest]
    owner: Mapped[str] = mapped_column(index=True)
    idempotency_key: Mapped[str | None]
    retry_of: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    title: Mapped[str] = mapped_column(default="")
    series_key: Mapped[str] = mapped_column(default="", index=True)
    tree: Mapped[str]
    priority: Mapped[int]
    state: Mapped[SubmissionState] = mapped_column(default=SubmissionState.APPLYING)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    exit_code: Mapped[int | None]
    """How `wqlab submit --wait` ends; set with the outcome."""
    cancel_requested_at: Mapped[datetime | None]
    event_seq: Mapped[int] = mapped_column(default=0)
    """Number of its last event (the row lock makes the numbers dense)."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]

    apply: Mapped[Apply] = relationship(back_populates="submission", lazy="raise", uselist=False)
    builds: Mapped[list[SubmissionBuild]] = relationship(lazy="raise", order_by="SubmissionBuild.id")
    runs: Mapped[list[Run]] = relationship(back_populates="submission", lazy="raise", order_by="Run.id")


class Job:
    """Columns of everything a worker claims."""

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)
    state: Mapped[JobState] = mapped_column(default=JobState.WAITING, index=True)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    attempts: Mapped[int] = mapped_column(default=0)
    """How often it was given out."""
    fence: Mapped[int | None] = mapped_column(BigInteger)
    """Of the present or last holder."""
    holder: Mapped[str | None]
    claim_nonce: Mapped[str | None]
    """Of the request that made the present or last claim; knows its repetition."""
    expires_at: Mapped[datetime | None]
    """When the holder's claim ends unless it says that it lives; only the database's clock counts."""
    cancel_requested_at: Mapped[datetime | None]
    nudged_at: Mapped[datetime | None]
    nudges: Mapped[int] = mapped_column(default=0)
    """Messages sent since it was last queued."""
    progress: Mapped[str] = mapped_column(default="")
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    """When it was first claimed."""
    finished_at: Mapped[datetime | None]


class Apply(Job, Base):
    """From what was submitted to exact source trees. Without a submission: the lab's own, for the golden kernel."""

    __tablename__ = "applies"

    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), unique=True)
    tree: Mapped[Tree]
    toolchain: Mapped[str]
    result: Mapped[ApplyResult | None]

    submission: Mapped[Submission | None] = relationship(back_populates="apply", lazy="raise")


class Build(Job, Base):
    __tablename__ = "builds"
    __table_args__ = (
        # Equal content is never built twice: a second row needs the first to have failed.
        Index(
            "uq_builds_key_live",
            "key",
            unique=True,
            postgresql_where=text("outcome IS NULL OR outcome = 'passed'"),
        ),
        Index("ix_builds_key", "key"),
    )

    key: Mapped[str]
    source: Mapped[Source]
    recipe: Mapped[KernelRecipe]
    arch: Mapped[str]
    emulated: Mapped[bool]
    fragments: Mapped[dict[str, str]]
    toolchain: Mapped[str]
    trusted: Mapped[bool]
    """The source is a commit of an operator's tree."""
    result: Mapped[BuildResult | None]


class SubmissionBuild(Base):
    """The part a build plays in a submission. One build may serve many."""

    __tablename__ = "submission_builds"
    __table_args__ = (UniqueConstraint("submission_id", "arm", "recipe", "arch", "emulated"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    build_id: Mapped[int] = mapped_column(ForeignKey("builds.id"), index=True)
    arm: Mapped[Arm]
    recipe: Mapped[str]
    arch: Mapped[str]
    emulated: Mapped[bool]

    build: Mapped[Build] = relationship(lazy="raise")


class Lab(Base):
    """What a lab's worker published of its bench."""

    __tablename__ = "labs"

    name: Mapped[str] = mapped_column(primary_key=True)
    capacity: Mapped[int]
    """Boards it can run at once."""
    published_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Device(Base):
    """A unit of the device-types folder; a row outlives its YAML so that old runs still name their board."""

    __tablename__ = "devices"

    name: Mapped[str] = mapped_column(primary_key=True)
    device_type: Mapped[str] = mapped_column(index=True)
    lab: Mapped[str]
    facts: Mapped[DeviceFacts]
    health: Mapped[DeviceHealth] = mapped_column(default=DeviceHealth.UNKNOWN)
    health_reason: Mapped[str] = mapped_column(default="")
    health_checked_at: Mapped[datetime | None]
    measured_topology: Mapped[MeasuredTopology | None]
    dirty: Mapped[bool] = mapped_column(default=False)
    """Its last holder did not give it back; the next one releases the place and power-cycles first."""
    retired_at: Mapped[datetime | None]
    """Gone from the YAML."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    lease: Mapped[Lease | None] = relationship(back_populates="device", lazy="raise", uselist=False)


class Lease(Base):
    __tablename__ = "leases"

    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), unique=True)
    fence: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(default="")
    """Empty until a worker has claimed the run."""
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    device: Mapped[Device] = relationship(back_populates="lease", lazy="raise")


class Run(Job, Base):
    """One plan on one unit with every boot of both kernels. Inputs are a snapshot: an edited YAML changes nothing."""

    __tablename__ = "runs"

    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    purpose: Mapped[RunPurpose]
    target: Mapped[int] = mapped_column(default=0)
    """Index in the submission's targets."""
    owner: Mapped[str]
    priority: Mapped[int]
    device_type: Mapped[str] = mapped_column(index=True)
    device_spec: Mapped[DeviceType]
    plan_name: Mapped[str]
    plan: Mapped[TestPlan]
    profile: Mapped[Profile]
    """With the submission's settings and parameters applied."""
    files: Mapped[dict[str, str]]
    recipe: Mapped[KernelRecipe]
    fragments: Mapped[dict[str, str]]
    """The recipe's fragments for this device type: name -> text in merge order."""
    baseline_build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    candidate_build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    seed: Mapped[int] = mapped_column(BigInteger)
    blocks: Mapped[list[list[Arm]]]
    """Arms of each block in boot order."""
    wanted_device: Mapped[str | None] = mapped_column(ForeignKey("devices.name"))
    """A health check is for one unit."""
    device_name: Mapped[str | None] = mapped_column(ForeignKey("devices.name"), index=True)
    """The unit it has or had last."""
    boots_done: Mapped[int] = mapped_column(default=0)
    """Counter: boots in finished blocks."""
    compared_at: Mapped[datetime | None]

    submission: Mapped[Submission | None] = relationship(back_populates="runs", lazy="raise")
    baseline_build: Mapped[Build | None] = relationship(foreign_keys=[baseline_build_id], lazy="raise")
    candidate_build: Mapped[Build | None] = relationship(foreign_keys=[candidate_build_id], lazy="raise")
    boots: Mapped[list[Boot]] = relationship(back_populates="run", lazy="raise", order_by="Boot.id")

    @property
    def boots_planned(self) -> int:
        return sum(len(arms) for arms in self.blocks)


class RunAttempt(Base):
    """Each time a run was given a device, and how that ended."""

    __tablename__ = "run_attempts"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """From 1."""
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    fence: Mapped[int] = mapped_column(BigInteger)
    holder: Mapped[str] = mapped_column(default="")
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    started_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]


class Boot(Base):
    __tablename__ = "boots"
    __table_args__ = (UniqueConstraint("run_id", "block", "position", "arm", "attempt"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    block: Mapped[int]
    position: Mapped[int]
    arm: Mapped[Arm]
    attempt: Mapped[int]
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    fence: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[BootState] = mapped_column(default=BootState.BOOTING)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    valid: Mapped[bool] = mapped_column(default=False)
    """Its block finished: its samples are compared."""
    kernel_boot_id: Mapped[str | None]
    token: Mapped[str | None]
    build_id_gnu: Mapped[str | None]
    release: Mapped[str | None]
    cmdline: Mapped[str | None]
    topology: Mapped[MeasuredTopology | None]
    environment: Mapped[dict[str, str]] = mapped_column(default=dict)
    commands: Mapped[dict[str, str]] = mapped_column(default=dict)
    """Scenario -> the exact workload command line."""
    started_at: Mapped[datetime]
    verified_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    golden_s: Mapped[float | None]
    kexec_s: Mapped[float | None]
    workload_s: Mapped[float | None]
    overhead_s: Mapped[float | None]
    console_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    """Counter: where the kept copy of its console ends."""
    console_truncated: Mapped[bool] = mapped_column(default=False)
    console_started_at: Mapped[datetime | None]

    run: Mapped[Run] = relationship(back_populates="boots", lazy="raise")
    findings: Mapped[list[Finding]] = relationship(lazy="raise", order_by="Finding.id")


class Sample(Base):
    __tablename__ = "samples"
    __table_args__ = (Index("ix_samples_run_id", "run_id"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    scenario: Mapped[str] = mapped_column(primary_key=True)
    setting: Mapped[str] = mapped_column(primary_key=True)
    repetition: Mapped[int] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
    warmup: Mapped[bool]


class Finding(Base):
    """Something a detector saw on a boot's console."""

    __tablename__ = "findings"
    __table_args__ = (UniqueConstraint("boot_id", "kind", "console_offset", "title"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"))
    kind: Mapped[FindingKind]
    title: Mapped[str]
    excerpt: Mapped[str]
    console_offset: Mapped[int] = mapped_column(BigInteger)
    fatal: Mapped[bool]
    at: Mapped[datetime]


class Unsupported(Base):
    """A setting (metric null) or metric that this kernel or board lacks."""

    __tablename__ = "unsupported"
    __table_args__ = (UniqueConstraint("boot_id", "scenario", "setting", "metric", postgresql_nulls_not_distinct=True),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"))
    arm: Mapped[Arm]
    scenario: Mapped[str]
    setting: Mapped[str]
    metric: Mapped[str | None]
    reason: Mapped[str]


class BlockAttempt(Base):
    """How one try of one block ended: whole, or thrown away with its reason."""

    __tablename__ = "block_attempts"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    block: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    finished: Mapped[bool]
    """False: discarded."""
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    arm: Mapped[Arm | None]
    failure: Mapped[Failure | None]
    at: Mapped[datetime] = mapped_column(server_default=func.now())


class ConsoleChunk(Base):
    __tablename__ = "console_chunks"

    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    offset: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    data: Mapped[bytes]


class Event(Base):
    __tablename__ = "events"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    kind: Mapped[EventKind]
    build_id: Mapped[int | None]
    run_id: Mapped[int | None]
    boot_id: Mapped[int | None]
    data: Mapped[dict[str, Any]]


class Artifact(Base):
    """Bytes in the content store."""

    __tablename__ = "artifacts"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ArtifactLink(Base):
    """What an artifact is to the apply, build or run that uploaded it (exactly one of the three)."""

    __tablename__ = "artifact_links"
    __table_args__ = (
        UniqueConstraint("apply_id", "build_id", "run_id", "kind", "name", postgresql_nulls_not_distinct=True),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(ForeignKey("artifacts.sha256"), index=True)
    apply_id: Mapped[int | None] = mapped_column(ForeignKey("applies.id"))
    build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"))
    kind: Mapped[ArtifactKind]
    name: Mapped[str]

    artifact: Mapped[Artifact] = relationship(lazy="raise")


class Comparison(Base):
    """One verdict of a run; `data` is what the API shows, the columns are for filtering."""

    __tablename__ = "comparisons"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """Order in the report."""
    question: Mapped[Question]
    role: Mapped[Role]
    verdict: Mapped[Verdict | None]
    data: Mapped[ComparisonData]


class BootValue(Base):
    """One boot's value of one metric (the median of its repetitions): what the comparisons are made of."""

    __tablename__ = "boot_values"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    scenario: Mapped[str] = mapped_column(primary_key=True)
    setting: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
