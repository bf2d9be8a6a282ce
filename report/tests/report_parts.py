"""Plans, builds, targets and samples of which the tests make reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from wqlab_comparison import Samples, TargetFacts, boot_values, compare, conclude
from wqlab_comparison.target import BootCount
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import Environment, Report, TargetReport
from wqlab_contracts.api.submissions import ApplyView, Eta, SubmissionView, SubmittedRequest, SubmittedSeries
from wqlab_contracts.enums import (
    Arm,
    JobState,
    Outcome,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import (
    GitSeries,
    MeasuredTopology,
    PatchSummary,
    StackFrame,
    Target,
)
from wqlab_contracts.specs import TestPlan, Topology
from wqlab_report.content.shared_text import METHOD

NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)
CONFIG = "5f0c1d2e3b4a596877665544332211000f1e2d3c4b5a69788796a5b4c3d2e1f0"

MEANINGS = {
    "locks_per_flush": "Locks a flush takes before it waits or returns; the count that most flushes show",
    "locks_per_fsync": "All locks of its flushes, for each completed fsync",
    "l3_share": "Work items that ran in the L3 domain where they were queued",
}


def metric(name: str, unit: str, scale: str, direction: str, kind: str, role: str = "explanatory") -> dict[str, Any]:
    hardware = "primary" if name == "bandwidth" else "explanatory"
    return {
        "name": name,
        "summary": MEANINGS.get(name, "as the plan describes it"),
        "unit": unit,
        "scale": scale,
        "direction": direction,
        "class": kind,
        "taken_from": "traced" if kind == "mechanism" else "untraced",
        "role_emulated": role,
        "role_hardware": hardware,
    }


XFS = TestPlan.model_validate(
    {
        "name": "xfs-fsync",
        "summary": "concurrent writers that fsync every block on XFS",
        "script": "run.sh",
        "parser": "fsync",
        "scenarios": [{"name": "fsync", "summary": "64 jobs on four file systems"}],
        "reference_setting": "",
        "hardware": {"settings": [""]},
        "emulated": {"settings": [""], "blocks": 3, "repetitions": {"warmup": 0, "untraced": 1}},
        "metrics": [
            metric("locks_per_flush", "acquisitions", "ratio", "lower_is_better", "mechanism", "primary"),
            metric("locks_per_fsync", "acquisitions", "ratio", "lower_is_better", "mechanism", "secondary"),
            metric("flushes_per_fsync", "flushes", "ratio", "none", "mechanism"),
            metric("bandwidth", "MiB/s", "ratio", "higher_is_better", "performance"),
            metric("fsync_p99", "ms", "ratio", "lower_is_better", "performance"),
        ],
    }
)
CRYPT = TestPlan.model_validate(
    {
        "name": "dm-crypt-affinity",
        "summary": "dm-crypt under the affinity scopes of its workqueue",
        "script": "run.sh",
        "parser": "dmcrypt",
        "scenarios": [
            {"name": "HIGH", "summary": "24 issuers: work spread across the machine"},
            {"name": "LOW", "summary": "4 issuers: not enough work to saturate"},
        ],
        "axes": [
            {"name": "scope", "values": ["system", "cache", "cache_shard"]},
            {"name": "strict", "values": ["0", "1"]},
        ],
        "reference_setting": "scope=system,strict=0",
        "hardware": {"settings": ["scope=system,strict=0"]},
        "emulated": {"settings": ["scope=system,strict=0"], "blocks": 6, "repetitions": {"warmup": 0, "untraced": 1}},
        "metrics": [
            metric("l3_share", "%", "difference", "higher_is_better", "mechanism", "primary"),
            metric("core_share", "%", "difference", "none", "mechanism"),
            metric("node_share", "%", "difference", "none", "mechanism"),
            metric("migrations", "1/s", "ratio", "none", "mechanism"),
            metric("bandwidth", "MiB/s", "ratio", "higher_is_better", "performance"),
            metric("clat_p99", "ms", "ratio", "lower_is_better", "performance"),
            metric("cpu_util", "%", "difference", "none", "performance"),
        ],
        "references": [
            {
                "scenario": scenario,
                "setting": setting,
                "metric": "bandwidth",
                "mean": mean,
                "stddev": deviation,
                "n": 5,
                "kernel": "v6.4-rc2 + series",
                "machine": "Ryzen 9 3900X, 980 PRO",
                "source": "wq/for-6.5 affinity scopes, cover letter, 2023-05-18",
            }
            for scenario, setting, mean, deviation in (
                ("HIGH", "scope=system,strict=0", 1159.40, 1.34),
                ("HIGH", "scope=cache,strict=0", 1166.40, 0.89),
                ("LOW", "scope=system,strict=0", 993.60, 1.82),
                ("LOW", "scope=cache,strict=0", 973.40, 1.52),
            )
        ],
    }
)
FIO = (
    "fio --name=fsync --directory=/mnt/0:/mnt/1:/mnt/2:/mnt/3 --ioengine=libaio --iodepth=64 --norandommap=1 "
    "--rw=write --size=16M --bs=4k --fsync=1 --numjobs=16 --group_reporting --output-format=json --output=/tmp/fio.json"
)
REPRODUCER = (
    'maps="-fdebug-prefix-map=$PWD/linux=/src" && maps="$maps -fdebug-prefix-map=$PWD/build=/build" && '
    'KCFLAGS="$maps" KAFLAGS="$maps" tuxmake --runtime=null --directory=linux --target-arch=x86_64 --toolchain=gcc '
    "--compression-type=none --build-dir=build --output-dir=out --kconfig=config "
    "--environment=KBUILD_BUILD_TIMESTAMP='2026-01-01 00:00:00 UTC' --environment=KBUILD_BUILD_USER=wqlab "
    "--environment=KBUILD_BUILD_HOST=wqlab --environment=KBUILD_BUILD_VERSION=1 config kernel modules"
)
SSH_KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIEVHzhEmkX5nxRI+Yw3wgnebFKqRasiYMrPm2Qz2riLV"
CMDLINE = (
    f"console=ttyS0,115200 panic=0 wqlab.token={{token}} wqlab.ssh={SSH_KEY} "
    "tsc=reliable no_timer_check nokaslr mitigations=off"
)
FACTS = {
    "HZ": "250",
    "clock source": "tsc",
    "cpu model": "Intel Xeon Processor (Skylake)",
    "default affinity scope": "cache",
    "emulator": "QEMU 7.2.22, tcg, one host thread",
    "disk": "null_blk memory_backed, 4 x 513 MiB, 8 queues",
    "fio": "fio-3.33",
    "governor": "none",
    "kernel": "Linux version 6.12.117 (wqlab@wqlab) (x86_64-linux-gnu-gcc (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld "
    "(GNU Binutils for Debian) 2.40) #1 SMP 2026-01-01 00:00:00 UTC",
    "lock_entries": "_raw_read_lock _raw_read_lock_bh _raw_spin_lock _raw_spin_lock_irq _raw_spin_trylock",
    "locks_by_entry": "_raw_spin_lock_irq:19722 _raw_spin_trylock:5 _raw_spin_lock_irqsave:546 _raw_spin_lock:836",
    "mitigations": "off (command line)",
    "preemption": "voluntary",
    "scale": "16 jobs on 4 mounts, 320 KiB each (scaled to this device's memory; the plan asks for 64, 4, 16384 KiB)",
    "smt": "on",
}
"""Facts as a device reports them, including some that only a plan's author needs."""
OOPS = """\
[   14.201337] BUG: kernel NULL pointer dereference, address: 0000000000000008
[   14.201339] #PF: supervisor write access in kernel mode
[   14.201341] Oops: Oops: 0002 [#1] PREEMPT SMP
[   14.201344] CPU: 7 UID: 0 PID: 412 Comm: fio Not tainted 6.12.117-candidate #1
[   14.201346] RIP: 0010:flush_workqueue_prep_pwqs+0x8e/0x1c0 (kernel/workqueue.c:3871)  pwq->flush_color = flush_color;
[   14.201361] Call Trace:
[   14.201363]  <TASK>
[   14.201365]  __flush_workqueue+0x13f/0x3f0 (kernel/workqueue.c:4021)  flush_workqueue_prep_pwqs(wq, -1, color);
[   14.201367]  xlog_cil_push_now.isra.0+0x6a/0xa0 (fs/xfs/xfs_log_cil.c:1581)  flush_workqueue(cil->xc_push_wq);
[   14.201369]  xlog_cil_force_seq+0x7c/0x250 (fs/xfs/xfs_log_cil.c:1852)  xlog_cil_push_now(log, sequence, false);
[   14.201371]  xfs_log_force_seq+0x75/0x160 (fs/xfs/xfs_log.c:3412)  lsn = xlog_cil_force_seq(log->l_cilp, seq);
[   14.201373]  xfs_file_fsync+0x10b/0x2b0 (fs/xfs/xfs_file.c:200)  err2 = xfs_fsync_flush_log(ip, datasync,
[   14.201375]  </TASK>
[   14.201376] ---[ end trace 0000000000000000 ]---"""
NULL_POINTER = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
STACK = [
    StackFrame(
        function="flush_workqueue_prep_pwqs",
        offset=0x8E,
        file="kernel/workqueue.c",
        line=3871,
        source="pwq->flush_color = flush_color;",
    ),
    StackFrame(
        function="__flush_workqueue",
        offset=0x13F,
        file="kernel/workqueue.c",
        line=4021,
        source="flush_workqueue_prep_pwqs(wq, -1, color);",
    ),
]


