"""Tables of runs, run attempts, block attempts, boots and consoles."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, ForeignKey, Index, Text, UniqueConstraint, func, select, text
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from wqlab_contracts.enums import PAIR, Arm, BootState, CanaryKind, JobKind, Outcome, RunPurpose, Verdict
from wqlab_contracts.messages import Failure, MeasuredTopology, RanLines
from wqlab_contracts.messages.looks import LookRecord
from wqlab_contracts.messages.walk import WalkStep
from wqlab_contracts.specs import Backend, DeviceType, KernelRecipe, Profile, TestPlan

from .base import Base
from .job import Job

if TYPE_CHECKING:
    from .builds import Build
    from .measurements import Finding


class Run(Job):
    """One plan on one device, with every boot of both kernels. Inputs are a snapshot, so edited YAML has no effect."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_plan_name_device_type_id", "plan_name", "device_type", "id"),
        Index("ix_runs_canaries", "wanted_device", "id", postgresql_where=text("purpose = 'canary'")),
    )

    __mapper_args__ = {"polymorphic_identity": JobKind.RUN}

    id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    purpose: Mapped[RunPurpose]
    target: Mapped[int] = mapped_column(default=0)
    """Index in the submission's targets."""
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
    modules: Mapped[dict[str, dict[str, str]]]
    """The recipe's modules: name -> file -> text."""
    baseline_build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    candidate_build_id: Mapped[int | None] = mapped_column(ForeignKey("builds.id"))
    layouts: Mapped[int] = mapped_column(default=1, server_default=text("1"))
    """Layouts in which the run's kernels are linked; `layouts.layout_of` gives that of a boot."""
    seed: Mapped[int] = mapped_column(BigInteger)
    blocks: Mapped[list[list[Arm]]]
    """Arms of each block in boot order, of all blocks that the run may have."""
    looks: Mapped[list[int]] = mapped_column(default=list, server_default=text("'[]'::jsonb"))
    """Numbers of blocks after which the run may stop; empty if it always has all blocks."""
    looked: Mapped[list[LookRecord]] = mapped_column(default=list, server_default=text("'[]'::jsonb"))
    """The looks that have taken place, in order."""
    walk: Mapped[list[WalkStep]] = mapped_column(default=list, server_default=text("'[]'::jsonb"))
    """The kernels after each patch of a series that is walked; empty for other runs and until the series is applied."""
    wanted_device: Mapped[str | None] = mapped_column(ForeignKey("devices.name"), index=True)
    """The one device that a health check or canary is for, or on which the submission wants to measure."""
    wanted_backend: Mapped[Backend | None] = mapped_column(Text)
    """Restrict the run to devices with this backend; null allows any."""
    device_name: Mapped[str | None] = mapped_column(ForeignKey("devices.name"), index=True)
    """The run's current or last device."""
    consoles_deleted_at: Mapped[datetime | None]
    """When retention deleted the consoles of the run's boots."""
    compared_at: Mapped[datetime | None]
    verdict: Mapped[Verdict | None]
    """Verdict of the target as in the report; set when the samples are compared."""
    headline: Mapped[str] = mapped_column(default="")

    baseline_build: Mapped[Build | None] = relationship(foreign_keys=[baseline_build_id], lazy="raise")
    candidate_build: Mapped[Build | None] = relationship(foreign_keys=[candidate_build_id], lazy="raise")
    canary: Mapped[CanaryRun | None] = relationship(lazy="raise")
    boots: Mapped[list[Boot]] = relationship(back_populates="run", lazy="raise", order_by="Boot.id")
    if TYPE_CHECKING:
        boots_done: Mapped[int]
        """Number of boots in finished blocks."""

    @property
    def byte_identical(self) -> bool:
        """Return True if the run passed without a boot, because its kernels are byte-identical."""
        return self.outcome is Outcome.PASSED and self.attempts == 0

    @property
    def build_ids(self) -> dict[Arm, int | None]:
        """The build of each arm. Of byte-identical kernels, which share an arm, the last is named."""
        between = {step.arm: step.build_id for step in self.walk if step.arm not in PAIR}
        return {Arm.BASELINE: self.baseline_build_id, Arm.CANDIDATE: self.candidate_build_id, **between}

    @property
    def blocks_due(self) -> int:
        """Number of blocks up to the next look; of a run that has stopped, those up to its last look."""
        return blocks_due(self.blocks, self.looks, self.looked)

    @property
    def boots_planned(self) -> int:
        """Number of boots in all blocks that the run may have, without those that a look found not to be needed."""
        return sum(len(arms) for arms in needed_blocks(self.blocks, self.looked))


