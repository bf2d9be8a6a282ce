"""Targets that are proposed for what a series changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.api.touches import REASONS_LIMIT, UNCOVERED_LIMIT, TouchedFile, Touches
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.loading import load_data
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.specs.touches import Touch
from wqlab_contracts.touches import FILES_LIMIT, propose, touched_files

ROOT = Path(__file__).parents[2]
ASKS = "Is anything different here?"
FSYNC: dict[str, Any] = {"plan": "xfs-fsync", "devices": ["multi_node"], "asks": ASKS}
CRYPT: dict[str, Any] = {"plan": "dm-crypt-affinity", "devices": ["multi_l3"], "asks": ASKS}


@pytest.fixture(scope="module")
def lab() -> DataFolder:
    return load_data(ROOT)


def proposals(lab: DataFolder, series: str) -> list[str]:
    found = propose(touched_files(inspect((ROOT / series).read_text())), lab)
    return [f"{each.target.plan}@{each.target.device_type}" for each in found.proposals]


def row(**changes: Any) -> Touch:
    return Touch.model_validate({"name": "r", "paths": ["kernel/workqueue.c"], "plans": [FSYNC]} | changes)


class Lab:
    """A lab with another table."""

    def __init__(self, lab: DataFolder, *touches: Touch) -> None:
        self.touches, self.plans, self.device_types = touches, lab.plans, lab.device_types


@pytest.mark.parametrize(
    ("series", "targets"),
    [
        (
            "kernels/examples/flush-lock-runs.mbox",
            ["xfs-fsync@xeon-2s", "xfs-fsync@instrumented-4l3", "cmwq-load@ryzen-3900x"],
        ),
        ("kernels/examples/dio-done-unbound.mbox", ["aio-migration@ryzen-3900x"]),
        (
            "kernels/examples/wake-inside-lock.mbox",
            [
                *("work-latency@ryzen-3900x", "dm-crypt-affinity@ryzen-3900x", "queue-rate@ryzen-3900x"),
                "cmwq-load@ryzen-3900x",
            ],
        ),
        (
            "tests/series/default-scope-system.mbox",
            [
                *("dm-crypt-affinity@ryzen-3900x", "fan-out@ryzen-3900x", "rt-app-scopes@ryzen-3900x"),
                *("work-latency-scopes@ryzen-3900x", "queue-rate@ryzen-3900x", "cmwq-load@ryzen-3900x"),
            ],
        ),
        ("tests/series/anywhere.mbox", []),
    ],
)
def test_what_the_repositorys_series_touch(lab: DataFolder, series: str, targets: list[str]) -> None:
    assert proposals(lab, series) == targets


@pytest.mark.parametrize(
    ("paths", "targets"),
    [
        (["lib/test_workqueue.c"], {"test-workqueue@ryzen-3900x"}),
        (["kernel/softirq.c"], {"work-latency@ryzen-3900x", "verity-erofs@ryzen-3900x"}),
        (["kernel/time/tick-sched.c"], {"isolation@ryzen-3900x"}),
        (
            ["kernel/sched/sched.h", "kernel/sched/idle.c", "include/linux/sched/topology.h"],
            {"aio-migration@ryzen-3900x", "netperf-stream@ryzen-3900x", "hackbench@ryzen-3900x"},
        ),
        (
            ["kernel/sched/rt.c", "kernel/sched/deadline.c", "kernel/sched/ext.c"],
            {"netperf-stream@ryzen-3900x", "hackbench@ryzen-3900x"},
        ),
        (["fs/iomap/buffered-io.c", "fs/iomap/ioend.c"], {"xfs-fsync@xeon-2s"}),
        (["block/blk-mq.h", "block/blk-mq-sched.c"], {"xfs-fsync@xeon-2s", "aio-migration@ryzen-3900x"}),
        (["fs/btrfs/async-thread.h", "fs/btrfs/compression.h"], {"btrfs@ryzen-3900x"}),
        (["fs/erofs/data.c", "fs/erofs/internal.h", "fs/erofs/super.c"], {"verity-erofs@ryzen-3900x"}),
        (
            ["drivers/nvme/target/nvmet.h", "drivers/nvme/target/fabrics-cmd.c", "drivers/nvme/host/nvme.h"],
            {"nvme-tcp@ryzen-3900x"},
        ),
        (["lib/crypto/chacha.c", "lib/crypto/libchacha.c", "lib/crypto/x86/chacha.h"], {"wireguard@ryzen-3900x"}),
        (["lib/crypto/arm64/chacha.h"], {"wireguard@chromebook-biglittle"}),
        (["arch/arm64/crypto/aes-glue.c"], {"dm-crypt-affinity@chromebook-biglittle"}),
        (["arch/arm64/kernel/smp.c"], {"netperf-stream@chromebook-biglittle"}),
        (
            ["arch/arm64/kernel/topology.c"],
            {"dm-crypt-affinity@chromebook-biglittle", "aio-migration@chromebook-biglittle"},
        ),
    ],
)
def test_what_files_around_the_workloads_touch(lab: DataFolder, paths: list[str], targets: set[str]) -> None:
    for path in paths:
        found = propose([TouchedFile(path=path)], lab).proposals
        assert {f"{each.target.plan}@{each.target.device_type}" for each in found} == targets, path


@pytest.mark.parametrize(
    ("symbol", "plans"),
    [("update_prstate", {"isolation"}), ("isolated_cpus_update", {"isolation"}), ("cpuset_can_attach", set())],
)
def test_a_change_of_cpusets_touches_isolation_by_its_symbols(lab: DataFolder, symbol: str, plans: set[str]) -> None:
    found = propose([TouchedFile(path="kernel/cgroup/cpuset.c", symbols=[symbol])], lab).proposals
    assert {each.target.plan for each in found} == plans


def test_files_of_an_architecture_are_measured_on_it(lab: DataFolder) -> None:
    for row in lab.touches:
        for path in row.paths:
            proposals = propose([TouchedFile(path=path, symbols=row.symbols)], Lab(lab, row)).proposals
            archs = {lab.device_types[each.target.device_type].arch for each in proposals}
            if "arm64/" in path or "x86/" in path:
                assert archs == {"arm64" if "arm64/" in path else "x86_64"}, path


def test_each_plan_is_in_the_table(lab: DataFolder) -> None:
    proposed = {each.plan for row in lab.touches for each in row.plans}
    assert proposed == {name for name, plan in lab.plans.items() if not plan.checks_health}


def touch(lab: DataFolder, file: str, hunk: str, heading: str = "") -> dict[str, list[str]]:
    """Return the plans that are proposed for a hunk, with the symbols that led to each."""
    lines = hunk.splitlines()
    old, new = (sum(line[:1] != mark for line in lines) for mark in "+-")
    diff = f"--- a/{file}\n+++ b/{file}\n@@ -1,{old} +1,{new} @@ {heading}\n{hunk}"
    mail = f"From: a@b\nSubject: [PATCH] x\n\nx\n---\ndiff --git a/{file} b/{file}\n{diff}"
    found = propose(touched_files(inspect(mail)), lab).proposals
    return {each.target.plan: [name for file in each.because for name in file.symbols] for each in found}


def test_change_behind_a_locking_annotation_is_one_of_the_file(lab: DataFolder) -> None:
    """Git's header of a hunk in process_one_work() is `@@ -3241,7 +3241,7 @@ __acquires(&pool->lock)`."""
    hunk = " \tx();\n-\tpwq->stats[PWQ_STAT_COMPLETED]++;\n"
    assert touch(lab, "kernel/workqueue.c", hunk, "__acquires(&pool->lock)") == {"cmwq-load": []}


