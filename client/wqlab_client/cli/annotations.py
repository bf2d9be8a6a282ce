"""`wqlab annotations`: print what was found at lines of the source, as GitHub and GitLab show it in a diff."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..calls.reports import ReportCalls
from .results import OutputFile
from .session import SubmissionId, session_of


class Format(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"


def register(app: typer.Typer) -> None:
    app.command("annotations")(print_annotations)


def print_annotations(
    context: typer.Context,
    submission_id: SubmissionId,
    form: Annotated[
        Format, typer.Option("--format", "-f", help="Workflow commands of GitHub, or GitLab's Code Quality report")
    ],
    output: OutputFile = None,
) -> None:
    """Print the findings at lines of the source, as GitHub and GitLab annotate a diff."""
    from wqlab_report.writers import annotations as writer

    session = session_of(context)
    found = writer.annotations_of(session.calls(ReportCalls).report(submission_id))
    render = {Format.GITHUB: writer.render_github, Format.GITLAB: writer.render_gitlab}[form]
    session.output.text(render(found), output)
