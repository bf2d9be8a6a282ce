"""`wqlab bundle`, `replay`, `lab-key`: take a submission's evidence out of the lab, and check it without the lab."""

from __future__ import annotations

from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import ExitCode

from ..calls.reports import ReportCalls
from ..calls.submissions import SubmissionCalls
from ..errors import UsageError, WqlabError
from ..formatting import one_line
from . import watch
from .output import Output
from .session import JsonFlag, Session, SubmissionId, session_of

if TYPE_CHECKING:
    from ..replay.archive import Bundle
    from ..replay.checks import Check
    from ..replay.derive import Replay
    from ..replay.signature import PublicKey

_STYLES = {"agrees": "green", "differs": "bold red", "unchecked": "yellow"}
_COMPARISON = "wqlab-comparison"


def bundle(
    context: typer.Context,
    submission_id: SubmissionId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, by default wqlab-ID.bundle.zip"),
    ] = None,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="Include the kernels; they can also be built again from the bundle")
    ] = False,
) -> None:
    """Save everything that a finished submission's verdicts depend on, signed by the lab's key."""
    session = session_of(context)
    target = output or Path(f"wqlab-{submission_id}.bundle.zip")
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {target}: there is no folder {target.parent}", "choose another -o FILE")
    try:
        size = session.calls(ReportCalls).bundle(submission_id, target, kernels=kernels)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}", "choose another -o FILE") from None
    session.output.note(f"{target}: {size / 1e6:.1f} MB; check it with `wqlab replay {target}`")


def lab_key(context: typer.Context) -> None:
    """Print the public key that signs the lab's bundles, for `wqlab replay --key` and `ssh-keygen -Y verify`."""
    session = session_of(context)
    session.output.text(one_line(session.calls(ReportCalls).lab_key()))


