"""`wqlab-lab`: start, show, back up and stop the lab of this machine. The Makefile calls it as the lab's user."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import backup, demo, development, doctor, rehearse, storage
from .documentation import DocumentationError
from .lifecycle import Lab, LabError
from .paths import ADMIN, LabPaths, LabPathsError
from .prepare import GoldenPreparation, PrepareError, prepare, prepare_pages
from .web import WebError


def main() -> None:
    parser = argparse.ArgumentParser(prog="wqlab-lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (
        ("up", "prepare what is missing and start the lab"),
        ("restart", "stop the lab and start it with changed code; the data stays"),
        ("dev", "run the lab in the foreground with reload on change, and Vite's server for the pages"),
        ("arm64", "add emulated arm64 devices: build their golden system"),
        ("status", "list the lab's programs and its address"),
        ("doctor", "check every part of the lab and say what to do; status 4 if a check failed or could not be made"),
        ("storage", "list what uses the storage, the limits, what is pinned, and what is deleted when"),
        ("backup", "write database, artifacts and keys to a new file; the lab may run meanwhile"),
        ("restore", "restore a backup into an empty state folder"),
        ("password", "create a new password for the lab's administrator"),
        ("stop", "stop every program, keep the data"),
        ("down", "stop every program and remove the state folder"),
        ("demo", "start the lab, submit the examples, print their reports"),
        ("rehearse", "start a lab of its own with emulated machines behind the protocols of real ones (docs/hardware)"),
        ("stop-rehearsal", "stop that lab and remove its state folder"),
    ):
        added = commands.add_parser(name, help=summary)
        if name in ("backup", "restore"):
            added.add_argument("file", type=Path, help="the backup")
        if name == "rehearse":
            added.add_argument(
                "machine", nargs="+", help="name of a rehearsal machine: xeon, ryzen, ssh-only, dual-boot, chromebook"
            )
        if name in ("doctor", "storage"):
            added.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    try:
        sys.exit(_run(arguments))
    except (LabError, storage.StorageError, LabPathsError, PrepareError, WebError, DocumentationError) as error:
        print(f"wqlab-lab: {error}", file=sys.stderr)
        sys.exit(4)
    except subprocess.CalledProcessError as error:
        print(f"wqlab-lab: {' '.join(map(str, error.cmd))} ended with status {error.returncode}", file=sys.stderr)
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)


def _run(arguments: argparse.Namespace) -> int:
    command: str = arguments.command
    started = time.monotonic()

    def report(text: str) -> None:
        elapsed = int(time.monotonic() - started)
        print(f"[{elapsed // 60:2d}:{elapsed % 60:02d}] {text}", flush=True)

    paths = LabPaths.from_environment()
    lab = Lab(paths, report, reload=command == "dev")
    if command == "status":
        print(f"{paths.url}\n{lab.status()}" if lab.running() else "the lab is not running")
        return 0
    if command == "doctor":
        checks = doctor.examine(lab)
        print(doctor.as_json(checks) if arguments.json else doctor.as_text(checks))
        return doctor.exit_status(checks)
    if command == "storage":
        print(storage.report(paths, running=lab.running(), as_json=arguments.json))
        return 0
    if command in ("backup", "restore"):
        work = backup.backup if command == "backup" else backup.restore
        print(work(lab, arguments.file.absolute(), report))
        return 0
    if command == "password":
        print(_sign_in_text(paths, lab.new_password(ADMIN)))
        return 0
    if command == "stop":
        lab.stop()
        print(f"stopped; the data stays in {paths.state}")
        return 0
    if command == "down":
        lab.down()
        print(f"stopped, {paths.state} removed; builds and images stay in {paths.cache}")
        return 0

    if command in ("rehearse", "stop-rehearsal"):
        return _rehearse(paths, arguments, report)
    if command == "restart":
        lab.restart()
        report(f"the lab runs at {paths.url} with the current code")
        return 0
    if command == "dev":
        return _develop(lab, report)
    if command == "arm64":
        paths.create()
        paths.add_architecture(command)
        prepare(paths, report)
        if lab.running():
            lab.up()
        report("the lab has emulated arm64 devices" if lab.running() else "`make up` starts a lab with arm64 devices")
        return 0
    if paths.rehearsal_programs.exists():  # `wqlab device add` applies its files so
        os.environ.setdefault("WQLAB_NOTICE", rehearse.NOTICE)
    if lab.complete():
        lab.up()
    else:
        _start(lab, report)
    if command == "up":
        print(_usage_text(paths))
        _print_first_password(lab)
        return 0

    report(f"the lab runs at {paths.url}")
    _print_first_password(lab)
    submissions = demo.submit_to_emulated(paths)
    worst = 0
    for submission in submissions:
        report(f"submission {submission}")
        worst = max(worst, demo.watch(paths, submission))
    for submission in submissions:
        print()
        demo.print_report(paths, submission)
    print()
    worst = max(worst, _show_modelled(paths, report))
    print()
    report("done")
    print(_usage_text(paths))
    return worst


def _show_modelled(paths: LabPaths, report: Callable[[str], None]) -> int:
    """Submit the demo's third series, print its report, and return its exit code; it waits for the emulator."""
    submission = demo.submit_to_modelled(paths)
    report(f"submission {submission}, on a modelled device")
    if not demo.wait_for_model(paths, report):
        report("the third submission waits: modelled devices need the QEMU that `make model` builds")
        return 4
    status = demo.watch(paths, submission)
    print()
    demo.print_report(paths, submission)
    return status


def _rehearse(paths: LabPaths, arguments: argparse.Namespace, report: Callable[[str], None]) -> int:
    rehearsal = rehearse.rehearsal_lab(paths, report)
    if arguments.command == "stop-rehearsal":
        rehearsal.down()
        print(f"stopped, {rehearsal.paths.state} removed")
        return 0
    rehearse.start(rehearsal, paths, arguments.machine)
    _print_first_password(rehearsal)
    print(rehearse.usage(rehearsal.paths))
    return 0


def _start(lab: Lab, report: Callable[[str], None]) -> None:
    """Start the lab; its pages and its server are made while the golden kernel compiles."""
    with GoldenPreparation(lab.paths, report) as golden:
        prepare_pages(lab.paths)
        lab.up(golden.wait)


def _develop(lab: Lab, report: Callable[[str], None]) -> int:
    """Run the lab with reload on change until Vite's server is interrupted, then stop it."""
    prepare(lab.paths, report)
    if lab.running():
        report("stopping the running lab; its data stays")
        lab.stop()
    lab.up()
    report(f"the API at {lab.paths.url}, workers and pages reload on change; Ctrl-C stops the lab")
    _print_first_password(lab)
    try:
        return development.serve_pages(lab.paths.url)
    finally:
        lab.stop()


def _print_first_password(lab: Lab) -> None:
    if lab.first_password is not None:
        print(_sign_in_text(lab.paths, lab.first_password), flush=True)


def _sign_in_text(paths: LabPaths, password: str) -> str:
    return f"""
Sign in at {paths.url}/sign-in (this password is shown only once; `make password` creates a new one)

    user      {ADMIN}
    password  {password}
"""


def _usage_text(paths: LabPaths) -> str:
    return f"""
The lab runs at {paths.url} (documentation: {paths.url}/docs/)

    export WQLAB_URL={paths.url}
    export WQLAB_TOKEN={paths.token(ADMIN)}
    .venv/bin/wqlab list

`make stop` stops it and keeps its data; `make down` stops it and removes {paths.state}."""
