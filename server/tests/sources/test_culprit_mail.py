"""The letter about a regression on hardware, from the request of a bisection to the mail server, after review.

The bisection is a lab's, on a real git repository; the boots of its machine are played back.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from report_parts import ryzen
from sqlalchemy import select

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import (
    Arm,
    ArtifactKind,
    DeliveryKind,
    DeliveryState,
    JobKind,
    JobState,
    Outcome,
    RunPurpose,
    Scale,
)
from wqlab_contracts.enums import BisectionState as State
from wqlab_contracts.messages import BlockFinished, BootKey, BootVerified, BuildJob, BuildResult, RunResult, Samples
from wqlab_server.models import Bisection, Delivery, Run, Submission
from wqlab_server.outbox.send import deliver

from ..support.bisecting import begin, grow, to_end
from ..support.lab import NOW, RunSession, ScriptedWorker, passing_build
from ..support.smtp import mail_server
from ..support.watching import Upstream, WatchingLab

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
LETTER = ROOT / "docs/example-letter-regression.txt"
SAID = (
    "(An example. A lab wrote it in a test: it bisected eight commits of a small repository, and played back boots "
    "whose figures are made up. No machine has measured them.)"
)
HARDWARE = """\
name: ryzen-3900x
arch: x86_64
summary: AMD Ryzen 9 3900X, four L3 domains of three cores
topology: {sockets: 1, l3_per_socket: 4, cores_per_l3: 3, threads_per_core: 2}
units: [{name: ryzen-3900x-1}]
"""
FACTS = {
    "cpu model": "AMD Ryzen 9 3900X 12-Core Processor", "governor": "performance", "smt": "on",
    "preemption": "voluntary", "hz": "250",
}  # fmt: skip
PLAN, SETTING, SHIFT = "dm-crypt-affinity", "scope=cache,strict=1", -0.12
LEVELS = {
    "bandwidth": 993.8, "read_clat_p50": 5120.0, "read_clat_p99": 17112.0, "write_clat_p99": 17301.0,
    "queue_to_start_p50_us": 41.0, "queue_to_start_p99_us": 3120.0, "cpu_utilisation": 80.1,
    "cpu_seconds_per_gib": 19.4,
}  # fmt: skip
COMMAND = (
    "fio --name=iops-test-job --filename=/dev/mapper/wqlab-crypt --direct=1 --rw=randrw --bs=32k --ioengine=libaio "
    "--iodepth=64 --numjobs=4 --size=524288k --offset_increment=524288k --group_reporting --verify=sha512 "
    "--runtime=60 --time_based"
)
CANARIES = 2


class Machine:
    """Plays back the boots of the machine. A kernel with the commit `slow` has less bandwidth and longer times."""

    def __init__(self, lab: WatchingLab) -> None:
        self.lab = lab
        self.slow: set[str] = set()
        lab.worker.on_build, lab.worker.on_run = self.build, self.run

    def build(self, job: BuildJob, worker: ScriptedWorker) -> BuildResult:
        config = worker.upload(ArtifactKind.CONFIG, "config", b"CONFIG_HZ=250\n")
        made = passing_build(job, worker)
        compiler = "gcc (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld 2.40"
        return made.model_copy(update={"compiler": compiler, "artifacts": [*made.artifacts, config]})

    def run(self, session: RunSession) -> RunResult:
        kernels = self.kernels(session)
        metrics = {metric.name: metric for metric in session.job.plan.metrics}

        def value(arm: Arm, _setting: str, name: str, block: int) -> float:
            noise = random.Random(f"{kernels[arm]} {arm} {name} {block}").gauss(0, 0.002)
            if metrics[name].scale is Scale.DIFFERENCE and name not in LEVELS:
                return 50.0
            shift = SHIFT if kernels[arm] in self.slow and name != "cpu_utilisation" else 0.0
            factor = 1 + shift if metrics[name].direction == "higher_is_better" else 1 / (1 + shift)
            return round(LEVELS.get(name, 100.0) * factor * (1 + noise), 2)

        session.worker.value = value
        for plan in session.remaining:
            for position, arm in enumerate(plan.arms):
                key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
                session.send(*(self.described(each) for each in session.boot_events(key)))
            session.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))
            session.heartbeat()
        return RunResult(outcome=Outcome.PASSED)

    def kernels(self, session: RunSession) -> dict[Arm, str]:
        """Return what tells the kernels of a run: a commit, with the one that is reverted on top; or the canary."""
        if session.job.purpose is not RunPurpose.MEASURE:
            return dict.fromkeys(Arm, f"run {session.job.run_id}")
        with self.lab.transaction() as db:
            request = db.get_one(Submission, db.get_one(Run, session.job.run_id).submission_id).request
        assert request.series and request.series.commits
        pair = request.series.commits
        reverted = f" without {pair.reverted}" if pair.reverted else ""
        return {Arm.BASELINE: pair.baseline, Arm.CANDIDATE: f"{pair.candidate}{reverted}"}

    @staticmethod
    def described(event: object) -> object:
        if isinstance(event, Samples):
            return event.model_copy(update={"commands": dict.fromkeys(event.commands, COMMAND)})
        if isinstance(event, BootVerified):
            return event.model_copy(update={"topology": ryzen(), "environment": FACTS})
        return event


@pytest.fixture
def machine(watching: WatchingLab) -> Machine:
    """A lab with a machine and the plan dm-crypt-affinity, that mails."""
    folder = watching.settings.data_dir
    (folder / "device-types/ryzen-3900x.yaml").write_text(HARDWARE)
    for name in ("device", "single"):
        (folder / f"device-types/{name}.yaml").unlink()
    watching.configure("")
    for name in (PLAN, "common"):
        shutil.copytree(ROOT / "testplans" / name, folder / "testplans" / name)
    mail = {
        "smtp_host": "127.0.0.1", "smtp_tls": "none", "mail_from": "wqlab <wqlab@lab.example.org>",
        "mail_operator": "Ada Lovelace <ada@lab.example.org>", "mail_regressions_to": "linux-kernel@vger.example",
        "mail_review": "none", "mail_regzbot": True, "public_url": "https://lab.example.org",
    }  # fmt: skip
    watching.settings = watching.settings.model_copy(update=mail)
    made = Machine(watching)
    watching.until_idle()
    watching.mark_all_good()
    return made


def bisect(lab: WatchingLab, good: str, bad: str) -> Bisection:
    wanted = {"plan": PLAN, "device_type": "ryzen-3900x", "scenario": "LOW", "setting": SETTING}
    return to_end(lab, begin(lab, good, bad, metric="bandwidth", blocks=8, **wanted))


def run_canaries(lab: WatchingLab) -> None:
    """Compare a kernel of the machine with itself, each time on another day."""
    before = lab.settings
    lab.settings = before.model_copy(update={"canaries": 1440, "idle_check_after_s": 0.0})
    for _ in range(10 * CANARIES):
        with lab.transaction() as session:
            ended = select(Run.id).where(Run.purpose == RunPurpose.CANARY, Run.state == JobState.FINISHED)
            if len(session.scalars(ended).all()) == CANARIES:
                break
        lab.tick()
        lab.work(*JobKind, ADVANCE)  # no tick, which begins the next one
        lab.sql("UPDATE run_attempts SET started_at = started_at - interval '1 day'")
        lab.sql("UPDATE run_attempts SET finished_at = finished_at - interval '1 day'")
    lab.settings = before
    lab.tick()


def test_regression_on_hardware_is_mailed_to_its_author_and_a_list_after_review(
    machine: Machine, upstream: Upstream
) -> None:
    lab, commits = machine.lab, grow(upstream, 4)
    same = bisect(lab, commits[0], "for-next")
    assert same.state is State.NO_DIFFERENCE, same.reason
    run_canaries(lab)
    (upstream.path / "kernel/slow.c").write_text("int slow;\n")
    upstream.git("add", "--all")
    upstream.git(
        "commit",
        "--quiet",
        "--author",
        "Eve <eve@example.org>",
        "-m",
        "workqueue: Visit every pool before a worker is woken",
    )
    culprit = upstream.git("rev-parse", "HEAD")
    commits += [culprit, *grow(upstream, 3)[1:]]
    machine.slow = set(commits[5:])
    found = bisect(lab, commits[0], "for-next")
    assert (found.state, found.culprit) == (State.FOUND, culprit), found.reason
    lab.tick()
    with lab.transaction() as session:
        (waiting,) = session.scalars(select(Delivery).where(Delivery.kind == DeliveryKind.MAIL)).all()
    assert waiting.state is DeliveryState.WAITING_FOR_REVIEW
    with mail_server() as server:
        lab.settings = lab.settings.model_copy(update={"smtp_port": server.port})
        assert deliver(lab.sessions, lab.settings, waiting.id) is None
        lab.post(f"deliveries/{waiting.id}/approve")
        assert deliver(lab.sessions, lab.settings, waiting.id) is not None
    (mail,) = server.accepted
    assert server.recipients == [["eve@example.org", "linux-kernel@vger.example"]]
    lines = mail.get_content().splitlines()
    assert [line for line in lines if len(line) > 72 and "://" not in line] == []
    head = [f"{name}: {mail[name]}" for name in ("From", "To", "Cc", "Subject") if mail[name]]
    text = "\n".join([SAID, "", *head, "", mail.get_content().replace("\r\n", "\n")])
    if os.environ.get("WQLAB_WRITE_GOLDEN") == "1":
        LETTER.write_text(text)
    assert text == LETTER.read_text(), "after an intended change run `make golden` and read the diff of the letter"