WORK = "-\told();\n+\tnew();\n"


@pytest.mark.parametrize(
    ("file", "heading", "plans"),
    [
        ("kernel/workqueue.c", "static void wq_housekeeping_changed(struct work_struct *work)", {"isolation"}),
        ("kernel/workqueue.c", "static int set_workqueue_cpumask(const struct cpumask *mask)", {"isolation"}),
        ("kernel/workqueue.c", "static void __queue_delayed_work(int cpu, struct workqueue_struct *wq,", {"isolation"}),
        ("mm/vmstat.c", "static void vmstat_shepherd(struct work_struct *w)", {"isolation"}),
        ("kernel/rcu/tree_nocb.h", "static int rcu_nocb_gp_kthread(void *arg)", {"isolation"}),
        ("kernel/rcu/tree_plugin.h", "static void rcu_bind_gp_kthread(void)", {"isolation"}),
        ("kernel/time/timer_migration.c", "static void tmigr_cpu_activate(struct tmigr_cpu *tmc)", {"isolation"}),
        ("kernel/workqueue.c", "static int try_to_grab_pending(struct work_struct *work,", {"xfs-fsync", "max-active"}),
        ("fs/xfs/xfs_super.c", "xfs_init_mount_workqueues(", {"xfs-inodegc", "aio-migration", "xfs-fsync"}),
        ("fs/xfs/xfs_log_cil.c", "xlog_cil_push_work(struct work_struct *work)", {"xfs-fsync"}),
        ("fs/xfs/libxfs/xfs_alloc.c", "xfs_alloc_vextent_near_bno(struct xfs_alloc_arg *args)", {"xfs-fsync"}),
        ("lib/group_cpus.c", "struct cpumask *group_cpus_evenly(unsigned int numgrps)", {"aio-migration", "nvme-tcp"}),
        ("kernel/sched/fair.c", "place_entity(struct cfs_rq *cfs_rq, struct sched_entity *se, int flags)", {"rt-app"}),
        ("kernel/time/hrtimer.c", "static void hrtimer_interrupt(struct clock_event_device *dev)", {"rt-app"}),
        ("fs/aio.c", "static ssize_t aio_write(struct kiocb *req, const struct iocb *iocb,", {"aio-migration"}),
        ("arch/x86/crypto/aesni-intel_glue.c", "static int xts_encrypt_aesni(struct req *req)", {"dm-crypt-affinity"}),
    ],
)
def test_plan_that_a_change_reaches_is_proposed(lab: DataFolder, file: str, heading: str, plans: set[str]) -> None:
    assert plans <= touch(lab, file, WORK, heading).keys()


