"""A series on a real Patchwork, measured by a running lab: its check, the letter to its author, and what b4 is told."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from wqlab_contracts.mails import mbox

from .conftest import EXAMPLE, ROOT, make_data, running_lab

sys.path[:0] = [str(ROOT)]

from server.tests.support.patchwork import patchwork  # noqa: E402
from server.tests.support.smtp import mail_server  # noqa: E402

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]
MIRROR = "mirrors/linux-6.12.git"


def until(condition: Callable[[], Any]) -> Any:
    while not (found := condition()):
        time.sleep(1)
    return found


def test_series_of_a_patchwork_gets_a_check_a_letter_and_an_answer_for_b4() -> None:
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny")
    with mail_server() as smtp:
        settings = {
            "WQLAB_SMTP_HOST": "127.0.0.1",
            "WQLAB_SMTP_PORT": str(smtp.port),
            "WQLAB_SMTP_TLS": "none",
            "WQLAB_MAIL_FROM": "wqlab <wqlab@lab.example>",
            "WQLAB_MAIL_REVIEW": "none",
            "WQLAB_PUBLIC_URL": "https://lab.example",
        }
        with running_lab(state, data, settings) as lab:
            subprocess.run(["createdb", "-h", str(state / "run"), "patchwork"], check=True)
            (state / "patchwork").mkdir()
            with patchwork(state / "patchwork", state / "run") as server:
                for mail in mbox.parse_mails(EXAMPLE.read_text()):
                    server.receive(mail.text)
                (state / "token").write_text(server.tokens["bot"])
                checks = {"project": "wq", "token_file": str(state / "token"), "owners": ["admin"]}
                archive = {"name": "pw", "kind": "patchwork", "summary": "s", "url": server.url, "private": True}
                (data / "intake").mkdir(exist_ok=True)
                (data / "intake/archives.yaml").write_text(yaml.safe_dump({"archives": [archive | {"checks": checks}]}))
                page = f"{server.url}/project/wq/list/?series=1"
                number = lab.submit("--message-id", page, "--target", "xfs-fsync@tiny", "--no-trace")
                lab.finish(number)

                def shown() -> list[dict[str, Any]]:
                    found: list[dict[str, Any]] = server.get("/api/1.3/patches/2/checks/").json()
                    return [each for each in found if each["state"] != "pending"]

                (check,) = until(shown)
                print(check)
                assert (check["context"], check["target_url"]) == (
                    "wqlab-xfs-fsync-tiny",
                    f"https://lab.example/r/{number}",
                )
                assert check["state"] == "success"
                assert check["description"].startswith("emulated: improvement: ")
            until(lambda: smtp.accepted)
            letter = smtp.accepted[0]
            text = letter.get_content()
            print(letter["To"], letter["Cc"], letter["Subject"], text, sep="\n")
            assert (letter["To"], letter["Cc"]) == ("wqlab project <patches@wqlab.example>", None), (
                "a count: to its author"
            )
            assert letter["In-Reply-To"] == "<flush-lock-runs-0@wqlab.example>"
            assert "127.0.0.1" not in text and f"https://lab.example/r/{number}" in text
            assert all(len(line) <= 72 or "://" in line for line in text.splitlines())
            told = b4_prep_check(state / "linux", lab.environment)
            print(told)
            assert "wqlab" in told


def b4_prep_check(folder: Path, environment: dict[str, str]) -> str:
    """Return what `b4 prep --check` says of the example's series with the command that docs/ci.md gives."""
    who = {f"GIT_{role}_{what}": "dev@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**environment, **who, "HOME": str(folder), "EMAIL": "dev@example.org"}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    (folder / "kernel").mkdir(parents=True)
    source = ["git", "-C", str(Path(os.environ["WQLAB_CACHE"]) / MIRROR), "show", "HEAD:kernel/workqueue.c"]
    (folder / "kernel/workqueue.c").write_bytes(subprocess.run(source, check=True, capture_output=True).stdout)
    run("git", "init", "--quiet", "--initial-branch=master")
    run("git", "config", "user.name", "Dev")
    run("git", "config", "user.email", "dev@example.org")
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "-m", "start")
    run("git", "config", "b4.prep-perpatch-check-cmd", "wqlab b4-check --lines")
    run("b4", "--no-interactive", "prep", "-n", "flush-lock-runs", "-f", "master")
    run("git", "am", "--quiet", str(EXAMPLE))
    return run("b4", "--no-interactive", "prep", "--check")
