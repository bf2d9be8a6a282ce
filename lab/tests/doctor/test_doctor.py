"""`wqlab-lab doctor` on a real lab's server: PostgreSQL, Redis and the API under supervisord, each broken for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wqlab_lab import doctor
from wqlab_lab.doctor import Check, State
from wqlab_lab.lifecycle import Lab
from wqlab_lab.paths import LabPaths, free_port
from wqlab_lab.services import POSTGRES_BIN

pytestmark = pytest.mark.integration

CHECKOUT = Path(__file__).resolve().parents[3]


def silent(text: str) -> None:
    """Report nothing."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab without devices: stores, API, tokens."""
    with tempfile.TemporaryDirectory(prefix="wqlab-", dir="/tmp") as folder:  # sockets need a short path
        lab = Lab(LabPaths(CHECKOUT, Path(folder, "cache"), Path(folder, "state")), silent)
        lab.paths.create()
        (lab.paths.run / "api.port").write_text(str(free_port(0)))  # other tests start labs on the usual one
        lab._start_server()
        yield lab
        lab.stop()


@pytest.fixture
def stopped(lab: Lab) -> Iterator[Callable[[str], None]]:
    """Stop a program of the lab; it is started again after the test."""
    names: list[str] = []

    def stop(name: str) -> None:
        names.append(name)
        lab.supervisor.stop(name)

    yield stop
    for name in names:
        lab.supervisor.start(name)
    lab._start_server()  # waits until it answers