COMMENT = " \t/*\n-\t * teh old\n+\t * the old\n \t */\n"


@pytest.mark.parametrize(
    ("file", "heading", "hunk"),
    [
        (
            "kernel/cgroup/cpuset.c",
            "bool cpuset_cpu_is_isolated(int cpu)",
            "  * nearest\n-  * a\n+  * b\n  */\n int f(int x)\n",
        ),
        ("kernel/smp.c", "static void csd_lock_wait(call_single_data_t *csd)", COMMENT),
        ("kernel/cpu.c", "static int takedown_cpu(unsigned int cpu)", COMMENT),
        ("kernel/workqueue.c", "bool flush_work(struct work_struct *work)", COMMENT),
        ("arch/x86/crypto/aes-xts-avx-x86_64.S", "", "-// one\n+// two\n"),
        ("kernel/workqueue.c", "", "+#include <linux/irq.h>\n #include <linux/export.h>\n"),
        ("drivers/md/dm-crypt.c", "module_crypt", ' MODULE_LICENSE("GPL");\n-MODULE_DESCRIPTION("x");\n'),
        ("fs/xfs/xfs_ioctl.c", "xfs_fileattr_get(struct dentry *dentry, struct file_kattr *fa)", WORK),
        ("fs/xfs/xfs_super.c", "xfs_fs_statfs(struct dentry *dentry, struct kstatfs *st)", WORK),
        ("fs/xfs/scrub/agheader.c", "xchk_superblock(struct xfs_scrub *sc)", WORK),
        ("kernel/sched/core.c", "", '-static int f __section(.data.once);\n+static int f __section(".data.once");\n'),
        ("fs/aio.c", "static int aio_ring_mmap(struct file *file, struct vm_area_struct *vma)", WORK),
        ("arch/x86/crypto/aes-gcm-avx10-x86_64.S", "", "-\tmov %rax, %rbx\n"),
        ("arch/x86/crypto/aesni-intel_glue.c", "static int gcm_crypt(struct aead_request *req, int flags)", WORK),
        ("arch/arm64/crypto/ghash-ce-glue.c", "static int gcm_encrypt(struct aead_request *req)", WORK),
    ],
)
def test_nothing_is_proposed_for_what_no_plan_reaches(lab: DataFolder, file: str, heading: str, hunk: str) -> None:
    assert touch(lab, file, hunk, heading) == {}


