"""Write the bundle of a finished submission: everything its verdicts depend on (format: `wqlab_contracts.bundle`).

The rows of a finished submission do not change, so each part is read in a short transaction of its own, and a slow
reader of the bundle holds no database connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from wqlab_comparison.csvfile import COLUMNS
from wqlab_contracts import bundle as names
from wqlab_contracts.bundle import BlockRecord, BootRecord, Manifest, RunRecord, UnsupportedRecord
from wqlab_contracts.enums import ArtifactKind, RunPurpose
from wqlab_contracts.messages import Artifact, Message
from wqlab_report.writers.text import render_text

from ..models import (
    Apply,
    ArtifactLink,
    BlockAttempt,
    Boot,
    Build,
    ConsoleChunk,
    Run,
    Sample,
    Submission,
    SubmissionBuild,
    Unsupported,
)
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, transaction
from ..storage.signing import SigningKey
from ..views.build import boot_view, build_view
from ..views.conclusion import findings_of, recorded_run
from ..views.load import run_rows
from ..views.samples_table import samples_csv
from .stored_report import load_or_assemble
from .zip_stream import ZipStream

_PACKAGES = ("wqlab-server", "wqlab-comparison", "wqlab-contracts")
_ALWAYS = frozenset({ArtifactKind.CONFIG, ArtifactKind.BUILD_LOG, ArtifactKind.METADATA})
_KERNELS = frozenset(
    {
        ArtifactKind.KERNEL,
        ArtifactKind.VMLINUX,
        ArtifactKind.SYSTEM_MAP,
        ArtifactKind.MODULE,
        ArtifactKind.MODULES,
        ArtifactKind.WORKQUEUE_LAYOUT,
    }
)
_CHUNKS_PER_READ = 32
_CSV_ROW_BYTES = 400
"""Upper estimate, for the choice of ZIP64 before the file is written."""
_README = """\
Evidence for the verdicts of submission {submission} at {lab_url}: report, series, kernel configurations, scripts,
samples, boots, discarded blocks and consoles.

wqlab derives every verdict again, without the lab, and says whether the report agrees:

    wqlab replay FILE --key KEY

KEY is the lab's public key, from `wqlab lab-key`. OpenSSH, jq and coreutils check the files without wqlab:

    echo "lab $(cat KEY)" > /tmp/signers
    ssh-keygen -Y verify -f /tmp/signers -I lab -n {namespace} -s manifest.json.sig < manifest.json
    jq -r '.files | to_entries[] | "\\(.value.sha256)  \\(.key)"' manifest.json | sha256sum --check --quiet

