"""Back up a real lab, and restore it into a new folder: the API answers byte for byte as before."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_lab.backup import DATABASE, MANIFEST, BackupError, backup, restore
from wqlab_lab.lifecycle import Lab
from wqlab_lab.paths import LabPaths
from wqlab_lab.services import POSTGRES_BIN

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[2]
CONTENT = b"a kernel"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATHS = ("/api/v1/users", "/api/v1/audit")
"""What is the same after a restore."""


def silent(text: str) -> None:
    """Report nothing."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wqlab-", dir="/tmp") as name:  # sockets need a short path
        yield Path(name)


@pytest.fixture(scope="module")
def new_lab(folder: Path) -> Iterator[Callable[[str], Lab]]:
    made: list[Lab] = []

    def make(name: str) -> Lab:
        made.append(Lab(LabPaths(CHECKOUT, folder / "cache", folder / name), silent))
        return made[-1]

    yield make
    for lab in made:
        lab.stop()


@pytest.fixture(scope="module")
def old(new_lab: Callable[[str], Lab]) -> Lab:
    """A running lab with an artifact, and with another one whose file is missing."""
    lab = new_lab("old")
    lab.paths.create()
    lab._start_server()
    rows = f"('{SHA256}', {len(CONTENT)}), ('{'0' * 64}', 1)"
    psql = [str(POSTGRES_BIN / "psql"), "-h", str(lab.paths.run), "-d", "wqlab", "-v", "ON_ERROR_STOP=1", "-Xq"]
    lab.run_program([*psql, "-c", f"INSERT INTO artifacts (sha256, size) VALUES {rows}"])
    (stored := lab.paths.state / "artifacts" / SHA256[:2] / SHA256).parent.mkdir(parents=True)
    stored.write_bytes(CONTENT)
    return lab


@pytest.fixture(scope="module")
def saved(old: Lab, folder: Path) -> Path:
    file = folder / "lab.backup"
    summary = backup(old, file, silent)
    assert "keep it secret" in summary
    assert "missing in the store" in summary
    return file


def rewritten(saved: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Copy a backup, with the content that `change` returns for each member; None leaves it out."""
    with tarfile.open(saved) as before, tarfile.open(target, "w") as after:
        for member in before.getmembers():
            content = before.extractfile(member)
            assert content is not None
            if (new := change(member.name, content.read())) is not None:
                member.size = len(new)
                after.addfile(member, io.BytesIO(new))
    return target


def answers(lab: Lab, token: str) -> dict[str, bytes]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=lab.paths.url, headers=headers, trust_env=False, timeout=None) as api:
        return {path: api.get(path).raise_for_status().content for path in PATHS}


def test_restored_lab_answers_as_before(old: Lab, saved: Path, new_lab: Callable[[str], Lab]) -> None:
    port, token = old.paths.port("api"), old.paths.token("admin")
    before = answers(old, token)
    assert b'"admin"' in before["/api/v1/users"]
    old.stop()
    lab = new_lab("restored")
    assert "`make up` starts it" in restore(lab, saved, silent)
    (lab.paths.run / "api.port").write_text(str(port))
    lab._start_server()
    assert answers(lab, token) == before, "the administrator's token is valid, too"
    assert (lab.paths.state / "artifacts" / SHA256[:2] / SHA256).read_bytes() == CONTENT
    keys = {path.name: path.stat().st_mode & 0o777 for path in lab.paths.keys.iterdir()}
    assert keys == {path.name: path.stat().st_mode & 0o777 for path in old.paths.keys.iterdir()}
    assert {"admin.token", "worker.token", "lab_ed25519"} <= keys.keys()
    assert not (lab.paths.state / DATABASE).exists()
    lab.stop()


def test_backup_is_readable_by_its_owner_only(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in saved.parent.glob(".*partial*")] == []


def test_existing_file_is_not_overwritten(old: Lab, saved: Path) -> None:
    with pytest.raises(BackupError, match="exists already"):
        backup(old, saved, silent)


def test_stopped_lab_is_backed_up(old: Lab, saved: Path, folder: Path) -> None:
    old.stop()
    backup(old, file := folder / "stopped.backup", silent)
    with tarfile.open(file) as archive:
        assert f"artifacts/{SHA256}" in archive.getnames()


def test_restore_refuses_a_folder_with_files(saved: Path, new_lab: Callable[[str], Lab]) -> None:
    lab = new_lab("used")
    lab.paths.create()
    (mine := lab.paths.keys / "mine").write_text("precious")
    with pytest.raises(BackupError, match="is not empty"):
        restore(lab, saved, silent)
    assert mine.read_text() == "precious"


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "foreign", "escaping", "not a backup"])
def test_damaged_backup_is_refused_and_leaves_nothing(
    damage: str, saved: Path, folder: Path, new_lab: Callable[[str], Lab]
) -> None:
    file = folder / f"{damage}.tar"
    artifact = f"artifacts/{SHA256}"
    if damage == "truncated":
        file.write_bytes(saved.read_bytes()[: saved.stat().st_size // 2])
    elif damage == "not a backup":
        file.write_bytes(b"some other file" * 1000)
    elif damage == "changed":
        rewritten(saved, file, lambda name, content: content[::-1] if name == artifact else content)
    elif damage == "missing":
        rewritten(saved, file, lambda name, content: None if name == artifact else content)
    elif damage == "foreign":
        rewritten(saved, file, lambda name, content: content.replace(b'"admin.token"', b'"../a.token"'))
    else:
        rewritten(saved, file, lambda name, content: content)
        with tarfile.open(file, "a") as archive:
            archive.addfile(tarfile.TarInfo("../../escaped"), io.BytesIO())
    lab = new_lab(f"from-{damage.split(maxsplit=1)[0]}")
    with pytest.raises(BackupError, match=r"is damaged|is not a backup") as refused:
        restore(lab, file, silent)
    assert str(file) in str(refused.value)
    assert not lab.paths.state.exists() or not list(lab.paths.state.iterdir())
    assert not (folder / "escaped").exists()


def test_backup_of_a_newer_schema_is_refused(saved: Path, folder: Path, new_lab: Callable[[str], Lab]) -> None:
    def newer(name: str, content: bytes) -> bytes:
        if name != MANIFEST:
            return content
        return json.dumps(json.loads(content) | {"schema": ["of_the_future"], "wqlab": "9.0.0"}).encode()

    lab = new_lab("from-newer")
    file = rewritten(saved, folder / "newer.tar", newer)
    with pytest.raises(BackupError, match=r"wqlab 9.0.0 with schema of_the_future, which wqlab .* does not"):
        restore(lab, file, silent)


ON_A_FULL_VOLUME = """
import sys
from pathlib import Path
from wqlab_lab.backup import BackupError, backup
from wqlab_lab.lifecycle import Lab
from wqlab_lab.paths import LabPaths
data, cache, state, target = map(Path, sys.argv[1:])
try:
    backup(Lab(LabPaths(data, cache, state), lambda text: None), target / "lab.backup", lambda text: None)
except BackupError as error:
    print(error, sorted(path.name for path in target.iterdir()))
"""


def test_full_volume_leaves_no_partial_backup(old: Lab, saved: Path, folder: Path) -> None:
    (target := folder / "full").mkdir()
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", str(64 << 10), "--tmpfs", target),
            *(sys.executable, "-c", ON_A_FULL_VOLUME, CHECKOUT, old.paths.cache, old.paths.state, target),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"{target}/lab.backup could not be written: No space left on device []", done.stderr