def xeon() -> MeasuredTopology:
    return MeasuredTopology(
        cpus=32,
        core=[cpu // 2 for cpu in range(32)],
        l3=[cpu // 16 for cpu in range(32)],
        node=[cpu // 16 for cpu in range(32)],
        package=[cpu // 16 for cpu in range(32)],
    )


def ryzen() -> MeasuredTopology:
    return MeasuredTopology(
        cpus=24,
        core=[cpu // 2 for cpu in range(24)],
        l3=[cpu // 6 for cpu in range(24)],
        node=[0] * 24,
        package=[0] * 24,
    )


def samples(
    plan: TestPlan,
    device_type: str,
    cells: Mapping[tuple[str, str, str, Arm], Sequence[float]],
    *,
    emulated: bool = True,
) -> Samples:
    """Return samples of a device, one value per boot: (scenario, setting, metric, arm) -> values by block."""
    parts = []
    for (scenario, setting, name, arm), values in cells.items():
        one = plan.metric(name)
        parts.append(
            Samples.from_columns(
                device_type=device_type,
                device=f"{device_type}-1",
                plan=plan.name,
                scenario=scenario,
                setting=setting,
                block=list(range(len(values))),
                position=0,
                arm=arm,
                boot=[f"{arm}-{block}" for block in range(len(values))],
                repetition=0,
                warmup=False,
                metric=name,
                unit=one.unit,
                scale=one.scale,
                direction=one.direction,
                role=one.role(emulated),
                evidence=one.evidence(emulated),
                delta=one.delta,
                value=list(values),
            )
        )
    return Samples.concatenate(parts)


def target(
    run_id: int,
    plan: TestPlan,
    device_type: str,
    measured: Samples | None,
    settings: Sequence[str],
    arms: Sequence[Arm],
    topology: MeasuredTopology | None,
    declared: Topology,
    blocks: tuple[int, int],
    commands: Mapping[str, str],
    **more: Any,
) -> TargetReport:
    emulated = more.get("emulated", True)
    findings = more.get("findings", [])
    failure = more.get("failure")
    unsupported = more.get("unsupported", [])
    facts = TargetFacts(
        plan=plan,
        device_type=device_type,
        emulated=emulated,
        arms=arms,
        settings=settings,
        unsupported=unsupported,
        failure=failure,
        discarded=more.get("discarded", {}),
        blocks_discarded=sum(more.get("discarded", {}).values()),
        not_validated=more.get("not_validated", {}),
    )
    comparisons = compare(measured, [facts])
    attempted = blocks[0] + facts.blocks_discarded
    boots = {arm: BootCount(attempted, attempted - facts.discarded.get(arm, 0)) for arm in arms}
    found = conclude(comparisons, findings, failure, emulated, boots, machine=more.get("machine", ""))
    environment = Environment(
        device=f"{device_type}-1",
        topology=topology,
        cmdline={arm: CMDLINE.format(token=f"{arm}-token") for arm in arms},
        release=dict.fromkeys(arms, "6.12.117"),
        build_id_gnu={arm: ("a1" if arm is Arm.BASELINE else "b2") * 20 for arm in arms},
        facts=FACTS | more.get("facts", {}),
        commands=dict(commands),
    )
    return TargetReport(
        run_id=run_id,
        plan=plan,
        device_type=device_type,
        device_summary=more.get("summary", ""),
        emulated=emulated,
        declared_topology=declared,
        outcome=more.get("outcome", Outcome.PASSED),
        failure=failure,
        verdict=found.verdict,
        headline=found.headline,
        comparisons=comparisons,
        environment=None if topology is None else environment,
        values=[] if measured is None else boot_values(measured),
        references=plan.references,
        unsupported=unsupported,
        findings=findings,
        blocks_planned=blocks[1],
        blocks_completed=blocks[0],
        discarded=more.get("discarded", {}),
        overhead_s=1.6,
    )


def build(arm: Arm, number: int, **more: Any) -> BuildView:
    values: dict[str, Any] = {
        "id": number,
        "key": f"{number:064x}",
        "arm": arm,
        "tree": "linux-6.12",
        "origin": "linux-source-6.12",
        "base_commit": "c0ffee" + "1" * 34,
        "tree_oid": ("a" if arm is Arm.BASELINE else "b") * 40,
        "recipe": "measure",
        "arch": "x86_64",
        "state": JobState.FINISHED,
        "outcome": Outcome.PASSED,
        "failure": None,
        "reused": arm is Arm.BASELINE,
        "build_id_gnu": ("a1" if arm is Arm.BASELINE else "b2") * 20,
        "release": "6.12.117",
        "compiler": "gcc (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld 2.40",
        "reproducer": REPRODUCER,
        "duration_s": 561.0,
    }
    return BuildView(**{**values, **more})


def report(
    number: int, title: str, targets: list[TargetReport], series: bool, builds: list[BuildView], **more: Any
) -> Report:
    apply = more.get("apply") or ApplyView(
        state=JobState.FINISHED,
        outcome=Outcome.PASSED,
        base_commit="c0ffee" + "1" * 34,
        release="6.12.117",
        patches=more.get("patches", []),
        checkpatch=more.get("checkpatch", []),
    )
    failure = more.get("failure")
    return Report(
        submission=SubmissionView(
            id=number,
            title=title,
            series_key=title.casefold(),
            tree="linux-6.12",
            owner="demo",
            priority=50,
            state=SubmissionState.FINISHED,
            outcome=Outcome.FAILED if failure else Outcome.PASSED,
            failure=failure,
            verdicts=dict(Counter(c.verdict for t in targets for c in t.comparisons if isinstance(c.verdict, Verdict))),
            created_at=NOW,
            finished_at=NOW,
            request=SubmittedRequest(
                series=SubmittedSeries(git=GitSeries(url="https://git.example.org/linux.git", ref="flush"))
                if series
                else None,
                tree="linux-6.12",
                targets=[Target(plan=one.plan.name, device_type=one.device_type) for one in targets]
                or [Target(plan="xfs-fsync", device_type="xeon-2s")],
            ),
            apply=apply,
            builds=builds,
            runs=[],
            eta=Eta(finish_at=NOW, what="finished", done_boots=0, total_boots=0),
            exit_code=0,
        ),
        generated_at=NOW,
        lab_url="http://127.0.0.1:8080",
        targets=targets,
        attempts=more.get("attempts", []),
        config_diff=more.get("config_diff", []),
        config_sha256=CONFIG if builds else "",
        method=METHOD,
    )


PATCH = PatchSummary(
    subject="workqueue: Take a pool's lock once per run of pwqs that share it",
    author="Ada Example <ada@example.org>",
    message_id="<20260314150900.1-1-ada@example.org>",
    insertions=19,
    deletions=4,
    files=["kernel/workqueue.c"],
)
XEON = Topology(sockets=2, l3_per_socket=1, cores_per_l3=8, threads_per_core=2, numa_nodes=2)
RYZEN = Topology(sockets=1, l3_per_socket=4, cores_per_l3=3, threads_per_core=2)
