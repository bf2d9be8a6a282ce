"""Base class of messages, and parts used by several messages."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from .. import defer_models
from ..enums import ArtifactKind, ErrorKind

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
GitObject = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
EXCERPT_LIMIT = 16_384
"""Maximum length (characters) of a log excerpt in a message; the whole log is an artifact."""

STACK_LIMIT = 100
"""Maximum number of frames in a message."""


SHORT_LIMIT = 2000
"""Maximum length (characters) of a text that is shown in one line or paragraph, such as the summary of a failure."""
FACT_NAME_LIMIT = 100
FACTS_LIMIT = 500
"""Maximum number of facts in a message; a device with dozens of tunables reports about 100."""
FACTS_BYTES = 96 << 10
"""Maximum size of names and values of the facts in a message, in UTF-8."""
COMMAND_LIMIT = 16_384
"""Maximum length (characters) of the workload's command line."""
TITLE_LIMIT = 300
FACTS_LEFT_OUT = "facts left out"
"""Name of the fact that says how many facts are missing."""


def cut(text: str, limit: int = SHORT_LIMIT) -> str:
    """Return `text`. If it is longer than `limit` characters, replace its end by a mark."""
    return text if len(text) <= limit else f"{text[: limit - 6]} [...]"


def shorten(text: str, limit: int = EXCERPT_LIMIT) -> str:
    """Return `text`. If it is longer than `limit` characters, replace its middle by a line that says how much."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 40
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def bounded_facts(facts: dict[str, str], *, value_limit: int = SHORT_LIMIT) -> dict[str, str]:
    """Return the first facts that fit into the limits, with long texts cut; one more says how many are missing.

    A message is validated by each program that it passes, so the result is returned unchanged when it is given again.
    """
    counted = facts.get(FACTS_LEFT_OUT, "")
    missing = int(counted) if counted.isascii() and counted.isdigit() and len(counted) < 10 else 0
    given = [(cut(name, FACT_NAME_LIMIT), cut(text, value_limit)) for name, text in facts.items()]
    given = [each for each in given if each[0] != FACTS_LEFT_OUT]
    kept: dict[str, str] = {}
    left = FACTS_BYTES
    for name, value in given:
        left -= len(name.encode(errors="replace")) + len(value.encode(errors="replace"))
        if left < 0 or len(kept) >= FACTS_LIMIT:
            missing += len(given) - len(kept)
            break
        kept[name] = value
    return kept | ({FACTS_LEFT_OUT: f"{missing}"} if missing else {})


ShortText = Annotated[str, AfterValidator(cut)]
"""Text that may come from a device; a long one is cut, so that a device cannot make its worker send too much."""
Excerpt = Annotated[str, AfterValidator(shorten)]
Title = Annotated[str, AfterValidator(partial(cut, limit=TITLE_LIMIT))]
Facts = Annotated[dict[str, str], AfterValidator(bounded_facts)]
Commands = Annotated[dict[str, str], AfterValidator(partial(bounded_facts, value_limit=COMMAND_LIMIT))]


class Message(BaseModel):
    """Base of all messages: immutable, without unknown fields.

    Texts may come from a device, which can print any byte. NUL is replaced by U+FFFD, since PostgreSQL cannot store it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=defer_models)

    @field_validator("*")
    @classmethod
    def _replace_nul(cls, value: Any) -> Any:
        return _without_nul(value)


def _without_nul(value: Any) -> Any:
    """Replace NUL in strings, lists and dicts. Nested messages have done so already."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    return value


class Artifact(Message):
    """A stored file, identified by its hash."""

    sha256: Sha256
    size: int = Field(ge=0)
    kind: ArtifactKind
    name: str = Field(max_length=200)


class StackFrame(Message):
    """One function of a kernel's call trace."""

    function: str = Field(max_length=200)
    offset: int = Field(default=0, ge=0)
    """Bytes from the beginning of the function; of an inlined function, those of the function that contains it."""
    file: str = Field(default="", max_length=300)
    """Path in the source tree; empty if the debug information does not tell it."""
    line: int = Field(default=0, ge=0)
    source: str = Field(default="", max_length=200)
    """That line of the source, without indentation and control characters; empty if it is not available."""
    inlined: bool = False
    """True if the compiler inlined the function into that of the next frame."""


class Failure(Message):
    """Reason of a failure, with advice for the user."""

    kind: ErrorKind
    summary: ShortText
    excerpt: Excerpt = ""
    advice: ShortText = ""
    of_variant: bool = False
    """True for an infrastructure failure that the kernel under test may have caused: it was seen through the device,
    for example as a broken SSH connection. False for failures that the lab knows to be its own."""
    stack: tuple[StackFrame, ...] = Field(default=(), max_length=STACK_LIMIT)
    """Call trace of a kernel report, innermost function first; empty for other failures."""
    defect: str = ""
    """Description that is equal for failures of one kernel by the same defect (`keys.describe_defect`); empty if the
    kernel reported nothing."""

    @property
    def counts_against_arm(self) -> bool:
        """Whether a block that this failure ended is counted as lost by the arm of the boot, and not by the lab."""
        return self.kind is ErrorKind.KERNEL or self.of_variant
