"""`wqlab-lab`: up, arm64, status, password, stop, down, demo. The Makefile calls it as the lab's user."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from . import demo
from .lifecycle import Lab, LabError
from .paths import ADMIN, Layout, LayoutError
from .prepare import PrepareError, prepare


def main() -> None:
    parser = argparse.ArgumentParser(prog="wqlab-lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (
        ("up", "prepare what is missing and start the lab"),
        ("arm64", "add emulated arm64 devices: build their golden system"),
        ("status", "what runs, and where"),
        ("password", "make a new password for the lab's administrator"),
        ("stop", "stop every process, keep the data"),
        ("down", "stop every process and remove the state folder"),
        ("demo", "start the lab, submit the examples, print their reports"),
    ):
        commands.add_parser(name, help=summary)
    command = parser.parse_args().command
    try:
        sys.exit(_run(command))
    except (LabError, LayoutError, PrepareError) as error:
        print(f"wqlab-lab: {error}", file=sys.stderr)
        sys.exit(4)
    except subprocess.CalledProcessError as error:
        print(f"wqlab-lab: {' '.join(map(str, error.cmd))} ended with status {error.returncode}", file=sys.stderr)
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)


def _run(command: str) -> int:
    started = time.monotonic()

    def say(text: str) -> None:
        elapsed = int(time.monotonic() - started)
        print(f"[{elapsed // 60:2d}:{elapsed % 60:02d}] {text}", flush=True)

    layout = Layout.from_environment()
    lab = Lab(layout, say)
    if command == "status":
        print(f"{layout.url}\n{lab.status()}" if lab.running() else "the lab is not running")
        return 0
    if command == "password":
        print(_sign_in(layout, lab.new_password(ADMIN)))
        return 0
    if command == "stop":
        lab.stop()
        print(f"stopped; its data stays in {layout.state}")
        return 0
    if command == "down":
        lab.down()
        print(f"stopped, {layout.state} removed; builds and images stay in {layout.cache}")
        return 0

    if command == "arm64":
        layout.create()
        layout.add_architecture(command)
        prepare(layout, say)
        if lab.running():
            lab.up()
        say("the lab has emulated arm64 devices" if lab.running() else "`make up` starts a lab with arm64 devices")
        return 0
    if not lab.running():
        prepare(layout, say)
        say("starting the lab")
    lab.up()
    if command == "up":
        print(_how_to_use(layout))
        _print_first_password(lab)
        return 0

    say(f"the lab runs at {layout.url}")
    _print_first_password(lab)
    submissions = demo.submit_examples(layout)
    worst = 0
    for submission in submissions:
        say(f"submission {submission}")
        worst = max(worst, demo.watch(layout, submission))
    for submission in submissions:
        print()
        demo.print_report(layout, submission)
    print()
    say("done")
    print(_how_to_use(layout))
    return worst


def _print_first_password(lab: Lab) -> None:
    if lab.first_password is not None:
        print(_sign_in(lab.layout, lab.first_password), flush=True)


def _sign_in(layout: Layout, password: str) -> str:
    return f"""
Sign in at {layout.url}/sign-in (this password is shown only now; `make password` makes another one)

    user      {ADMIN}
    password  {password}
"""


def _how_to_use(layout: Layout) -> str:
    return f"""
The lab runs at {layout.url} (interactive API: {layout.url}/docs)

    export WQLAB_URL={layout.url}
    export WQLAB_TOKEN={layout.token(ADMIN)}
    .venv/bin/wqlab list

`make stop` stops it and keeps its data; `make down` stops it and removes {layout.state}."""