def test_reasons_name_file_and_symbols(lab: DataFolder) -> None:
    found = propose(touched_files(inspect((ROOT / "kernels/examples/flush-lock-runs.mbox").read_text())), lab)
    first, *_, last = found.proposals
    assert first.because == [TouchedFile(path="kernel/workqueue.c", symbols=["flush_workqueue_prep_pwqs"])]
    assert first.by_symbol and not last.by_symbol
    assert last.because == [TouchedFile(path="kernel/workqueue.c")]
    assert found.uncovered == [] and (found.files, found.looked_at) == (1, 1)


def test_files_without_a_row_are_named(lab: DataFolder) -> None:
    found = propose([TouchedFile(path="mm/slub.c", symbols=["kfree"]), TouchedFile(path="fs/xfs/xfs_log.c")], lab)
    assert found.uncovered == ["mm/slub.c"]
    assert [each.target.plan for each in found.proposals] == ["xfs-fsync"]


def test_rows_of_one_plan_and_device_type_are_one_proposal(lab: DataFolder) -> None:
    rows = (
        row(name="file", symbols=[]),
        row(name="symbol", symbols=["flush_*", "*_work"], plans=[{**FSYNC, "asks": "Do the flushes differ at all?"}]),
        row(name="other", symbols=["nothing"]),
    )
    changed = TouchedFile(path="kernel/workqueue.c", symbols=["flush_workqueue", "insert_work", "worker"])
    (found,) = propose([changed], Lab(lab, *rows)).proposals
    assert found.asks == [ASKS, "Do the flushes differ at all?"] and found.by_symbol
    assert found.because == [TouchedFile(path="kernel/workqueue.c", symbols=["flush_workqueue", "insert_work"])]


@pytest.mark.parametrize(
    ("first", "second", "settings"),
    [
        (["scope=cache,strict=0"], ["scope=cpu,strict=0"], ["scope=cache,strict=0", "scope=cpu,strict=0"]),
        (["scope=cache,strict=0"], None, None),
        (None, ["scope=cache,strict=0"], None),
    ],
)
def test_settings_of_rows_are_put_together(
    lab: DataFolder, first: list[str] | None, second: list[str] | None, settings: list[str] | None
) -> None:
    rows = [row(name=f"r{number}", plans=[{**CRYPT, "settings": each}]) for number, each in enumerate((first, second))]
    (found,) = propose([TouchedFile(path="kernel/workqueue.c")], Lab(lab, *rows)).proposals
    assert found.target.settings == settings


@pytest.mark.parametrize(
    ("devices", "chosen"),
    [
        (["multi_l3"], "ryzen-3900x"),
        (["multi_node"], "xeon-2s"),
        (["smt", "multi_node"], "xeon-2s"),
        (["big_little"], "chromebook-biglittle"),
        (["instrumented", "multi_node"], "instrumented-2s"),
        (["instrumented", "big_little"], "instrumented-biglittle"),
        ([], "tiny"),
    ],
)
def test_device_type_that_suits_best(lab: DataFolder, devices: list[str], chosen: str) -> None:
    one = row(plans=[{**FSYNC, "devices": devices}])
    (found,) = propose([TouchedFile(path="kernel/workqueue.c")], Lab(lab, one)).proposals
    assert found.target.device_type == chosen and chosen not in found.also_on


