"""A bundle of a submission on an emulated device: replayed offline, changed, and measured again."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from .conftest import SERIES, Lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]


@pytest.fixture(scope="module")
def bundle(lab: Lab, submissions: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> Path:
    tripled = submissions["tripled"]
    lab.finish(tripled, codes=(1,))
    file = tmp_path_factory.mktemp("bundle") / "evidence.zip"
    lab.wqlab("bundle", str(tripled), "-o", str(file), "--kernels")
    return file


def test_bundle_has_kernels_consoles_and_scripts(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        consoles = [archive.read(name) for name in names if "/consoles/" in name]
        (config,) = [archive.read(name) for name in names if "/baseline-" in name and name.endswith("/config")]
        (image,) = [name for name in names if "/candidate-" in name and name.endswith("/kernel")]
        assert archive.getinfo(image).file_size > 1_000_000
    assert len(consoles) == 4, "one for each boot"
    assert all(b"Linux version 6.12" in console for console in consoles)
    assert b"CONFIG_SMP=y" in config
    assert any(name.endswith("/scripts/xfs-fsync.sh") for name in names)
    assert any("/output/" in name for name in names)


def test_bundle_of_a_real_run_is_replayed_offline(lab: Lab, bundle: Path, tmp_path: Path) -> None:
    key = tmp_path / "lab.pub"
    key.write_text(lab.wqlab("lab-key"))
    assert (Path(lab.environment["WQLAB_STATE"]) / "keys/signing_ed25519").stat().st_mode & 0o777 == 0o600
    offline = {**lab.environment, "WQLAB_URL": "http://127.0.0.1:1"}
    command = ["wqlab", "replay", str(bundle), "--key", str(key), "--json"]
    ended = subprocess.run(command, env=offline, text=True, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    document = json.loads(ended.stdout)
    assert document["agrees"] and document["key_is_known"]
    assert {check["result"] for check in document["checks"]} == {"agrees"}
    assert any("locks_per_flush" in check["subject"] for check in document["checks"])


def test_stock_tools_verify_a_bundle(lab: Lab, bundle: Path, tmp_path: Path) -> None:
    """As in docs/replay.md, with unzip's, OpenSSH's and coreutils' formats only."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
        manifest = json.loads(archive.read("manifest.json"))
    (tmp_path / "signers").write_text("lab " + lab.wqlab("lab-key"))
    verify = "ssh-keygen -Y verify -f signers -I lab -n wqlab-bundle -s manifest.json.sig < manifest.json"
    subprocess.run(verify, shell=True, cwd=tmp_path, check=True)
    assert verify.partition("-I")[2] in (tmp_path / "README.txt").read_text()
    sums = io.StringIO()
    for name, file in manifest["files"].items():
        sums.write(f"{file['sha256']}  {name}\n")
    subprocess.run(["sha256sum", "--check", "--quiet"], input=sums.getvalue(), text=True, cwd=tmp_path, check=True)


def test_counts_of_a_bundle_are_measured_again(lab: Lab, bundle: Path) -> None:
    """The repetition builds from the bundle's series (here, the lab finds its builds) and boots both kernels."""
    document = json.loads(lab.wqlab("replay", str(bundle), "--run", "--json"))
    repeated = {check["subject"]: check["result"] for check in document["repeated"]}
    (result,) = [result for subject, result in repeated.items() if subject.endswith("locks_per_flush")]
    assert result == "agrees"
    assert "differs" not in repeated.values()


def test_bundles_of_failures_are_replayed(lab: Lab, tmp_path: Path) -> None:
    """A kernel that panics, whose console must show it, and a series that does not compile."""
    failing = {
        name: lab.submit("--mbox", str(SERIES / f"{name}.mbox"), "--target", "xfs-fsync@lone", "--blocks", "1")
        for name in ("panics-at-boot", "does-not-compile")
    }
    for name, submission in failing.items():
        lab.finish(submission, codes=(3,))
        file = tmp_path / f"{name}.zip"
        lab.wqlab("bundle", str(submission), "-o", str(file))
        document = json.loads(lab.wqlab("replay", str(file), "--json"))
        assert document["agrees"], document["checks"]
        found = [check for check in document["checks"] if check["text"].startswith("on the console: ")]
        assert bool(found) == (name == "panics-at-boot"), document["checks"]
