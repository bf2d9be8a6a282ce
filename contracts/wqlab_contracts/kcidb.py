"""Documents of KernelCI's results database KCIDB, in version 5.3 of its schema, with the fields that wqlab writes.

The models contain the rules of that schema, and those that its receivers do not check: all objects have one origin,
each id begins with it and is used once, and references lead to objects of the same document. A test validates documents
with KernelCI's own `kcidb_io` (docs/decisions/0042-kcidb.md).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

ORIGIN_PATTERN = r"^[a-z0-9_]+$"
DOCUMENT_LIMIT = 32 << 20
"""Maximum size of a document, in bytes."""
EXCERPT_LIMIT = 16_384
"""Maximum length of an excerpt of a log, in characters."""


def _without_nul_and_null(value: JsonValue) -> JsonValue:
    """Raise ValueError for what KCIDB cannot store: a NUL character, or null."""
    if value is None:
        raise ValueError("null is not allowed: leave the field out")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a NUL character is not allowed")
    if isinstance(value, dict):
        for key, each in value.items():
            _without_nul_and_null(key)
            _without_nul_and_null(each)
    if isinstance(value, list):
        for each in value:
            _without_nul_and_null(each)
    return value


def _with_address(url: str) -> str:
    """Return a URL. Raises ValueError if its host is in brackets and no IPv6 address."""
    host = url.partition("://")[2].partition("/")[0].partition("?")[0]
    if host.startswith("["):
        ipaddress.IPv6Address(host[1:].partition("]")[0])
    return url


Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Origin = Annotated[str, StringConstraints(pattern=ORIGIN_PATTERN)]
ObjectId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+:[^\x00]+$", max_length=500)]
TreePath = Annotated[str, StringConstraints(pattern=r"^([a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*)?$")]
_URL = (
    r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_HTTPS = f"^{_URL.replace('https?', 'https', 1)}$"
Url = Annotated[str, StringConstraints(pattern=f"^{_URL}$"), AfterValidator(_with_address)]
"""An http or https URL, without user name, password or fragment."""
Misc = Annotated[dict[str, JsonValue], AfterValidator(_without_nul_and_null)]


def is_url(text: str) -> bool:
    """Return True if a document can contain the URL."""
    try:
        return re.fullmatch(_URL, text) is not None and bool(_with_address(text))
    except ValueError:
        return False


class Status(StrEnum):
    """Status of a build or a test, the most severe first."""

    FAIL = "FAIL"
    """It ended, and the code under test is faulty."""
    ERROR = "ERROR"
    """It did not end because of a fault of its own; nothing is known of the code under test."""
    MISS = "MISS"
    """It did not run because the lab failed; nothing is known of test and code."""
    PASS = "PASS"  # noqa: S105 - a status
    DONE = "DONE"
    """It ended, and its result is a number."""
    SKIP = "SKIP"
    """It did not run because it does not apply."""


class KcidbObject(BaseModel):
    """Base class: unknown fields are refused, and fields without a value are left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Resource(KcidbObject):
    """A file that a reader can download from `url`."""

    name: Annotated[str, StringConstraints(pattern=r"^[^/\x00]+$")]
    url: Url


class Checkout(KcidbObject):
    """A source tree: a commit, or a series applied to it."""

    id: ObjectId
    origin: Origin
    tree_name: Text | None = None
    git_repository_url: Annotated[str, StringConstraints(pattern=_HTTPS), AfterValidator(_with_address)] | None = None
    git_commit_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None = None
    patchset_files: Sequence[Resource] | None = None
    patchset_hash: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")] | None = None
    """SHA-256 over the SHA-256 of each patch file, one a line; empty if there are no patches."""
    message_id: Annotated[str, StringConstraints(pattern=r"^[^\s<>@\x00]+@[^\s<>@\x00]+$")] | None = None
    comment: Text | None = None
    start_time: AwareDatetime | None = None
    origin_builds_finish_time: AwareDatetime | None = None
    origin_tests_finish_time: AwareDatetime | None = None
    log_excerpt: Annotated[Text, Field(max_length=EXCERPT_LIMIT)] | None = None
    valid: bool | None = None
    """False if the patches do not apply."""
    misc: Misc | None = None