class CanaryRun(Base):
    """A run with the purpose CANARY."""

    __tablename__ = "canaries"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    kind: Mapped[CanaryKind]


def needed_blocks(blocks: Sequence[list[Arm]], looked: Sequence[LookRecord]) -> Sequence[list[Arm]]:
    """Return the blocks without those that the last look found not to be needed. Pure."""
    return blocks[: looked[-1].blocks] if looked and looked[-1].stops else blocks


def blocks_due(blocks: Sequence[list[Arm]], looks: Sequence[int], looked: Sequence[LookRecord]) -> int:
    """Return the number of blocks up to the next look. Pure."""
    if looked and looked[-1].stops:
        return looked[-1].blocks
    seen = looked[-1].blocks if looked else 0
    return next((number for number in looks if number > seen), len(blocks))


class RunAttempt(Base):
    """One assignment of a device to a run, and how the attempt ended."""

    __tablename__ = "run_attempts"
    __table_args__ = (
        Index("ix_run_attempts_started_at", "started_at", "run_id", "number"),
        Index("ix_run_attempts_finished_at", "finished_at"),
        Index("ix_run_attempts_device_name", "device_name", "started_at"),
    )

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


class BlockAttempt(Base):
    """Result of one attempt of a block: finished, or discarded with a reason."""

    __tablename__ = "block_attempts"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    block: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    finished: Mapped[bool]
    """False: discarded."""
    device_name: Mapped[str] = mapped_column(ForeignKey("devices.name"))
    arm: Mapped[Arm | None]
    """Arm that a discard counts against; null if the lab is at fault or the run was canceled."""
    failure: Mapped[Failure | None]
    at: Mapped[datetime] = mapped_column(server_default=func.now())


class Boot(Base):
    """One start of a variant from the golden system."""

    __tablename__ = "boots"
    __table_args__ = (
        UniqueConstraint("run_id", "block", "position", "arm", "attempt"),
        Index("ix_boots_device_name", "device_name", "id"),
    )

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
    """True once the boot's block has finished; only samples of valid boots are compared."""
    kernel_boot_id: Mapped[str | None]
    token: Mapped[str | None]
    build_id_gnu: Mapped[str | None]
    release: Mapped[str | None]
    cmdline: Mapped[str | None]
    topology: Mapped[MeasuredTopology | None]
    environment: Mapped[dict[str, str]] = mapped_column(default=dict)
    commands: Mapped[dict[str, str]] = mapped_column(default=dict)
    """Scenario -> exact command line of the workload."""
    ran: Mapped[list[RanLines]] = mapped_column(default=list)
    """Which changed lines of its kernel ran; empty if the device does not report it."""
    started_at: Mapped[datetime]
    verified_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    golden_s: Mapped[float | None]
    kexec_s: Mapped[float | None]
    workload_s: Mapped[float | None]
    overhead_s: Mapped[float | None]
    console_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    """Counter: number of stored console bytes."""
    console_truncated: Mapped[bool] = mapped_column(default=False)
    console_started_at: Mapped[datetime | None]

    run: Mapped[Run] = relationship(back_populates="boots", lazy="raise")
    findings: Mapped[list[Finding]] = relationship(lazy="raise", order_by="Finding.id")


Run.boots_done = column_property(
    select(func.count()).where(Boot.run_id == Run.id, Boot.valid).correlate_except(Boot).scalar_subquery()
)


class ConsoleChunk(Base):
    """A piece of a boot's console from byte `offset`."""

    __tablename__ = "console_chunks"

    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    offset: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    data: Mapped[bytes]
