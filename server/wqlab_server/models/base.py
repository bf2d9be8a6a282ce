"""Map Python types to column types, and hold the registry of tables."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Dialect, Enum, LargeBinary, MetaData, Sequence, Text, event, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

from wqlab_contracts import enums
from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.api.history import HistoryLevel
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.watches import PreviewedSeriesList
from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.mail import OutgoingMail
from wqlab_contracts.messages import (
    CheckStep,
    CommitRange,
    DeviceFacts,
    Failure,
    LavaPool,
    MeasuredTopology,
    RanLines,
    Source,
    StackFrame,
)
from wqlab_contracts.messages.forge_listings import ForgeListing
from wqlab_contracts.messages.list_mails import ListMail
from wqlab_contracts.messages.looks import LookRecord
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_contracts.messages.storage import StorageArea
from wqlab_contracts.messages.walk import WalkStep
from wqlab_contracts.specs import DeviceType, KernelRecipe, ListWatch, Profile, TestPlan, Tree


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
    """Return a text column type with a check constraint for the enum's values; a new member needs a migration."""
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
            enums.Arm,
            enums.ArtifactKind,
            enums.AttemptOutcome,
            enums.AuditAction,
            enums.AuditOutcome,
            enums.BisectionState,
            enums.BisectionStepKind,
            enums.BisectionStepState,
            enums.BootState,
            enums.CanaryKind,
            enums.CommandState,
            enums.DecisionReason,
            enums.DecisionState,
            enums.DeliveryKind,
            enums.DeliveryState,
            enums.DeviceHealth,
            enums.Direction,
            enums.EventKind,
            enums.Evidence,
            enums.FindingKind,
            enums.HeadDecision,
            enums.HeadNews,
            enums.JobKind,
            enums.JobState,
            enums.NotMeasuredCause,
            enums.OrderState,
            enums.OutboxEvent,
            enums.Outcome,
            enums.Question,
            enums.Role,
            enums.RunPurpose,
            enums.Scale,
            enums.ShiftSource,
            enums.ShiftState,
            enums.SubmissionState,
            enums.UserRole,
            enums.Verdict,
            enums.WatchedHeadState,
        )
    },
    **{
        type_: Typed(type_)
        for type_ in (
            BisectionRequest,
            CommitRange,
            ComparisonData,
            DeviceFacts,
            DeviceType,
            Failure,
            ForgeListing,
            KernelRecipe,
            ListMail,
            ListWatch,
            LavaPool,
            MeasuredTopology,
            OutgoingMail,
            PreviewedSeriesList,
            Profile,
            Source,
            SourceMail,
            SubmissionRequest,
            TestPlan,
            Tree,
            WebhookFilter,
            dict[str, str],
            dict[str, dict[str, str]],
            dict[str, Any],
            list[int],
            list[ComparisonData],
            list[LookRecord],
            list[RanLines],
            list[WalkStep],
            list[str],
            list[float],
            list[HistoryLevel],
            list[CheckStep],
            tuple[StackFrame, ...],
            list[StorageArea],
            list[list[enums.Arm]],
        )
    },
}


class Base(DeclarativeBase):
    """Base class of every table."""

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
"""The sequence of all fences. A number is never issued twice, so a stale holder cannot pass for the current one."""


@event.listens_for(Base.metadata, "before_create")
def _create_trigram_extension(_: MetaData, connection: Connection, **__: Any) -> None:
    """Create the extension for indexes that find parts of words."""
    connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))


@event.listens_for(Base.metadata, "after_create")
def _keep_more_statistics(_: MetaData, connection: Connection, **__: Any) -> None:
    """Make PostgreSQL keep statistics of rare facets, because it chooses an index by them."""
    connection.execute(text("ALTER TABLE submissions ALTER COLUMN facets SET STATISTICS 1000"))