docs/replay.md of wqlab describes the format, and what a bundle cannot show.
"""
_HEADER = ",".join(COLUMNS) + "\n"


@dataclass
class BundleWriter:
    """Writer of the bundle of one finished submission."""

    sessions: SessionFactory
    store: ArtifactStore
    key: SigningKey
    public_url: str
    submission_id: int
    kernels: bool = False
    """Include the kernels, which are several hundred MB."""
    _zip: ZipStream = field(default_factory=ZipStream)
    _absent: dict[str, str] = field(default_factory=dict)

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the bundle. Equal rows and artifacts give equal bytes.

        Raises StoreUnavailable, and SigningError if the manifest cannot be signed; the file is then incomplete.
        """
        yield from self._report()
        with transaction(self.sessions) as session:
            parts = session.execute(
                select(SubmissionBuild, Build)
                .join(Build, Build.id == SubmissionBuild.build_id)
                .where(SubmissionBuild.submission_id == self.submission_id)
                .order_by(SubmissionBuild.id)
            ).all()
            runs = session.scalars(
                select(Run.id)
                .where(Run.submission_id == self.submission_id, Run.purpose == RunPurpose.MEASURE)
                .order_by(Run.target, Run.id)
            ).all()
        for part, build in parts:
            yield from self._build(part, build)
        for run_id in runs:
            yield from self._run(run_id)
        yield from self._manifest()

    # --- parts ------------------------------------------------------------------------------------------------------

    def _report(self) -> Iterator[bytes]:
        with transaction(self.sessions) as session:
            submission = session.get_one(Submission, self.submission_id)
            report = load_or_assemble(session, submission, self.store, self.public_url)
            apply = session.scalar(select(Apply).where(Apply.submission_id == self.submission_id))
        readme = _README.format(
            submission=self.submission_id, lab_url=self.public_url, namespace=names.SIGNATURE_NAMESPACE
        )
        yield from self._text(names.README, readme)
        yield from self._text(names.REPORT, report.model_dump_json(indent=2, by_alias=True) + "\n")
        yield from self._text(names.REPORT_TEXT, render_text(report))
        if apply is not None and apply.result is not None and apply.result.series_mbox is not None:
            yield from self._artifact(names.SERIES, apply.result.series_mbox)
        if apply is not None and apply.result is not None and apply.result.thread is not None:
            yield from self._artifact(names.THREAD, apply.result.thread.mbox)

    def _build(self, part: SubmissionBuild, build: Build) -> Iterator[bytes]:
        words = [part.arm.value, part.recipe, part.arch, *(["emulated"] if part.emulated else [])]
        folder = f"builds/{names.plain_name('-'.join(words))}"
        yield from self._model(f"{folder}/build.json", build_view(build, part.arm))
        for module, files in sorted(build.modules.items()):
            for name, text in sorted(files.items()):
                yield from self._text(f"{folder}/modules/{names.plain_path(f'{module}/{name}')}", text)
        for artifact in build.result.artifacts if build.result else []:
            if artifact.kind in _ALWAYS or (self.kernels and artifact.kind in _KERNELS):
                name = artifact.kind.value if artifact.kind is ArtifactKind.CONFIG else artifact.name
                yield from self._artifact(f"{folder}/{names.plain_name(name)}", artifact)

    def _run(self, run_id: int) -> Iterator[bytes]:
        folder = f"runs/{run_id}"
        with transaction(self.sessions) as session:
            run = session.get_one(Run, run_id)
            record = _run_record(session, run)
            samples = session.scalar(select(func.count()).where(Sample.run_id == run_id)) or 0
            boots = session.scalars(select(Boot).where(Boot.run_id == run_id).order_by(Boot.id)).all()
            artifacts = [
                Artifact(sha256=link.sha256, size=link.artifact.size, kind=link.kind, name=link.name)
                for link in session.scalars(
                    select(ArtifactLink)
                    .where(ArtifactLink.job_id == run_id)
                    .order_by(ArtifactLink.id)
                    .options(joinedload(ArtifactLink.artifact))
                )
            ]
        yield from self._model(f"{folder}/{names.RUN_RECORD}", record)
        for name, text in sorted(run.files.items()):
            yield from self._text(f"{folder}/scripts/{names.plain_path(name)}", text)
        valid, discarded = [boot for boot in boots if boot.valid], [boot for boot in boots if not boot.valid]
        for file, chosen in ((names.SAMPLES, valid), (names.DISCARDED_SAMPLES, discarded)):
            yield from self._zip.add(f"{folder}/{file}", self._samples(run, chosen), samples * _CSV_ROW_BYTES)
        for boot in boots:
            name = names.console_name(boot.block, boot.position, boot.arm, boot.attempt)
            path = f"{folder}/consoles/{name}"
            yield from self._zip.add(path, self._console(boot.id), boot.console_bytes)
            if self._zip.files[path].size < boot.console_bytes:
                self._absent[f"{path} (bytes)"] = f"the lab no longer has all of its {boot.console_bytes} bytes"
        for artifact in artifacts:
            yield from self._artifact(f"{folder}/output/{names.plain_name(artifact.name)}", artifact)

    def _samples(self, run: Run, boots: Iterable[Boot]) -> Iterator[bytes]:
        yield _HEADER.encode()
        for boot in boots:
            with transaction(self.sessions) as session:
                text = samples_csv(session, run, boot)
            yield text.encode()

    def _console(self, boot_id: int) -> Iterator[bytes]:
        offset = -1
        while True:
            with transaction(self.sessions) as session:
                found = session.execute(
                    select(ConsoleChunk.offset, ConsoleChunk.data)
                    .where(ConsoleChunk.boot_id == boot_id, ConsoleChunk.offset > offset)
                    .order_by(ConsoleChunk.offset)
                    .limit(_CHUNKS_PER_READ)
                ).all()
            if not found:
                return
            for chunk in found:
                yield chunk.data
            offset = found[-1].offset

    def _manifest(self) -> Iterator[bytes]:
        manifest = Manifest(
            format=names.FORMAT,
            submission=self.submission_id,
            lab_url=self.public_url,
            versions={package: version(package) for package in _PACKAGES},
            kernels=self.kernels,
            files=dict(sorted(self._zip.files.items())),
            absent=dict(sorted(self._absent.items())),
        )
        content = (json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True) + "\n").encode()
        yield from self._zip.add(names.MANIFEST, [content])
        yield from self._zip.add(names.SIGNATURE, [self.key.sign(content, names.SIGNATURE_NAMESPACE)])
        yield from self._zip.end()

    # --- files ------------------------------------------------------------------------------------------------------

    def _text(self, name: str, text: str) -> Iterator[bytes]:
        """Write a text. One whose name is taken is listed as absent: a bundle has each name once."""
        if name in self._zip.files:
            self._absent[f"{name} (again)"] = "another file of the bundle has this name"
        else:
            yield from self._zip.add(name, [text.encode()])

    def _model(self, name: str, model: Message) -> Iterator[bytes]:
        return self._text(name, model.model_dump_json(indent=2, by_alias=True) + "\n")

    def _artifact(self, name: str, artifact: Artifact) -> Iterator[bytes]:
        """Write an artifact. One whose bytes are no longer stored, or whose name is taken, is listed as absent."""
        if name in self._zip.files:
            self._absent[f"{name} ({artifact.sha256[:12]})"] = "another file of the bundle has this name"
        elif not self.store.has(artifact.sha256):
            self._absent[name] = f"the lab no longer has this artifact (SHA-256 {artifact.sha256})"
        else:
            yield from self._zip.add(name, self.store.chunks(artifact.sha256), artifact.size)


