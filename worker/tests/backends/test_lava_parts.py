"""What the LAVA backend sends, and how it reads what comes back: without a LAVA."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from wqlab_contracts.enums import Arm
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, LavaBoot, RunJob
from wqlab_worker.backends.lava import package
from wqlab_worker.backends.lava.client import Lava, LavaJob, LavaRefused, LavaUnreachable, LogLine
from wqlab_worker.backends.lava.definition import Definition, Sources, TemplateError, define
from wqlab_worker.backends.lava.job_log import Flight
from wqlab_worker.backends.lava.job_names import Holder, cancel_left, holder_of, job_name
from wqlab_worker.backends.lava.lava_device import _from_pieces
from wqlab_worker.measure.script_calls import calls

from .conftest import ROOT, trivial_job

A, B = Arm.BASELINE, Arm.CANDIDATE
BOOTS = [BootKey(block=0, position=n, arm=arm, attempt=0) for n, arm in enumerate((A, B))]
SOURCES = Sources(
    overlay="http://w/overlay.tar",
    images={"kernel": "http://w/kernel", "ramdisk": "http://w/ramdisk"},
    variants={"baseline": "http://w/kernel-baseline", "candidate": "http://w/kernel-candidate"},
    results="http://10.0.2.2:1/s",
    callback="http://w/callback",
)


@pytest.fixture
def job(tmp_path: Path) -> RunJob:
    kernel = tmp_path / "kernel"
    kernel.write_bytes(b"image")
    data = load_data(ROOT)
    mapping = data.device_types["tiny"].lava
    assert mapping is not None
    made = trivial_job(kernel, "ab" * 20, "6.12", [[A, B]], 12, "qemu-01", 1.0)
    lava = LavaBoot(mapping=mapping, template=data.lava_templates["qemu"])
    device = made.device.model_copy(update={"lab": "far", "backend": "lava", "lava": lava})
    return made.model_copy(update={"device": device, "priority": 70})


def defined(job: RunJob, **mapping: Any) -> tuple[Definition, dict[str, Any]]:
    lava = job.device.lava
    assert lava is not None
    template = mapping.pop("template", lava.template)
    changed = LavaBoot(mapping=lava.mapping.model_copy(update=mapping), template=template)
    job = job.model_copy(update={"device": job.device.model_copy(update={"lava": changed})})
    definition = define(job, BOOTS, ["t0", "t1"], SOURCES, job_name(job, 3))
    return definition, yaml.safe_load(definition.text)


def kinds(document: dict[str, Any]) -> list[str]:
    return [next(iter(action)) for action in document["actions"]]


def test_one_job_makes_every_boot_through_the_golden_system(job: RunJob) -> None:
    definition, document = defined(job)
    assert kinds(document) == ["deploy", "boot", "boot", "test", "boot", "boot", "test"]
    assert definition.stages == [
        (0, "deploy"), (0, "golden"), (0, "kexec"), (0, "test"), (1, "golden"), (1, "kexec"), (1, "test")
    ]  # fmt: skip
    assert (document["device"], document["device_type"], document["priority"]) == ("qemu-01", "qemu", 70)
    assert document["notify"]["callbacks"][0]["url"] == SOURCES.callback
    kexecs = [a["boot"] for a in document["actions"] if a.get("boot", {}).get("method") == "kexec"]
    assert [kexec["kernel"] for kexec in kexecs] == ["baseline", "candidate"]
    for kexec, token in zip(kexecs, ("t0", "t1"), strict=True):
        assert f"wqlab.token={token}" in kexec["options"][0]
    limits = [next(iter(a.values()))["timeout"]["seconds"] for a in document["actions"]]
    assert document["timeouts"]["job"]["seconds"] >= sum(limits)
    [step] = document["actions"][3]["test"]["definitions"][0]["repository"]["run"]["steps"]
    assert step == f"/lab/measure b0-0-baseline-0 0 baseline {SOURCES.results}"


@pytest.mark.parametrize(("emulated", "options"), [(True, ["--no-checks"]), (False, [])])
def test_what_devices_wrote_into_a_loaded_kernel_is_looked_for_where_they_can(
    job: RunJob, emulated: bool, options: list[str]
) -> None:
    device = job.device.model_copy(update={"emulated": emulated})
    _, document = defined(job.model_copy(update={"device": device}))
    kexecs = [a["boot"] for a in document["actions"] if a.get("boot", {}).get("method") == "kexec"]
    assert [kexec["options"][1:] for kexec in kexecs] == [options, options]


def test_a_device_that_cannot_kexec_is_deployed_for_every_boot(job: RunJob) -> None:
    definition, document = defined(job, kexec=False)
    assert kinds(document) == ["deploy", "boot", "test"] * 2
    assert definition.stages == [(n, phase) for n in (0, 1) for phase in ("deploy", "kexec", "test")]
    urls = [a["deploy"]["images"]["kernel"]["url"] for a in document["actions"] if "deploy" in a]
    assert urls == ["http://w/kernel-baseline", "http://w/kernel-candidate"]


@pytest.mark.parametrize("boot", ["grub", "ipxe", "depthcharge", "qemu"])
def test_every_template_gives_a_deploy_and_a_boot(job: RunJob, boot: str) -> None:
    images = {"kernel": "http://g/kernel", "ramdisk": "http://g/ramdisk.gz", "dtb": "http://g/device.dtb"}
    template = load_data(ROOT).lava_templates[boot]
    _, document = defined(job, boot=boot, template=template, images=images, ramdisk_compression="gz")
    assert document["actions"][1]["boot"]["method"] == boot
    assert "http://g/ramdisk.gz" in yaml.safe_dump(document["actions"][0])


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ("- boot: {}", "not a deploy"),
        ("just words", "no list of actions"),
        ("- {", "while parsing"),
        ("{{ images.kernel.x }}", "qemu.yaml.jinja2"),
    ],
)
def test_a_broken_template_is_named(job: RunJob, template: str, words: str) -> None:
    with pytest.raises(TemplateError, match=r"qemu\.yaml\.jinja2") as error:
        defined(job, template=template)
    assert words in str(error.value)


def test_an_image_that_nobody_names_is_named(job: RunJob) -> None:
    lava = job.device.lava
    assert lava is not None
    nothing = Sources(overlay="o", images={}, variants={}, results="r", callback="c")
    with pytest.raises(TemplateError, match=r"lava\.images"):
        define(job, BOOTS, ["t0", "t1"], nothing, "name")


# --- the overlay and the archive ----------------------------------------------------------------------------------


def test_the_overlay_has_what_a_boot_needs(job: RunJob, tmp_path: Path) -> None:
    path = tmp_path / "overlay.tar"
    package.overlay(job, dict.fromkeys((A, B), tmp_path / "kernel"), {B: {"x.ko": b"module"}}, [0], path)
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
def test_a_device_that_lacks_what_a_plan_needs_ends_no_job(
    job: RunJob, tmp_path: Path, script: str, raised: bool
) -> None:
    """LAVA would deploy anew for each of the boots left."""
    job = job.model_copy(update={"files": {"trivial.sh": script}})
    package.overlay(job, dict.fromkeys((A, B), tmp_path / "kernel"), {}, [0], tmp_path / "overlay.tar")
    (lab := tmp_path / "lab").mkdir()
    (programs := tmp_path / "programs").mkdir()
    shutil.unpack_archive(tmp_path / "overlay.tar", lab)
    for name in ON_DEVICE:
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/told\n')
        (programs / name).chmod(0o755)
    for name in ("probe", "conditions"):
        (lab / name).write_text("")
    (lab / "off-after-boot").unlink()
    measure = (lab / "measure").read_text().replace("/tmp/", f"{tmp_path}/").replace("lab=/lab\n", f"lab={lab}\n")
    command = ["/bin/sh", "-c", measure, "measure", "b0", "0", "baseline", "http://w"]
    environment = {"PATH": f"{programs}:/usr/bin:/bin"}
    subprocess.run(command, env=environment, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    told = (tmp_path / "told").read_text().splitlines()
    assert ("lava-test-raise b0" in told) is raised
    assert any(line.startswith("lava-test-case b0.uploaded.") and line.endswith("pass") for line in told)
    called = [line.split()[1].rpartition(".")[2] for line in told if line.endswith(" --units s")]
    assert called == (["setup"] if "exit 1" in script else [call.action for call in calls(job, 0)])


def archive(**members: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name, text in members.items():
            entry = tarfile.TarInfo(f"./{name.replace('_', '.', 1)}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return stream.getvalue()


def test_results_are_read_by_call() -> None:
    found = package.read_results(
        archive(probe="p", **{"0000_out": "said", "0000_status": "0 1.5 3.0\n", "0001_status": "137 3 63\n"})
    )
    assert (found.called[0].stdout, found.called[0].status, found.called[0].seconds) == ("said", 0, 1.5)
    assert (found.called[1].status, found.called[1].seconds) == (137, 60.0)


@pytest.mark.parametrize(
    "data", [b"", b"junk", archive(other="x"), archive(probe="p", **{"0000_status": "what"})], ids=range(4)
)
def test_an_archive_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(package.ResultsUnreadable):
        package.read_results(data)


def test_a_link_in_an_archive_is_refused() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        entry = tarfile.TarInfo("probe")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/shadow"
        made.addfile(entry)
    with pytest.raises(package.ResultsUnreadable):
        package.read_results(stream.getvalue())


def test_pieces_make_the_whole_or_nothing() -> None:
    data = archive(probe="".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(30)))
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    digest = hashlib.sha256(data).hexdigest()
    cut = [text[at : at + 200] for at in range(0, len(text), 200)]
    cases = [f"b0.uploaded.{digest}", *(f"b0.piece.{n:05d}.{piece}" for n, piece in enumerate(cut, 1))]
    assert _from_pieces("b0", cases) == _from_pieces("b0", cases[::-1]) == data
    assert _from_pieces("b0", []) is None
    with pytest.raises(package.ResultsUnreadable):
        _from_pieces("b0", cases[:-1])
    with pytest.raises(package.ResultsUnreadable):
        package.unpacked(text, "0" * 64)


# --- a job on its way ---------------------------------------------------------------------------------------------


class ToldLava:
    """A LAVA of whose one job the log is known."""

    def __init__(self, lines: list[tuple[str, str]]) -> None:
        began = datetime(2026, 11, 1, tzinfo=UTC)
        self.lines = [
            LogLine(dt=began + timedelta(seconds=n), lvl=level, msg=text) for n, (level, text) in enumerate(lines)
        ]

    def job(self, number: int) -> LavaJob:
        return LavaJob(id=number, state="Finished", health="Complete")

    def log(self, number: int, start: int = 0) -> list[LogLine]:
        return self.lines[start:]


def test_a_log_is_cut_into_the_consoles_of_its_boots(job: RunJob) -> None:
    definition, _ = defined(job)
    story = [
        ("info", "start: 0 validate"), ("info", "start: 1 deployimages (timeout 00:10:00) [common]"),
        ("info", "start: 2 boot-image-retry (timeout 00:04:00) [common]"), ("target", "golden 0"),
        ("info", "start: 3 kexec-boot (timeout 00:04:00) [common]"), ("target", "root@golden# /lab/jump -e"),
        ("target", "[    9.1] kexec_core: Starting new kernel"), ("target", "variant 0"), ("debug", "no console"),
        ("info", "start: 4 lava-test-retry (timeout 00:04:00) [common]"), ("target", "measured 0"),
        ("info", "start: 5 boot-image-retry (timeout 00:04:00) [common]"), ("target", "golden 1"),
        ("info", "start: 6 kexec-boot (timeout 00:04:00) [common]"),
        ("target", "wqlab-jump: refused: kexec did not load /lab/kernels/candidate"), ("error", "kexec timed out"),
        ("info", "start: 8 finalize (timeout 00:04:00) [common]"), ("target", "nobody's"),
    ]  # fmt: skip
    flight = Flight(ToldLava(story), 1, BOOTS, definition)  # type: ignore[arg-type]
    assert not flight.over
    flight.follow()
    first, second = flight.logs
    assert b"".join(first.golden).splitlines() == [
        b"golden 0", b"root@golden# /lab/jump -e", b"[    9.1] kexec_core: Starting new kernel"
    ]  # fmt: skip
    assert first.variant == [b"variant 0\n", b"measured 0\n"]
    assert (first.seconds("golden", "kexec"), first.seconds("kexec", "test")) == (2.0, 5.0)
    assert first.jumped
    assert not second.jumped
    assert second.refused.startswith("kexec did not load")
    assert not second.variant
    assert flight.errors == ["kexec timed out"]
    assert flight.whole(1)
    assert not flight.over, "its log may have more"
    flight.follow()
    assert flight.over


# --- jobs that are left -------------------------------------------------------------------------------------------


def test_jobs_without_a_lease_are_cancelled_and_no_others(job: RunJob) -> None:
    canceled: list[int] = []

    class Left:
        def user(self) -> str:
            return "wqlab"

        def unfinished(self, user: str) -> list[LavaJob]:
            names = [job_name(job, 3), job_name(job, 4), "somebody's own", "wqlab near run 1 fence 1 on x: p"]
            return [LavaJob(id=n, description=name, state="Running", health="Unknown") for n, name in enumerate(names)]

        def cancel(self, number: int) -> None:
            canceled.append(number)

    assert holder_of(LavaJob(id=1, description=job_name(job, 3), state="Running", health="Unknown")) == Holder(
        "far", 12, 3, "qemu-01"
    )
    assert cancel_left(Left(), "far", lambda: [(12, 4)]) == [0]  # type: ignore[arg-type]
    assert canceled == [0]


# --- REST ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (503, "", LavaUnreachable, "answers 503"),
        (200, "<html>", LavaUnreachable, "something else than JSON"),
        (403, '{"detail": "Invalid token."}', LavaRefused, "Invalid token"),
        (400, '{"message": "Devices unavailable"}', LavaRefused, "Devices unavailable"),
    ],
)
def test_what_is_no_answer_of_a_lava_is_said(status: int, body: str, error: type[Exception], words: str) -> None:
    lava = Lava("http://lava", "t")
    lava._http = httpx.Client(
        base_url="http://lava/api/v0.2/",
        transport=httpx.MockTransport(lambda request: httpx.Response(status, text=body)),
    )
    with pytest.raises(error, match=words):
        lava.version()


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(LavaUnreachable, match=r"LAVA at http://127\.0\.0\.1:9 does not answer"):
        Lava("http://127.0.0.1:9", "t").version()
