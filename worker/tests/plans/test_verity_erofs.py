"""Script of plan verity-erofs: its hash tree, settings, checks and readings of traces. dmsetup is a shell function."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from wqlab_contracts.enums import ErrorKind
from wqlab_worker.measure.collect import Records

from .scripts import AWKS, call, plan, trace

NAME = "verity-erofs"
BLOCK = 4096
XXD = 'xxd() { busybox xxd "$@"; }\n'
TRACE = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
             fio-197     [001] .....   247.376000: workqueue_queue_work: work struct=00000000c15eeeee function=verity_prefetch_io [dm_verity] workqueue=kverityd req_cpu=8192 cpu=1
     kworker/1:1H-19     [001] .....   247.376010: workqueue_execute_start: work struct 00000000c15eeeee: function verity_prefetch_io [dm_verity]
             fio-197     [001] d.h..   247.376070: workqueue_queue_work: work struct=00000000c1559fee function=verity_bh_work [dm_verity] workqueue=events_bh req_cpu=8192 cpu=1
             fio-197     [001] ..s..   247.376090: workqueue_execute_start: work struct 00000000c1559fee: function verity_bh_work [dm_verity]
             fio-197     [001] ..s..   247.376100: workqueue_queue_work: work struct=00000000c155aaaa function=verity_work [dm_verity] workqueue=kverityd req_cpu=8192 cpu=1
             fio-197     [001] ..s..   247.376110: workqueue_queue_work: work struct=00000000c155cccc function=other_bh_work [other] workqueue=events_bh req_cpu=8192 cpu=1
             fio-197     [001] ..s..   247.376120: workqueue_execute_start: work struct 00000000c155cccc: function other_bh_work [other]
     kworker/1:1H-19     [001] .....   247.376130: workqueue_execute_start: work struct 00000000c155aaaa: function verity_work [dm_verity]
     kworker/1:1H-19     [001] .....   247.376150: workqueue_queue_work: work struct=00000000c155bbbb function=z_erofs_decompressqueue_work [erofs] workqueue=erofs_worker req_cpu=8192 cpu=1
  kworker/u8:[000]-20    [000] .....   247.377383: workqueue_execute_start: work struct 00000000c155bbbb: function z_erofs_decompressqueue_work [erofs]
     kworker/0:1-21      [000] .....   247.377399: workqueue_execute_start: work struct 00000000c1550000: function vmstat_update
"""  # noqa: E501 - as the kernel prints them


def test_reference_leaves_both_settings_to_the_kernel() -> None:
    assert plan(NAME).reference_setting == "sync_decompress=default,verify=default"
    assert [axis.values for axis in plan(NAME).axes] == [["default", "tasklet"], ["default", "on", "off"]]
    assert plan(NAME).modules == ["dm_verity", "erofs"]


# --- the hash tree ---


