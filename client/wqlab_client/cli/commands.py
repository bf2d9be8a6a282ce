"""List the commands of `wqlab`, and import the module of a command when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

COMMANDS = {
    "ab": ("ab", "Compare two kernels on one machine or in an emulator, without a lab."),
    "submit": ("submit", "Submit a series or a settings study."),
    "inspect": ("inspect_mails", "Show which patches of an mbox the lab would apply, in order."),
    "b4-check": ("b4_check", "Answer b4's check commands: what the lab has measured of the mail on standard input."),
    "read-console": (
        "read_console",
        "Show the kernel reports in a console log, their defects, and what counts against the kernel.",
    ),
    "touches": ("touches", "Propose targets for a series, by the files and functions that it changes."),
    "watch": ("watch", "Watch a submission until it is finished; Ctrl-C detaches without canceling it."),
    "list": ("submissions", "List submissions, newest first."),
    "show": ("submissions", "Show a submission's state: apply, builds, runs with their blocks, failures and findings."),
    "cancel": ("submissions", "Cancel a submission."),
    "retry": ("submissions", "Submit the same request again; builds that passed are reused."),
    "pin": ("submissions", "Keep the kernels, logs and consoles of a submission until it is unpinned."),
    "unpin": ("submissions", "Keep the files of a submission only as long as those of others."),
    "report": ("results", "Print a submission's report."),
    "annotations": (
        "annotations",
        "Print the findings at lines of the source, as GitHub and GitLab annotate a diff.",
    ),
    "logs": ("results", "Show how the series was applied, the checkpatch findings, and how the kernels were built."),
    "console": ("results", "Print the console of a boot."),
    "samples": ("results", "Print a run's samples as CSV, which `wqlab compare` reads."),
    "compare": ("results", "Compare samples from CSV files as the lab would, offline; exit 1 for a regression."),
    "range-diff": ("range_diff", "Show what changed between two versions of a series, and compare their figures."),
    "bundle": ("replay", "Save everything that a finished submission's verdicts depend on, signed by the lab's key."),
    "replay": ("replay", "Derive every verdict of a bundle again from its samples, offline."),
    "lab-key": ("replay", "Print the public key that signs the lab's bundles."),
    "trees": ("plans", "List the kernel trees, which --tree names."),
    "bisect": ("bisections", "Search for the commit that changed a metric or made the kernel fail."),
    "login": ("account", "Check an API token with the lab, then store URL and token in the configuration file."),
    "config": ("account", "Show the server, token and tree in use, and where each is set."),
    "quota": ("account", "Show your quotas and what is left of them."),
    "doctor": ("doctor", "Check the configuration, the server, TLS, the token, versions, clocks, labs and devices."),
    "devices": ("devices", "List the lab's devices; take one out of the pool or put it back."),
    "plans": ("plans", "List test plans, show one (`wqlab plans NAME`), or create one."),
    "lab": ("labs", "Invite, join, list and remove labs on other machines."),
    "watches": ("watches", "Add watches of mailing lists and trees from files."),
    "bisection": ("bisections", "Follow searches for a commit (`wqlab bisect`)."),
    "device": ("device_add", "Add a device, or check one."),
}
"""Command -> module in this package, and its line in `wqlab --help`."""


class Commands(TyperGroup):
    """Group whose commands are placeholders in help and completion, and imported when they are called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest


def add_placeholders(app: typer.Typer) -> None:
    """Add each command without its options."""
    for name, (_, summary) in COMMANDS.items():
        app.command(name, help=summary)(_placeholder)


def load(name: str) -> TyperCommand | TyperGroup:
    """Import the module of a command, and return the command."""
    part = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    import_module(f"{__package__}.{COMMANDS[name][0]}").register(part)
    return cast("TyperCommand | TyperGroup", get_group(part).commands[name])


def _placeholder() -> None:
    raise AssertionError("a command is loaded before it is called")
