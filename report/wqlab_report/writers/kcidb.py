"""Render the report as a document of KernelCI's results database, KCIDB v5.3.

There is a checkout for each arm (the base commit, and the base commit with the series), a build for each kernel, a test
`boot` for each target and arm, and a test for each judged figure that is evidence. Figures without evidence (an
emulated device's throughput) and those of a model are left out: readers of the database would compare them with
hardware.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import Report
from wqlab_contracts.api.submissions import ApplyView
from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.kcidb import Build, Checkout, Document, Resource, Status, is_url

from ..content import shared_text
from ..content.shared_text import api_address
from ..plain_text import printable
from .kcidb_tests import STATUS, Source, excerpt, target_tests

_STATUS = STATUS | {ErrorKind.USER: Status.FAIL}
"""KCIDB status of a failed build. A compile error in the code of the series (ErrorKind.USER) is FAIL."""
_MESSAGE_ID = re.compile(r"[^\s<>@\x00]+@[^\s<>@\x00]+")
_PUBLIC_URL = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9](:[0-9]+)?/\S*")


@dataclass(frozen=True)
class Sender:
    """As whom the lab writes to KCIDB."""

    origin: str
    """Name of the lab in KCIDB; every id begins with it."""
    public: bool = False
    """True if everybody can read the lab, so that the files of a report can be linked to."""


def render_kcidb(report: Report, sender: Sender) -> str:
    """Render the document as JSON."""
    return compose(report, sender).to_json()


def compose(report: Report, sender: Sender) -> Document:
    """Return the document of a finished submission.

    Raises ValueError (pydantic.ValidationError) if it would violate the schema.
    """
    sender = replace(sender, public=sender.public and is_url(report.lab_url))
    arms = [Arm.BASELINE] if shared_text.is_study(report) else list(PAIR)
    ids = {arm: f"{sender.origin}:{report.submission.id}.{arm}" for arm in arms}
    builds = [build for build in report.submission.builds if build.arm in ids and build.outcome is not None]
    names = {build.id: f"{ids[build.arm]}.build-{build.id}" for build in builds if build.arm is not None}
    source = Source(sender.origin, report, builds, names, sender.public)
    return Document(
        checkouts=[_checkout(report, sender, arm, name) for arm, name in ids.items()],
        builds=[_build(report, sender, build, names[build.id], ids[build.arm]) for build in builds if build.arm],
        tests=[test for target in report.targets for test in target_tests(source, target)],
    )


def _checkout(report: Report, sender: Sender, arm: Arm, name: str) -> Checkout:
    submission = report.submission
    apply, series = submission.apply, submission.request.series
    origin = next((build.origin for build in submission.builds if build.origin), "")
    candidate = arm is Arm.CANDIDATE
    git = series.git if candidate and series is not None else None
    commits = series.commits if candidate and series is not None else None
    pair = commits if commits is not None and commits.reverted is None else None
    misc = {
        "submission": submission.id,
        "report_url": shared_text.address(report),
        "arm": str(arm),
        **({"kernel_release": printable(apply.release)} if apply.release else {}),
        **({"source": printable(origin)} if origin and not _PUBLIC_URL.fullmatch(origin) else {}),
        **({"series": {"url": printable(git.url), "ref": printable(git.ref)}} if git is not None else {}),
    }
    return Checkout(
        id=name,
        origin=sender.origin,
        tree_name=submission.tree,
        git_repository_url=origin if _PUBLIC_URL.fullmatch(origin) and is_url(origin) else None,
        git_commit_hash=pair.candidate if pair is not None else apply.base_commit,
        patchset_files=list(_patchset_files(report, sender)) or None if candidate else None,
        patchset_hash=_patchset_hash(apply) if candidate and pair is None else "",
        message_id=_message_id(apply) if candidate else None,
        comment=printable(submission.title) if candidate else f"base of: {printable(submission.title)}",
        start_time=submission.created_at,
        origin_builds_finish_time=submission.finished_at,
        origin_tests_finish_time=submission.finished_at,
        log_excerpt=excerpt(apply.failure.excerpt) if candidate and apply.failure else None,
        valid=_is_valid(apply, candidate=candidate),
        misc=misc,
    )


def _is_valid(apply: ApplyView, *, candidate: bool) -> bool | None:
    """Return False if the series does not apply; None if the lab did not find out."""
    if apply.outcome is Outcome.PASSED:
        return True
    if candidate and apply.failure is not None and apply.failure.kind is ErrorKind.USER:
        return False
    return True if not candidate and apply.base_commit is not None else None


def _patchset_hash(apply: ApplyView) -> str | None:
    """Return KCIDB's hash of a patchset of one file, the series' mbox; None if the mbox is not known."""
    if apply.series_mbox is None:
        return None
    return hashlib.sha256(f"{apply.series_mbox.sha256}\n".encode()).hexdigest()


def _patchset_files(report: Report, sender: Sender) -> Iterator[Resource]:
    apply = report.submission.apply
    if sender.public and apply.series_mbox is not None and apply.files_deleted_at is None:
        yield Resource(name="series.mbox", url=api_address(report, f"submissions/{report.submission.id}/series"))


def _message_id(apply: ApplyView) -> str | None:
    """Return the Message-ID of the first patch that has one, without its brackets."""
    named = (patch.message_id.strip().strip("<>") for patch in apply.patches if patch.message_id)
    return next((name for name in named if _MESSAGE_ID.fullmatch(name)), None)


def _build(report: Report, sender: Sender, build: BuildView, name: str, checkout: str) -> Build:
    passed = build.outcome is Outcome.PASSED
    linked = sender.public and build.files_deleted_at is None
    kinds = {artifact.kind for artifact in build.artifacts} if linked else set()
    files = [
        Resource(
            name=re.sub(r"[/\x00]", "_", artifact.name),
            url=api_address(report, f"builds/{build.id}/artifacts/{artifact.sha256}"),
        )
        for artifact in build.artifacts
        if linked and artifact.name and artifact.kind not in {ArtifactKind.CONFIG, ArtifactKind.BUILD_LOG}
    ]
    failed_kind = build.failure.kind if build.failure is not None else ErrorKind.INFRASTRUCTURE
    misc = {
        "arm": str(build.arm),
        "reused": build.reused,
        "report_url": shared_text.address(report),
        **({"build_id": build.build_id_gnu} if build.build_id_gnu else {}),
        **({"kernel_release": printable(build.release)} if build.release else {}),
        **({"error_kind": str(failed_kind)} if not passed else {}),
    }
    canceled = build.outcome is Outcome.CANCELED
    return Build(
        id=name,
        origin=sender.origin,
        checkout_id=checkout,
        comment=printable(build.failure.summary) if build.failure is not None else None,
        duration=build.duration_s,
        architecture=build.arch,
        command=printable(build.reproducer) or None,
        compiler=printable(build.compiler) or None,
        output_files=files or None,
        config_name=build.recipe,
        config_url=api_address(report, f"builds/{build.id}/config") if ArtifactKind.CONFIG in kinds else None,
        log_url=api_address(report, f"builds/{build.id}/log") if ArtifactKind.BUILD_LOG in kinds else None,
        log_excerpt=excerpt(build.failure.excerpt) if build.failure else None,
        status=Status.PASS if passed else Status.SKIP if canceled else _STATUS[failed_kind],
        misc=misc,
    )