@pytest.fixture(autouse=True)
def without_slow_checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the checks that start another Python, except where they are tested."""
    if "every_problem" not in request.node.name:
        monkeypatch.setattr(
            doctor, "CHECKS", {k: v for k, v in doctor.CHECKS.items() if k not in {"sandbox", "labgrid"}}
        )


def examine(lab: Lab) -> dict[str, Check]:
    return {check.name: check for check in doctor.examine(lab)}


def sql(lab: Lab, statement: str) -> None:
    psql = [str(POSTGRES_BIN / "psql"), "-h", str(lab.paths.run), "-d", "wqlab", "-v", "ON_ERROR_STOP=1", "-Xqc"]
    lab.run_program([*psql, statement])


NEEDS_DATABASE = ("tick", "queue", "leases", "devices")


def test_parts_that_work_are_ok(lab: Lab) -> None:
    found = examine(lab)
    for name in ("permissions", "supervisord", "process api", "process postgres", "port api", "postgresql", "schema",
                 "clock of the database", "redis", "api", "clock of the API", "token worker", "token admin", "mail",
                 "leases", "queue run", "queue build"):  # fmt: skip
        assert found[name].state is State.OK, found[name]
        assert not found[name].action
    assert "errors in postgres.log" not in found, "a start leaves no errors"
    assert "process bench" in found and found["process bench"].state is State.FAILED, "it was not started"
    assert found["start"].state is State.WARNING
    assert found["tick"].state is State.FAILED, "the server's worker does not run"
    assert found["devices"].state is State.FAILED


def test_every_problem_has_an_action_and_an_exit_status(lab: Lab) -> None:
    checks = doctor.examine(lab)
    assert all(check.action for check in checks if check.state is not State.OK)
    assert doctor.exit_status(checks) == 4
    found = {check.name: check for check in checks}
    assert found["labgrid coordinator"].state is State.FAILED, "it was not started"
    assert found["labgrid exporter"].state is State.UNKNOWN
    assert found["sandbox files"].state is State.OK
    document = json.loads(doctor.as_json(checks))
    assert document["state"] == "failed"
    assert set(document["checks"][0]) == {"name", "state", "seen", "action"}
    assert doctor.as_text(checks).splitlines()[-1].startswith(f"{sum(c.state is State.FAILED for c in checks)} failed")
    fine = [check for check in checks if check.state in {State.OK, State.WARNING}]
    assert doctor.exit_status(fine) == 0
    assert doctor.exit_status([Check("x", State.UNKNOWN, "")]) == 4
    assert doctor.exit_status([]) == 4, "nothing was checked"


def test_stopped_api(lab: Lab, stopped: Callable[[str], None]) -> None:
    stopped("api")
    found = examine(lab)
    assert found["process api"].state is found["port api"].state is found["api"].state is State.FAILED
    assert "STOPPED" in found["process api"].seen
    assert "restart api" in found["api"].action
    assert found["token worker"].state is found["token admin"].state is State.UNKNOWN
    assert found["postgresql"].state is found["redis"].state is State.OK


def test_api_that_hangs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wqlab_lab.doctor.checks.TIMEOUT_S", 5.0)
    pid = lab.supervisor.pids()["api"]
    os.kill(pid, signal.SIGSTOP)
    try:
        found = examine(lab)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert found["process api"].state is State.OK, "supervisord cannot see it"
    assert found["api"].state is State.FAILED
    assert found["token worker"].state is State.UNKNOWN


def test_stopped_postgresql(lab: Lab, stopped: Callable[[str], None]) -> None:
    stopped("postgres")
    found = examine(lab)
    assert found["process postgres"].state is found["postgresql"].state is State.FAILED
    assert "restart postgres" in found["postgresql"].action
    assert {found[name].state for name in NEEDS_DATABASE} == {State.UNKNOWN}
    assert found["schema"].state is State.UNKNOWN
    assert found["api: database"].state is State.FAILED
    assert found["token worker"].state is State.UNKNOWN
    assert found["redis"].state is State.OK


def test_stopped_redis(lab: Lab, stopped: Callable[[str], None]) -> None:
    stopped("redis")
    found = examine(lab)
    assert found["process redis"].state is found["redis"].state is State.FAILED
    assert "restart redis" in found["redis"].action
    assert found["api: broker"].state is State.FAILED
    assert found["postgresql"].state is State.OK


def test_folder_without_a_lab(tmp_path: Path) -> None:
    paths = LabPaths(CHECKOUT, tmp_path / "cache", tmp_path / "state")
    found = {check.name: check for check in doctor.examine(Lab(paths, silent))}
    assert "holds no lab" in found["supervisord"].seen
    assert found["permissions"].state is found["disk state"].state is State.FAILED
    assert not paths.state.exists(), "examining creates nothing"


def test_wrong_permissions(lab: Lab) -> None:
    token = lab.paths.keys / "worker.token"
    token.chmod(0o644)
    lab.paths.keys.chmod(0o755)
    try:
        found = examine(lab)["permissions"]
        assert found.state is State.FAILED
        assert f"other users can use {token} (mode 644)" in found.seen
        for command in found.action.split(" && "):
            subprocess.run(command, shell=True, check=True)
        assert examine(lab)["permissions"].state is State.OK, "the action repairs it"
    finally:
        token.chmod(0o600)
        lab.paths.keys.chmod(0o700)


def test_unreadable_token(lab: Lab) -> None:
    token = lab.paths.keys / "worker.token"
    token.chmod(0)
    try:
        found = examine(lab)
    finally:
        token.chmod(0o600)
    assert found["token worker"].state is State.FAILED
    assert f"{token} is not readable" in found["permissions"].seen


@contextmanager
def changed(lab: Lab, change: str, back: str) -> Iterator[dict[str, Check]]:
    """Change the database, examine the lab, and change it back."""
    sql(lab, change)
    try:
        yield examine(lab)
    finally:
        sql(lab, back)


@pytest.mark.parametrize("column", ["revoked_at", "expires_at"])
def test_revoked_and_expired_tokens(lab: Lab, column: str) -> None:
    change = f"UPDATE tokens SET {column} = now() - interval '1 s'"
    with changed(lab, change, f"UPDATE tokens SET {column} = NULL") as found:
        for name in ("worker", "admin"):
            check = found[f"token {name}"]
            assert check.state is State.FAILED
            assert "unknown, revoked or expired" in check.seen
            assert f"rm {lab.paths.keys / name}.token" in check.action


def test_worker_that_was_started_with_another_token(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.checks.Subject, "environment_of", lambda self, name: {"WQLAB_WORKER_TOKEN": "wql_old"})
    check = examine(lab)["token worker"]
    assert check.state is State.WARNING
    assert "make restart" in check.action


def test_schema_of_another_version(lab: Lab) -> None:
    [newest] = [
        row["version_num"] for row in doctor.checks.Subject(lab).query("SELECT version_num FROM alembic_version")
    ]
    back = f"UPDATE alembic_version SET version_num = '{newest}'"
    with changed(lab, "UPDATE alembic_version SET version_num = '9999'", back) as found:
        assert found["schema"].state is State.FAILED
        assert "another version" in found["schema"].seen


def test_age_of_the_tick(lab: Lab) -> None:
    back = "DELETE FROM last_tick"
    with changed(lab, "INSERT INTO last_tick VALUES (1, now(), 0.5)", back) as found:
        assert found["tick"].state is State.OK
    with changed(lab, "INSERT INTO last_tick VALUES (1, now() - interval '10 minutes', 0.5)", back) as found:
        assert found["tick"].state is State.FAILED
        assert "10 min ago" in found["tick"].seen
        assert "restart beat server" in found["tick"].action


def test_quarantined_device(lab: Lab) -> None:
    devices = """
    INSERT INTO devices (name, device_type, lab, facts, health, health_reason) VALUES
      ('a-1', 'a', 'local', '{}', 'quarantined', 'no console'), ('a-2', 'a', 'local', '{}', 'good', '')
    """
    with changed(lab, devices, "DELETE FROM devices") as found:
        assert found["devices"].seen == "1 of 2 good, 0 not checked yet"
        assert found["device a-1"].state is State.WARNING
        assert found["device a-1"].seen == "quarantined: no console"
        assert "wqlab devices release a-1" in found["device a-1"].action


def test_full_volume(lab: Lab) -> None:
    """A tmpfs of 1 MiB over the artifacts of the running lab; the command runs in its own mount namespace."""
    environment = {**lab.paths.environment(), "WQLAB_STATE": str(lab.paths.state), "WQLAB_CACHE": str(lab.paths.cache)}
    fill = "dd if=/dev/zero of=$1/artifacts/full bs=64k status=none; exec $2 -m wqlab_lab.cli doctor --json"
    fill = fill.replace("-m wqlab_lab.cli", "-c 'from wqlab_lab.cli import main; main()'")
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", str(1 << 20), "--tmpfs", str(lab.paths.state / "artifacts")),
            *("sh", "-c", fill, "sh", str(lab.paths.state), sys.executable),
        ],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["disk artifacts"]["state"] == "failed"
    assert "No space left on device" in found["disk artifacts"]["seen"]
    assert "wqlab-lab storage" in found["disk artifacts"]["action"]
    assert found["api"]["state"] == "ok", "the rest is checked"


def test_defect_of_a_check_is_unknown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.paths.golden.write_text("[1")
    found = examine(lab)
    assert found["golden systems"].state is State.UNKNOWN
    lab.paths.golden.write_text('{"x86_64": {}}')
    assert examine(lab)["golden systems"].state is State.UNKNOWN
    lab.paths.golden.unlink()
    assert examine(lab)["golden system x86_64"].state is State.FAILED


def test_stopped_lab(lab: Lab) -> None:
    """Without supervisord nothing is ok that needs a program. The last test, because it stops the lab of the others."""
    lab.stop()
    found = examine(lab)
    assert found["supervisord"].state is State.FAILED
    assert "make up" in found["supervisord"].action
    assert found["postgresql"].state is found["redis"].state is found["api"].state is State.FAILED
    assert found["permissions"].state is State.OK