class Build(KcidbObject):
    """A kernel build."""

    id: ObjectId
    origin: Origin
    checkout_id: ObjectId
    comment: Text | None = None
    duration: FiniteFloat | None = None
    """Seconds."""
    architecture: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]*$")] | None = None
    command: Text | None = None
    compiler: Text | None = None
    output_files: Sequence[Resource] | None = None
    config_name: Text | None = None
    config_url: Url | None = None
    log_url: Url | None = None
    log_excerpt: Annotated[Text, Field(max_length=EXCERPT_LIMIT)] | None = None
    status: Status | None = None
    misc: Misc | None = None


class Environment(KcidbObject):
    """Where a test ran."""

    compatible: Sequence[Annotated[str, StringConstraints(pattern=r"^[^ \x00]+(,[^ \x00]+)*$")]] | None = None
    """Property `compatible` of the device tree's root, if there is a device tree."""
    comment: Text | None = None
    misc: Misc | None = None


class Number(KcidbObject):
    """The number that a test gave."""

    value: FiniteFloat
    unit: Text | None = None
    prefix: Literal["metric", "binary"] | None = None
    """How to scale the value for display; None if the unit has a prefix already."""


class Test(KcidbObject):
    """One result of a build."""

    id: ObjectId
    origin: Origin
    build_id: ObjectId
    path: TreePath | None = None
    comment: Text | None = None
    environment: Environment | None = None
    status: Status | None = None
    number: Number | None = None
    start_time: AwareDatetime | None = None
    duration: FiniteFloat | None = None
    """Seconds."""
    log_url: Url | None = None
    log_excerpt: Annotated[Text, Field(max_length=EXCERPT_LIMIT)] | None = None
    output_files: Sequence[Resource] | None = None
    misc: Misc | None = None


class Version(KcidbObject):
    """Version of the schema."""

    major: Literal[5] = 5
    minor: Literal[3] = 3


class Document(KcidbObject):
    """Checkouts, builds and tests of one origin."""

    version: Version = Version()
    checkouts: Sequence[Checkout] = ()
    builds: Sequence[Build] = ()
    tests: Sequence[Test] = ()

    @model_validator(mode="after")
    def _check_ids(self) -> Self:
        """Raise ValueError for an id that is not of the document's origin, is used twice, or leads nowhere."""
        origins = {each.origin for each in self._objects()}
        if len(origins) > 1:
            raise ValueError(f"the objects have several origins: {', '.join(sorted(origins))}")
        for each in self._objects():
            references = (getattr(each, field, None) for field in ("id", "checkout_id", "build_id"))
            for name in filter(None, references):
                if not name.startswith(f"{each.origin}:"):
                    raise ValueError(f"id {name!r} does not begin with the origin {each.origin!r}")
        for kind in (self.checkouts, self.builds, self.tests):
            known: set[str] = set()
            for each in kind:
                if each.id in known:
                    raise ValueError(f"id {each.id!r} is used twice")
                known.add(each.id)
        checkouts, builds = ({each.id for each in kind} for kind in (self.checkouts, self.builds))
        for build in self.builds:
            if build.checkout_id not in checkouts:
                raise ValueError(f"build {build.id!r} is of a checkout that is missing: {build.checkout_id!r}")
        for test in self.tests:
            if test.build_id not in builds:
                raise ValueError(f"test {test.id!r} is of a build that is missing: {test.build_id!r}")
        return self

    def _objects(self) -> Iterator[Checkout | Build | Test]:
        yield from self.checkouts
        yield from self.builds
        yield from self.tests

    @property
    def origin(self) -> str | None:
        """The origin of all objects; None for a document without objects."""
        return next((each.origin for each in self._objects()), None)

    def to_json(self) -> str:
        """Return the document as JSON. Fields without a value are left out, since the schema has no null."""
        return self.model_dump_json(indent=2, exclude_none=True) + "\n"


def parse_document(content: bytes) -> Document:
    """Return the document in `content`. Raises ValueError that names the first mistake and how many there are."""
    if len(content) > DOCUMENT_LIMIT:
        raise ValueError(f"the document has {len(content)} bytes, more than {DOCUMENT_LIMIT}")
    try:
        document = Document.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"]) or "the document"
        more = f" (and {error.error_count() - 1} more mistakes)" if error.error_count() > 1 else ""
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}{more}") from None
    _without_nul_and_null(json.loads(content))  # fields of the models may be None, which is never written
    return document