def test_hardware_is_preferred(lab: DataFolder) -> None:
    hardware = lab.device_types["tiny"].model_copy(
        update={"name": "epyc", "emulation": None, "topology": lab.device_types["xeon-2s"].topology}
    )
    known = Lab(lab, row(plans=[CRYPT]))
    known.device_types = {**lab.device_types, "epyc": hardware}
    (found,) = propose([TouchedFile(path="kernel/workqueue.c")], known).proposals
    assert found.target.device_type == "epyc" and found.also_on == ["ryzen-3900x", "xeon-2s", "zen5c"]


def one_left_out(found: Touches) -> str:
    assert not found.proposals
    (left,) = found.left_out
    assert left.because == [TouchedFile(path="kernel/workqueue.c")]
    return left.why


def test_plan_that_cannot_be_measured_is_left_out_with_the_reason(lab: DataFolder) -> None:
    changed = [TouchedFile(path="kernel/workqueue.c")]
    unknown = Lab(lab, row(plans=[{**FSYNC, "plan": "none-such"}]))
    assert one_left_out(propose(changed, unknown)) == "this lab has no plan none-such"
    without = Lab(lab, row())
    without.device_types = {"tiny": lab.device_types["tiny"]}
    assert one_left_out(propose(changed, without)) == "this lab has no device type with several NUMA nodes"
    why = one_left_out(propose(changed, Lab(lab, row()), usable={"tiny"}))
    assert why == "no device with several NUMA nodes can measure now (device types: xeon-2s)"
    other = propose(changed, Lab(lab, row(plans=[CRYPT])), usable={"xeon-2s"})
    assert other.proposals[0].target.device_type == "xeon-2s", "the second best, which can measure"


def test_size_of_the_answer_is_limited(lab: DataFolder) -> None:
    many = [TouchedFile(path=f"drivers/net/wireguard/f{number}.c") for number in range(FILES_LIMIT + 10)]
    found = propose(many, lab)
    assert (found.files, found.looked_at) == (FILES_LIMIT + 10, FILES_LIMIT)
    assert len(found.proposals[0].because) == REASONS_LIMIT
    other = propose([TouchedFile(path=f"mm/f{number}.c") for number in range(UNCOVERED_LIMIT + 10)], lab)
    assert len(other.uncovered) == UNCOVERED_LIMIT


def test_renamed_file_counts_by_both_names(lab: DataFolder) -> None:
    mail = (
        "From: a@b\nSubject: [PATCH] x\n\ndiff --git a/kernel/workqueue.c b/kernel/wq/core.c\n"
        "rename from kernel/workqueue.c\nrename to kernel/wq/core.c\n"
    )
    assert [each.path for each in touched_files(inspect(mail))] == ["kernel/wq/core.c", "kernel/workqueue.c"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"paths": []}, "at least 1"),
        ({"paths": ["/etc/passwd"]}, "pattern"),
        ({"paths": ["fs/*.c"]}, "pattern"),
        ({"symbols": ["a*b"]}, "pattern"),
        ({"symbols": ["*"]}, "pattern"),
        ({"plans": []}, "at least 1"),
        ({"plans": [{**FSYNC, "devices": ["big"]}]}, "'multi_l3'"),
        ({"plans": [{**FSYNC, "devices": ["smt", "smt"]}]}, "listed twice"),
        ({"plans": [{**FSYNC, "asks": "No question mark at the end."}]}, "pattern"),
        ({"plans": [{**CRYPT, "settings": ["strict=0,scope=cache"]}]}, "is written 'scope=cache,strict=0'"),
    ],
)
def test_mistakes_of_a_row_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        row(**change)
