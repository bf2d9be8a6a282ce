"""A series on a real Patchwork, measured by a running lab: its check, and the letter to its author."""

from __future__ import annotations

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


def until(condition: Callable[[], Any]) -> Any:
    while not (found := condition()):
        time.sleep(1)
    return found


def test_series_of_a_patchwork_gets_a_check_and_its_author_a_letter() -> None:
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
