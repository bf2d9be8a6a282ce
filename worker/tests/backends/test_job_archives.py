"""The overlay and the results archive of a LAVA job, without LAVA."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import shutil
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from wqlab_contracts.messages import RunJob
from wqlab_worker.backends.condition_commands import TOO_HOT
from wqlab_worker.backends.console_tap import ConsoleTap, Wakeup
from wqlab_worker.backends.lava import job_archives
from wqlab_worker.backends.unattended.boot_files import ResultsUnreadable
from wqlab_worker.backends.unattended.replay import Replay
from wqlab_worker.measure.device_interface import DeviceFailure
from wqlab_worker.measure.script_calls import calls

from .conftest import RecordingSink
from .lava_jobs import A, B


def test_overlay_contains_all_files_of_a_boot(job: RunJob, tmp_path: Path) -> None:
    path = tmp_path / "overlay.tar"
    job_archives.overlay(job, dict.fromkeys((A, B), tmp_path / "kernel"), {B: {"x.ko": b"module"}}, [0], path)
    with tarfile.open(path) as archive:
        names = set(archive.getnames())
        calls_file = archive.extractfile("calls/0")
        assert calls_file
        script = calls_file.read().decode()
    assert {"jump", "measure", "probe", "plan/trivial.sh", "kernels/candidate", "for/candidate/x.ko"} <= names
    assert "off-after-boot" in names
    shown = 'call() { shift 4; echo "$1"; }\n' + script
    ran = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True).stdout.split()
    assert ran == [call.action for call in calls(job, 0)]


LACKS = "printf 'unsupported\\t*\\tno program fio\\n'; exit 1\n"
FAILS = "printf 'failed\\tinfrastructure\\tno disk\\n'; exit 1\n"
ON_DEVICE = ("lava-test-case", "lava-test-raise", "wget", "dmesg")


@pytest.mark.parametrize(("script", "raised"), [(LACKS, False), (FAILS, True), ("exit 1\n", True), ("exit 0\n", False)])
def test_unsupported_setup_does_not_end_the_lava_job(job: RunJob, tmp_path: Path, script: str, raised: bool) -> None:
    """Otherwise LAVA would deploy again for each remaining boot."""
    commands, called = boot_alone(job, tmp_path, script)
    assert ("lava-test-raise b0" in commands) is raised
    assert any(line.startswith("lava-test-case b0.uploaded.") and line.endswith("pass") for line in commands)
    assert called == (["setup"] if "exit 1" in script else [call.action for call in calls(job, 0)])


def boot_alone(job: RunJob, tmp_path: Path, script: str, conditions: str = "") -> tuple[list[str], list[str]]:
    """Run what the device runs in the first boot; return its commands, and the calls of the plan's script."""
    job = job.model_copy(update={"files": {"trivial.sh": script}})
    job_archives.overlay(job, dict.fromkeys((A, B), tmp_path / "kernel"), {}, [0], tmp_path / "overlay.tar")
    (lab := tmp_path / "lab").mkdir()
    (programs := tmp_path / "programs").mkdir()
    shutil.unpack_archive(tmp_path / "overlay.tar", lab)
    for name in ON_DEVICE:
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/calls\n')
        (programs / name).chmod(0o755)
    (lab / "probe").write_text("")
    (lab / "conditions").write_text(conditions)
    (lab / "restore").write_text('cat "$RECORD"\n' if conditions else "")
    (lab / "off-after-boot").unlink()
    (lab / "calls.sh").write_text((lab / "calls.sh").read_text().replace("lab=/lab\n", f"lab={lab}\n"))
    measure = (lab / "measure").read_text().replace("/tmp/", f"{tmp_path}/").replace("/lab/calls.sh", f"{lab}/calls.sh")
    command = ["/bin/sh", "-c", measure, "measure", "b0", "0", "baseline", "http://w"]
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    subprocess.run(command, env=environment, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    commands = (tmp_path / "calls").read_text().splitlines()
    return commands, [line.split()[1].rpartition(".")[2] for line in commands if line.endswith(" --units s")]


@pytest.mark.parametrize(("status", "measured"), [(0, True), (1, True), (2, True), (TOO_HOT, False)])
def test_only_an_unmet_required_condition_keeps_a_device_from_measuring(
    job: RunJob, tmp_path: Path, status: int, measured: bool
) -> None:
    conditions = f'echo "/sys/x old new" >"$RECORD"; echo "cannot write x" >&2; exit {status}\n'
    commands, called = boot_alone(job, tmp_path, "exit 0\n", conditions)
    assert called == ([call.action for call in calls(job, 0)] if measured else [])
    assert ("lava-test-raise b0" in commands) is not measured
    results = job_archives.read_results((tmp_path / "results.tgz").read_bytes())
    assert results.restored == "/sys/x old new\n", "from the file that lists the changes"
    assert results.conditions_stderr == "cannot write x\n"


def test_device_that_stopped_before_its_calls_says_what_its_conditions_printed(job: RunJob) -> None:
    results = job_archives.read_results(archive(probe="p", conditions_err="trying\nsh: x: cannot create\n"))
    replay = Replay(job, 0, results, ConsoleTap(None, RecordingSink(), Wakeup()), "LAVA job 7")
    first = next(calls(job, 0))
    with pytest.raises(DeviceFailure, match="before that call; setting the conditions printed: sh: x: cannot create"):
        replay.next_call(first.action, first.environment, first.limit_s, first.monitored)


def archive(**members: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"./{name.replace('_', '.', 1)}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return stream.getvalue()


def test_results_are_read_by_call() -> None:
    found = job_archives.read_results(
        archive(probe="p", **{"0000_out": "said", "0000_status": "0 1.5 3.0\n", "0001_status": "137 3 63\n"})
    )
    assert (found.calls[0].stdout, found.calls[0].status, found.calls[0].seconds) == ("said", 0, 1.5)
    assert (found.calls[1].status, found.calls[1].seconds) == (137, 60.0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        archive(other="x"),
        archive(probe="p", **{"0000_status": "what"}),
        archive(probe="p", **{"0000_status": "0 0 inf"}),  # JSON has no such number: the server would refuse the event
        archive(probe="p", **{"0000_status": "0 nan 1e300"}),
    ],
    ids=range(6),
)
def test_invalid_archive_is_refused(data: bytes) -> None:
    with pytest.raises(ResultsUnreadable):
        job_archives.read_results(data)


def test_a_link_in_an_archive_is_refused() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        entry = tarfile.TarInfo("probe")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/shadow"
        made.addfile(entry)
    with pytest.raises(ResultsUnreadable):
        job_archives.read_results(stream.getvalue())


def test_archive_is_assembled_from_all_pieces_or_refused() -> None:
    data = archive(probe="".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(30)))
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    digest = hashlib.sha256(data).hexdigest()
    cut = [text[at : at + 200] for at in range(0, len(text), 200)]
    cases = [f"b0.uploaded.{digest}", *(f"b0.piece.{n:05d}.{piece}" for n, piece in enumerate(cut, 1))]
    assert job_archives.archive_from_pieces("b0", cases) == job_archives.archive_from_pieces("b0", cases[::-1]) == data
    assert job_archives.archive_from_pieces("b0", []) is None
    with pytest.raises(ResultsUnreadable):
        job_archives.archive_from_pieces("b0", cases[:-1])
    with pytest.raises(ResultsUnreadable):
        job_archives.decode_archive(text, "0" * 64)


def gzipped(*blocks: bytes) -> bytes:
    """Return a gzip file with the blocks of an archive; a run of zeros is compressed a thousandfold."""
    return gzip.compress(b"".join(blocks), 6)


def header(name: str, size: int, type_: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, type_
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzipped(header("x", 200 << 20, tarfile.XHDTYPE), bytes(200 << 20)), id="extended header"),
        pytest.param(gzipped(header("x", 200 << 20, tarfile.GNUTYPE_LONGNAME), bytes(200 << 20)), id="long name"),
        pytest.param(gzipped(header("x", 1 << 40), bytes(200 << 20)), id="larger than a member may be"),
        pytest.param(gzipped(header("x", -(1 << 20))), id="negative size"),
        pytest.param(gzipped(*[header("x", 0)] * 60_000), id="many members"),
        pytest.param(gzipped(*[header("x", 0, tarfile.XHDTYPE)] * 60_000), id="many extended headers"),
        pytest.param(gzip.compress(b"x" * 2000)[:-20] + bytes(40), id="damaged compression"),
    ],
)
def test_archive_that_expands_is_refused_in_little_memory(data: bytes) -> None:
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ResultsUnreadable):
            job_archives.read_results(data)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