def verified(block: int, data: bytes, tree: bytes, root: str) -> bool:
    """Whether a block has its hash, looked up as dm-verity does: the level of one block is the first in the tree."""
    levels, below = [], len(data) // BLOCK
    while not levels or levels[-1] > 1:
        below = -(-below // 128)
        levels.append(below)
    start = {level: sum(levels[level + 1 :]) for level in range(len(levels))}
    content, position = data[block * BLOCK : (block + 1) * BLOCK], block
    for level in range(len(levels)):
        at = (start[level] + (position >> 7)) * BLOCK
        hashes = tree[at : at + BLOCK]
        if hashes[position % 128 * 32 :][:32] != hashlib.sha256(content).digest():
            return False
        content, position = hashes, position >> 7
    return hashlib.sha256(content).hexdigest() == root and len(tree) == sum(levels) * BLOCK


@pytest.mark.parametrize("blocks", [1, 128, 129, 1025])
def test_each_block_has_its_hash_in_the_tree(tmp_path: Path, blocks: int) -> None:
    """Up to 128 blocks, the tree has one level, and above that two. The script hashes 1024 blocks at a time."""
    data = random.Random(blocks).randbytes(blocks * BLOCK)
    (tmp_path / "image").write_bytes(data)
    call(NAME, f"{XXD}hash_tree {tmp_path}/image", tmp_path)
    tree, root = (tmp_path / "work/tree").read_bytes(), (tmp_path / "work/root").read_text().strip()
    assert all(verified(block, data, tree, root) for block in range(blocks))
    assert not verified(0, b"\0" + data[1:], tree, root)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["root", "tree"]


def test_tree_of_three_levels_begins_with_its_root(tmp_path: Path) -> None:
    """With the hashes of blocks taken from a list, because 16385 blocks are many to write."""
    (tmp_path / "image").write_bytes(bytes(BLOCK))
    stand_in = 'hash_blocks() { case $1 in *image) head -c $((16385 * 32)) /dev/zero ;; *) real "$1" ;; esac; }\n'
    real = "real() { count=$(($(stat -c %s $1) / 4096)); head -c $((count * 32)) /dev/zero; }\n"
    call(NAME, f"{real}{stand_in}hash_tree {tmp_path}/image", tmp_path)
    # 129 blocks with the hashes of the data, 2 with those of these blocks, 1 with those of the two.
    assert (tmp_path / "work/tree").stat().st_size == (129 + 2 + 1) * BLOCK


@pytest.mark.parametrize(
    ("available", "expected"),
    [(4096, "512"), (800, "200 (scaled to this device's memory; the plan asks for 512 MiB)")],
)
def test_file_is_scaled_to_memory(tmp_path: Path, available: int, expected: str) -> None:
    command = f'memory_available_mib() {{ echo {available}; }}\nsize_data\nrecord fact size "$data_mib$scaled"'
    assert call(NAME, command, tmp_path, DATA_MIB="512").facts["size"] == expected


def test_device_without_memory_for_its_readers_is_unsupported(tmp_path: Path) -> None:
    command = "memory_available_mib() { echo 7; }\nnproc() { echo 32; }\n(size_data) || :"
    found = call(NAME, command, tmp_path, DATA_MIB="512")
    assert found.unsupported == [("*", "not enough memory: a file of 1 MiB has no page for each of 128 readers")]


# --- readers ---


@pytest.mark.parametrize(
    ("target", "readers", "reads", "expected"),
    [
        # 16 MiB are 1024 pages at a distance of 16 KiB; the image has 2077 blocks.
        ("erofs", "one", 512, "1 512 16384"),
        ("erofs", "cpus", 512, "4 128 4096"),
        ("erofs", "fourfold", 4096, "16 64 1024"),
        ("verity", "one", 512, "1 512 8308"),
        ("verity", "fourfold", 512, "16 32 516"),
        ("verity", "fourfold", 8, "16 1 516"),
    ],
)
def test_readers_share_the_reads(tmp_path: Path, target: str, readers: str, reads: int, expected: str) -> None:
    command = (
        f"nproc() {{ echo 4; }}\necho 2077 >$WORK/blocks\necho 16 >$WORK/data_mib\nregions {reads}\n"
        'record fact readers "$jobs $each $region_k"'
    )
    found = call(NAME, command, tmp_path, TARGET=target, READERS=readers, READS_EACH="1")
    assert found.facts["readers"] == expected


@pytest.mark.parametrize(("blocks", "expected"), [(65536, "256"), (640, "40")])
def test_many_readers_read_enough_for_a_percentile(tmp_path: Path, blocks: int, expected: str) -> None:
    command = f'nproc() {{ echo 4; }}\necho {blocks} >$WORK/blocks\nregions 512\nrecord fact each "$each"'
    found = call(NAME, command, tmp_path, TARGET="verity", READERS="fourfold", READS_EACH="256")
    assert found.facts["each"] == expected


def test_more_readers_than_pages_are_unsupported(tmp_path: Path) -> None:
    command = "nproc() { echo 4; }\necho 15 >$WORK/blocks\nregions 512 || record fact status $?"
    found = call(NAME, command, tmp_path, TARGET="verity", READERS="fourfold", READS_EACH="1")
    assert found.unsupported == [("*", "15 pages are too few for 16 readers")]
    assert found.facts == {"status": "1"}


# --- the device ---

DMSETUP = """\
dmsetup() {
	case $1 in
	create)
		case $5 in *tasklet*) [ "${REFUSES:-}" != tasklet ] || return 1 ;; esac
		echo "$5" >"$WORK/table" && : >"$DEVICE"
		;;
	remove) rm "$WORK/table" ;;
	table) cat "$WORK/table" ;;
	status) echo "0 16 verity $(cat "$WORK/health" 2>/dev/null || echo V)" ;;
	info) echo 3 ;;
	esac
}
mount() { :; }
dmesg() { echo 'device-mapper: table: 253:3: verity: Unrecognized verity feature request'; }
has_node() { [ -e "$DEVICE" ]; }
"""


def verity(folder: Path, command: str, sync: str | None = None, mounts: str = "", **environment: str) -> Records:
    """Run a command of the script with a device that a stand-in of dmsetup makes, and this sync_decompress in sysfs."""
    (folder / "proc").mkdir()
    (folder / "proc/mounts").write_text(mounts)
    if sync is not None:
        (folder / "sys/fs/erofs/dm-3").mkdir(parents=True)
        (folder / "sys/fs/erofs/dm-3/sync_decompress").write_text(f"{sync}\n")
    environment = {"TARGET": "erofs", "SCENARIO": "erofs-one", **environment}
    disk = "echo 16 >$WORK/blocks; echo /dev/disk >$WORK/disk; echo 00ff >$WORK/root\n"
    return call(
        NAME,
        f"{DMSETUP}{disk}{command}",
        folder,
        PROC=str(folder / "proc"),
        SYS=str(folder / "sys"),
        DEVICE=str(folder / "device"),
        **environment,
    )


TABLE = "0 128 verity 1 /dev/disk /dev/disk 4096 4096 16 16 sha256 00ff -"


@pytest.mark.parametrize(("setting", "table"), [("default", TABLE), ("tasklet", f"{TABLE} 1 try_verify_in_tasklet")])
@pytest.mark.parametrize(
    ("sync", "written", "later"), [("default", "0", "1"), ("default", "0", "0"), ("on", "1", "1"), ("off", "2", "2")]
)
def test_settings_are_applied_and_read_back(
    tmp_path: Path, setting: str, table: str, sync: str, written: str, later: str
) -> None:
    """The kernel's default turns into 1 by itself."""
    command = (
        'place && record fact written "$(cat "$(knob)")" && record fact table "$(cat "$WORK/table")"\n'
        f'echo {later} >"$(knob)"\nsettings_after'
    )
    found = verity(tmp_path, command, "0", SETTING_VERIFY=setting, SETTING_SYNC_DECOMPRESS=sync)
    wanted = {"verify": setting, "sync_decompress": sync}
    assert (found.settings, found.settings_after) == (wanted, wanted)
    assert (found.facts["table"], found.facts["written"]) == (table, written)


@pytest.mark.parametrize(("sync", "later"), [("default", "2"), ("on", "0"), ("off", "1")])
def test_setting_that_changes_meanwhile_is_reported(tmp_path: Path, sync: str, later: str) -> None:
    command = f'place\necho {later} >"$(knob)"\nsettings_after'
    found = verity(tmp_path, command, "0", SETTING_VERIFY="default", SETTING_SYNC_DECOMPRESS=sync)
    assert (found.settings["sync_decompress"], found.settings_after["sync_decompress"]) == (sync, later)


def test_kernel_without_the_tables_argument_is_unsupported(tmp_path: Path) -> None:
    found = verity(
        tmp_path, "place || :", SETTING_VERIFY="tasklet", SETTING_SYNC_DECOMPRESS="default", REFUSES="tasklet"
    )
    [(metric, reason)] = found.unsupported
    assert metric == "*"
    assert "refuses try_verify_in_tasklet" in reason and "Unrecognized verity feature request" in reason


def test_kernel_without_sync_decompress_runs_with_its_default_only(tmp_path: Path) -> None:
    default, off = tmp_path / "default", tmp_path / "off"
    default.mkdir()
    off.mkdir()
    found = verity(default, "place && settings_after", SETTING_VERIFY="default", SETTING_SYNC_DECOMPRESS="default")
    assert found.settings == found.settings_after == {"verify": "default", "sync_decompress": "default"}
    found = verity(off, "place || :", SETTING_VERIFY="default", SETTING_SYNC_DECOMPRESS="off")
    assert [reason.split(" has ")[1] for _, reason in found.unsupported] == ["no sync_decompress of erofs in sysfs"]


@pytest.mark.parametrize(
    ("reads", "health", "reason"),
    [
        ("[ $1 = 0 ]", "[ $1 = 0 ] || echo C >$WORK/health", None),
        (
            ":",
            "echo C >$WORK/health",
            "dm-verity returns block 8, whose content does not have its hash (verify=tasklet)",
        ),
        ("[ $1 = 0 ]", ":", "dm-verity refuses a changed block and reports no corruption (verify=tasklet): status V"),
        ("false", "echo C >$WORK/health", "dm-verity refuses block 0, which is intact (verify=tasklet)"),
    ],
)
def test_changed_block_has_to_be_refused(tmp_path: Path, reads: str, health: str, reason: str | None) -> None:
    command = f"read_block() {{ {health}; {reads}; }}\nopen_verity tasklet\n(check_refused tasklet 8) || :"
    found = verity(tmp_path, command)
    if reason is None:
        assert found.failure is None
    else:
        assert found.failure and (found.failure.kind, found.failure.summary) == (ErrorKind.KERNEL, reason)


def test_changed_block_is_restored(tmp_path: Path) -> None:
    """A file stands in for the disk. Exactly one byte of its middle block is changed while dm-verity reads it."""
    disk = tmp_path / "disk"
    content = random.Random(1).randbytes(16 * BLOCK)
    disk.write_bytes(content)
    (tmp_path / "intact").write_bytes(content)
    check = f'check_refused() {{ record fact "$1 $2" "$(cmp -l {disk} {tmp_path}/intact | wc -l)"; }}\n'
    found = verity(tmp_path, f'{check}echo {disk} >"$WORK/disk"\ncheck_corruption')
    assert found.facts["default 8"] == found.facts["tasklet 8"] == "1"
    assert found.facts["corruption check"] == "block 8 of 16 changed: refused and reported (verify: default, tasklet)"
    assert disk.read_bytes() == content
    assert not (tmp_path / "device").exists()


@pytest.mark.parametrize(
    ("content", "health", "reason"),
    [
        (b"as written", "V", None),
        (b"as writteN", "V", r"has other content than was written: SHA-256 "),
        (b"as written", "C", "dm-verity reports corruption of an intact disk: status C"),
        (None, "V", "cannot be read to its end after the readers"),
    ],
)
def test_content_is_compared_with_what_was_written(
    tmp_path: Path, content: bytes | None, health: str, reason: str | None
) -> None:
    if content is not None:
        (tmp_path / "data").write_bytes(content)
    wanted = hashlib.sha256(b"as written").hexdigest()
    command = f"echo {wanted} >$WORK/data.sum; echo {health} >$WORK/health\n(check_content) || :"
    found = verity(tmp_path, command, MOUNT=str(tmp_path))
    if reason is None:
        assert found.failure is None and wanted[:16] in found.facts["content of erofs"]
    else:
        assert found.failure and found.failure.kind is ErrorKind.KERNEL and reason in found.failure.summary


@pytest.mark.parametrize("end", ["fail infrastructure broken", "sh -c 'kill -TERM $PPID'", "exit 0"])
def test_device_is_removed_however_a_measurement_ends(tmp_path: Path, end: str) -> None:
    steps = f'close_at_exit; open_verity default; record fact opened "$(dmsetup table)"; {end}'
    found = verity(tmp_path, f"({steps}) || :")
    assert found.facts["opened"] == TABLE
    assert not (tmp_path / "device").exists()


def test_device_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    mounts = "/dev/dm-3 /mnt/wqlab-erofs erofs ro 0 0\n"
    found = verity(tmp_path, "umount() { return 1; }\n(close_device) || :", mounts=mounts)
    assert found.failure and found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert found.failure.summary.startswith("cannot unmount /mnt/wqlab-erofs or remove ")


# --- trace ---


@pytest.mark.parametrize("awk", AWKS)
def test_works_are_told_apart_by_function(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE)
    found = call(NAME, f"AWK='{awk}'\nreduce_trace", tmp_path)
    assert sorted(found.frame("pairs")) == ["1 0 1", "1 1 2"]
    assert sorted(found.frame("histogram queue_to_start_us")) == ["1230 1", "20 1", "30 1"]
    assert found.values == {
        "verify_works": 1,
        "bh_works": 1,
        "decompress_works": 1,
        "prefetch_works": 1,
        "works_queued": 4,
        "works_started": 4,
    }


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("00000000c155aaaa", "(____ptrval____)", "hides the work pointers"),
        ("verity_work [dm_verity]", "0xffffffffc0001230", "does not name the functions"),
    ],
)
def test_trace_without_names_is_unsupported(tmp_path: Path, name: str, instead: str, reason: str) -> None:
    trace(tmp_path, TRACE.replace(name, instead))
    found = call(NAME, "reduce_trace", tmp_path)
    assert [metric for metric, _ in found.unsupported] == ["traced"]
    assert reason in found.unsupported[0][1]
    assert found.values == {}


def test_kernel_without_the_events_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "tracing/events").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "trace_start || record fact status $?", tmp_path, TRACE_KIB="64")
    assert found.unsupported == [("traced", "this kernel's workqueue_queue_work names no workqueue")]
    assert found.facts == {"status": "1"}


@pytest.mark.parametrize(("comm", "status"), [("erofs_worker/0", "0"), ("kworker/u8:1", "1")])
def test_kernel_threads_of_erofs_are_found(tmp_path: Path, comm: str, status: str) -> None:
    (tmp_path / "proc/77").mkdir(parents=True)
    (tmp_path / "proc/77/comm").write_text(f"{comm}\n")
    command = "kernel_threads; record fact status $?"
    assert call(NAME, command, tmp_path, PROC=str(tmp_path / "proc")).facts == {"status": status}