def replay(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Bundle of `wqlab bundle`", show_default=False)],
    key: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL", help="Public key of the lab that must have signed, or the lab's URL"),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Also repeat the measurements in your own lab, the one of --url")
    ] = False,
    blocks: Annotated[int | None, typer.Option(min=1, max=100, help="Blocks per target of --run")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Derive every verdict of a bundle again from its samples, offline, and say whether the report agrees.

    Exit codes: 0 everything agrees, 1 something differs, 2 the file was changed, is damaged or signed by another key.
    """
    # numpy and scipy take a second to import, which other commands avoid
    from ..replay.archive import open_bundle
    from ..replay.derive import replay as derive
    from ..replay.signature import check_signature, read_keys

    session = session_of(context)
    if blocks and not run:
        raise UsageError("--blocks needs --run", "without --run nothing is measured")
    keys = read_keys(key) if key is not None else None
    with open_bundle(file) as opened:
        signer = check_signature(opened)
        if keys is not None and signer not in keys:
            expected = ", ".join(each.fingerprint for each in keys)
            raise UsageError(
                f"{file}: signed by {signer.fingerprint}, not by {expected} of --key",
                "use the key of the lab that wrote the bundle, or distrust the bundle",
            )
        opened.check_files()
        if not as_json:
            _print_origin(session.output, opened, signer, known=keys is not None)
        found = derive(opened)
        repeated = _repeat(session, opened, signer, blocks) if run else None
        if as_json:
            _print_document(session.output, opened, signer, found, repeated, known=keys is not None)
        else:
            _print_checks(session.output, found.checks)
            _print_result(session.output, opened, found)
            if repeated is not None:
                session.output.line()
                session.output.line(Text("repeated in your lab", style="bold"))
                _print_checks(session.output, repeated)
    differing = [each for each in (*found.checks, *(repeated or [])) if each.result == "differs"]
    raise typer.Exit(ExitCode.REGRESSION if differing else ExitCode.DONE)


def _repeat(session: Session, bundle: Bundle, signer: PublicKey, blocks: int | None) -> list[Check]:
    """Submit the bundle's measurements to the configured lab, wait for its report and compare the evidence."""
    from wqlab_contracts.api.report import Report
    from wqlab_contracts.bundle import REPORT

    from ..client import Client
    from ..replay.repeat import START_A_LAB, compare_evidence, plan_repetition
    from ..replay.signature import read_keys

    if session.config.url is None:
        raise UsageError("--run needs a lab of your own, and none is configured", START_A_LAB)
    repetition = plan_repetition(bundle, session.calls(Client), blocks)
    try:
        if signer in read_keys(session.url):
            session.output.warn("this lab signed the bundle: its repetition is no independent evidence")
    except WqlabError:
        session.output.note("this lab publishes no key, so it is not known whether it signed the bundle")
    view = session.calls(SubmissionCalls).submit(repetition.request)
    session.output.note(f"submission {view.id} at {session.url} repeats the measurements")
    watch.follow_to_end(session, view.id, session.output.err)
    report = session.calls(ReportCalls).report(view.id)
    return [*repetition.notes, *compare_evidence(bundle.model(REPORT, Report), report)]


# --- output -----------------------------------------------------------------------------------------------------


def _print_origin(out: Output, bundle: Bundle, signer: PublicKey, *, known: bool) -> None:
    whose = "the key of --key" if known else "not checked whose key it is: --key FILE|URL does"
    manifest = bundle.manifest
    out.line(f"bundle of submission {manifest.submission} at {one_line(manifest.lab_url)}")
    out.line(f"signature  valid for key {signer.fingerprint}, {whose}")
    out.line(f"files      {len(manifest.files)}, each as in the signed manifest")
    for name, reason in manifest.absent.items():
        out.line(f"absent     {one_line(name)}: {one_line(reason)}")


def _print_checks(out: Output, checks: list[Check]) -> None:
    for target, group in groupby(checks, key=lambda check: check.target):
        out.line()
        out.line(Text(one_line(target) or "submission", style="bold"))
        for check in group:
            out.line(
                Text.assemble(
                    (f"  {check.result.value:<10}", _STYLES[check.result.value]),
                    f"{one_line(check.subject)}: {one_line(check.text)}",
                )
            )


def _print_result(out: Output, bundle: Bundle, found: Replay) -> None:
    from ..replay.checks import Result

    differing, unchecked = found.count(Result.DIFFERS), found.count(Result.UNCHECKED)
    out.line()
    if differing:
        out.line(Text(f"{differing} of {len(found.checks)} checks differ: do not rely on the report", style="bold red"))
        theirs, own = bundle.manifest.versions.get(_COMPARISON, "unknown"), version(_COMPARISON)
        if theirs != own:
            out.line(f"The lab used {_COMPARISON} {one_line(theirs)}, this is {own}: try again with that version")
        return
    left = f", {unchecked} could not be checked" if unchecked else ""
    out.line(Text(f"all {len(found.checks) - unchecked} checks agree{left}: {one_line(found.summary)}", style="green"))


def _print_document(
    out: Output, bundle: Bundle, signer: PublicKey, found: Replay, repeated: list[Check] | None, *, known: bool
) -> None:
    from ..replay.checks import Result

    def rows(checks: list[Check]) -> list[dict[str, str]]:
        return [
            {"target": each.target, "subject": each.subject, "result": each.result.value, "text": each.text}
            for each in checks
        ]

    out.document(
        {
            "submission": found.submission,
            "title": found.title,
            "lab_url": bundle.manifest.lab_url,
            "key": signer.line,
            "fingerprint": signer.fingerprint,
            "key_is_known": known,
            "agrees": found.count(Result.DIFFERS) == 0,
            "summary": found.summary,
            "checks": rows(found.checks),
            "repeated": None if repeated is None else rows(repeated),
        }
    )


def register(app: typer.Typer) -> None:
    app.command("bundle")(bundle)
    app.command("replay")(replay)
    app.command("lab-key")(lab_key)
