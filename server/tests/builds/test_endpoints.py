"""Endpoints of builds and their artifacts."""

from __future__ import annotations

import httpx
import pytest

from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.enums import Arm

from ..support.live_server import expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration


def test_build_shows_new_warnings_and_sends_its_files(client: httpx.Client, scene: Scene) -> None:
    ids = scene.builds(scene.submission())
    url = f"/api/v1/builds/{ids[Arm.CANDIDATE]}"
    build = BuildView.model_validate_json(expect(client.get(url)).content)
    assert [warning.text for warning in build.new_warnings] == ["no return"]
    assert build.tree_oid == "c" * 40
    log = expect(client.get(f"{url}/log"))
    assert log.text == "log of candidate\n"
    assert log.headers["content-type"].startswith("text/plain")
    assert expect(client.get(f"{url}/config")).text == "CONFIG_SMP=y\nCONFIG_NEW=y\n"
    part = expect(client.get(f"{url}/log", headers={"Range": "bytes=7-15"}), 206)
    assert (part.text, part.headers["content-range"]) == ("candidate", "bytes 7-15/17")
    assert client.get(f"{url}/log", headers={"Range": "bytes=90-99"}).status_code == 416
    again = client.get(f"{url}/log", headers={"Range": "bytes=0-2", "If-Range": '"another"'})
    assert (again.status_code, again.text) == (200, log.text)


def test_only_artifacts_of_the_build_are_sent(client: httpx.Client, scene: Scene) -> None:
    ids = scene.builds(scene.submission())
    own = client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}").json()["artifacts"][0]["sha256"]
    assert expect(client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/{own}")).text == "log of baseline\n"
    assert client.get(f"/api/v1/builds/{ids[Arm.CANDIDATE]}/artifacts/{own}").status_code == 404
    assert client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/../../etc").status_code in {404, 422}
    (scene.settings.artifact_dir / own[:2] / own).unlink()
    gone = expect(client.get(f"/api/v1/builds/{ids[Arm.BASELINE]}/artifacts/{own}"), 404)
    assert "no longer in the artifact store" in gone.json()["detail"]
