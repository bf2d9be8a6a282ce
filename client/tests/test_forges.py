"""`wqlab forge` against the real server, and a stub of a forge's API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from commandline import CommandResult, Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.intake.forges.hub import API, OPENED, Hub
from server.tests.intake.forges.recorded import OLD, load
from server.tests.support.forge import stub_forge
from server.tests.support.lab import LabUnderTest
from wqlab_contracts.forges_file import FILE

pytestmark = pytest.mark.integration


@pytest.fixture
def hub(request: pytest.FixtureRequest, data_dir: Path, tmp_path: Path) -> Iterator[Hub]:
    """A lab with one forge, which waits for a label."""
    with stub_forge("gitea") as stub:
        forge = stub.config(tmp_path, label="wqlab: ok").model_dump(mode="json", exclude_defaults=True)
        (data_dir / FILE).write_text(yaml.safe_dump({"forges": [forge]}))
        lab: LabUnderTest = request.getfixturevalue("real_lab")
        lab.mark_all_good()
        stub.pulls[7] = load(f"{API['gitea']}-fork")
        yield Hub(lab, stub)


def test_forge_is_listed_shown_and_polled(hub: Hub, url: str, wqlab: Wqlab) -> None:
    def ask(*arguments: str) -> CommandResult:
        return wqlab("--url", url, "--token", hub.lab.token, "forge", *arguments)

    assert "never" in ask("list").out
    hub.event(f"{OPENED['gitea']}-fork")
    hub.poll()
    assert hub.post(OPENED["gitea"], **{"X-Hub-Signature-256": "sha256=0"}).status_code == 401
    listed = ask("list")
    assert "1 waiting" in listed.out
    assert "hub: last error" in listed.err and "event: 401: X-Hub-Signature-256 does not match" in listed.err
    shown = ask("show", "hub")
    assert f"hub: gitea {hub.stub.url}/wq/linux, tree lab-tree, owner dev" in shown.out
    assert "device time is spent by members, or by the label 'wqlab: ok'" in shown.out
    assert "taken: pull/7" in shown.out
    assert f"pending at {OLD[:12]} (delivered, delivery 1): waits for the label 'wqlab: ok'" in shown.out
    assert f"pull/7 {OLD[:12]} by mallory (fork), seen " in shown.out
    assert ": waiting: waits for the label" in shown.out
    assert "see `wqlab forge show hub`" in ask("poll", "hub").out
    assert '"name": "hub"' in ask("list", "--json").out
    missing = ask("show", "other")
    assert missing.code == 2 and "the operator lists forges in intake/forges.yaml" in missing.err


def test_lab_without_forges(real_lab: LabUnderTest, url: str, wqlab: Wqlab) -> None:
    assert "no forges; the operator lists them" in wqlab("--url", url, "--token", real_lab.token, "forge", "list").err