def _run_record(session: Session, run: Run) -> RunRecord:
    (rows,) = run_rows(session, [run])
    attempts = session.scalars(
        select(BlockAttempt)
        .where(BlockAttempt.run_id == run.id)
        .order_by(BlockAttempt.at, BlockAttempt.block, BlockAttempt.attempt)
    )
    unsupported = session.scalars(select(Unsupported).where(Unsupported.run_id == run.id).order_by(Unsupported.id))
    return RunRecord(
        run_id=run.id,
        target=run.target,
        plan=run.plan,
        profile=run.profile,
        device_type=run.device_type,
        device_summary=run.device_spec.summary,
        emulated=run.device_spec.emulated,
        cost_profile=recorded_run(run).machine,
        topology=run.device_spec.topology,
        recipe=run.recipe.name,
        figures=run.recipe.figures,
        seed=run.seed,
        blocks=run.blocks,
        layouts=run.layouts,
        looks=run.looks,
        looked=run.looked,
        walk=run.walk,
        outcome=run.outcome,
        failure=run.failure,
        compared=run.compared_at is not None,
        byte_identical=run.byte_identical,
        attempts=[
            BlockRecord(
                block=row.block,
                attempt=row.attempt,
                finished=row.finished,
                device=row.device_name,
                arm=row.arm,
                failure=row.failure,
                at=row.at,
            )
            for row in attempts
        ],
        boots=[
            BootRecord(**{name: getattr(view, name) for name in type(view).model_fields}, commands=boot.commands)
            for boot in rows.boots
            for view in [boot_view(boot)]
        ],
        findings=findings_of(rows),
        unsupported=[
            UnsupportedRecord(
                boot_id=row.boot_id,
                arm=row.arm,
                scenario=row.scenario,
                setting=row.setting,
                metric=row.metric,
                cause=row.cause,
                reason=row.reason,
            )
            for row in unsupported
        ],
    )
