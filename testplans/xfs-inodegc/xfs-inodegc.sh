#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unlink many files of a fresh XFS file system at once. XFS puts each unlinked inode on a list of the CPU and queues a work
# that frees it there (xfs_inodegc_worker). A traced repetition counts these works and where they ran.
# usage: xfs-inodegc.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

MOUNT=${MOUNT:-/mnt/wqlab-gc}
LOG_MIB=64 # the smallest log mkfs.xfs makes; its blocks are written, so they take memory
BLOCK_KIB=4

file_kib() { # print the size of a file: its extents are single blocks, with a hole of one block after each but the last
	echo $(((EXTENTS * 2 - 1) * BLOCK_KIB))
}

scale() { # FILES: set files, the number of each job, to a SHARE (1/4) of it or to what the memory holds, and report if that is less
	wanted=$(($1 * ${SHARE%/*} / ${SHARE#*/}))
	files=$wanted
	# A file takes its blocks, and about one more for inode, directory entry and space that is freed late.
	room_kib=$(($(cat "$WORK/memory_mib") * 1024 / 2 - LOG_MIB * 1024))
	most=$((room_kib / JOBS / ((EXTENTS + 1) * BLOCK_KIB)))
	[ "$files" -le "$most" ] || files=$most
	[ "$files" -ge 1 ] || fail infrastructure "not enough memory for the files of $JOBS jobs: $room_kib KiB"
	record fact "scale ${SCENARIO:-}" "$JOBS jobs, $files files each, $EXTENTS extents in a file$(
		[ "$files" = "$wanted" ] || echo " (scaled to this device's memory; the plan asks for $wanted)")"
}

setup() {
	need fio mkfs.xfs fsfreeze
	check_jobs # here already, so that the plan is unsupported without these CPUs
	grep -qw xfs /proc/filesystems || lack "this kernel has no XFS (CONFIG_XFS_FS)"
	memory_available_mib >"$WORK/memory_mib"
	disk_mib=$(($(cat "$WORK/memory_mib") / 2 + 512))
	node=$(disk_node 0) || exit 1
	disk=$(memory_disk wqlab-gc "$disk_mib" "$(nproc)" 0 "$node") || exit 1
	echo "$disk" >"$WORK/disk"
	# Not prewritten: all of its size does not fit, and each repetition writes about the same blocks.
	record fact disk "null_blk memory_backed, $disk_mib MiB, $(nproc) queues${node:+, home node $node}"
	mkdir -p "$MOUNT"
}

unmount() {
	! grep -q " $MOUNT " /proc/mounts || umount "$MOUNT" || fail infrastructure "cannot unmount $MOUNT"
}

fresh_files() { # each job's files in a folder of its own, because unlinking locks the folder
	unmount
	disk=$(cat "$WORK/disk")
	mkfs.xfs -q -f -K "$disk" && mount -t xfs "$disk" "$MOUNT" || fail infrastructure "cannot make and mount XFS on $disk"
	folders=
	job=0
	while [ "$job" -lt "$JOBS" ]; do
		mkdir "$MOUNT/$job"
		folders="${folders:+$folders:}$MOUNT/$job"
		job=$((job + 1))
	done
	bind=$(job_cpus) || exit 1
	# fio describes all files of all jobs in 8 pools of shared memory of alloc-size KiB. Those of 16 MiB are too small for 640,000.
	# shellcheck disable=SC2086  # several arguments, or none
	set -- --alloc-size=65536 --name=storm --directory="$folders" --numjobs="$JOBS" --nrfiles="$files" --openfiles=1 --filesize="$(file_kib)k" \
		--file_service_type=sequential --group_reporting --fallocate=none $bind
	record fact "files ${SCENARIO:-}" "fio --ioengine=psync --direct=1 --rw=write:${BLOCK_KIB}k --bs=${BLOCK_KIB}k $(echo "$*" | sed "s,$folders,$MOUNT/0:...,")"
	fio "$@" --ioengine=psync --direct=1 --rw="write:${BLOCK_KIB}k" --bs="${BLOCK_KIB}k" --output="$WORK/created" ||
		fail infrastructure "fio cannot create the files: $(tail -n 1 "$WORK/created")"
	found=$(find "$MOUNT" -type f | wc -l)
	[ "$found" -eq $((JOBS * files)) ] || fail infrastructure "fio created $found of $((JOBS * files)) files"
}

storm() { # unlink them all, and wait until XFS has freed their inodes
	# A block is a file's size, so that fio counts an operation for each file.
	# shellcheck disable=SC2086  # several arguments, or none
	run_fio --output-format=json+ --name=storm --directory="$folders" --numjobs="$JOBS" --nrfiles="$files" --openfiles=1 \
		--filesize="$(file_kib)k" --bs="$(file_kib)k" --ioengine=filedelete --group_reporting --fallocate=none $bind
	# Freezing waits for all works of the workqueue; nothing else does that and leaves the file system mounted.
	fsfreeze --freeze "$MOUNT" && fsfreeze --unfreeze "$MOUNT" || fail infrastructure "cannot freeze $MOUNT"
	record value files $((JOBS * files))
	record value files_left "$(find "$MOUNT" -type f | wc -l)"
}

trace_start() {
	trace_works traced 'workqueue ~ "xfs-inodegc*"' || return 1
	for event in xfs_inode_set_need_inactive xfs_inode_inactivating xfs_inodegc_throttle; do
		trace_write "events/xfs/$event/enable" 1 ||
			{ record unsupported traced "this kernel has no event $event: before Linux 5.14 unlink() frees inodes itself"; return 1; }
	done
	trace_write tracing_on 1
}

# A work belongs to the CPU that it was requested for; of a work for any CPU, to the one that queued it.
reduce_trace() {
	$AWK -v most="$(cat "${SYS:-/sys}/devices/system/cpu/kernel_max")" "$TRACE_FUNCTIONS"'
	function inode() { match($0, / ino 0x[0-9a-f]+/); return substr($0, RSTART + 5, RLENGTH - 5) }
	/^#/ { next }
	/ xfs_inode_set_need_inactive: / { i = inode(); on[i] = cpu(); at[i] = time(); unlinked++; next }
	/ xfs_inode_inactivating: / {
		i = inode()
		if (!(i in on)) next
		inactivated++
		if (on[i] == cpu()) home++
		if (task() in size && ++size[task()] > largest) largest = size[task()]
		wait[waited_us(i)]++
		delete on[i]; next
	}
	/ xfs_inodegc_throttle: / { throttled++; next }
	/ workqueue_queue_work: / {
		# XFS takes a pending work back when it queues it again: the last queueing counts.
		w = item(); queued++; from[w] = field("req_cpu"); if (from[w] == "" || from[w] + 0 > most) from[w] = cpu()
		next
	}
	/ workqueue_execute_start: / {
		w = item(); c = cpu(); delete size[task()]
		if (!(w in from)) next
		works++; pairs[from[w] " " c]++; size[task()] = 0
	}
	END {
		if (unreadable(0)) exit
		print_counts("pairs", pairs); print_counts("histogram freed_after_us", wait)
		printf "value\tunlinked\t%d\nvalue\tinactivated\t%d\nvalue\tinactivated_at_home\t%d\n", unlinked, inactivated, home
		printf "value\tworks\t%d\nvalue\tqueued\t%d\nvalue\tthrottled\t%d\nvalue\tlargest_batch\t%d\n", works, queued, throttled, largest
	}' "$TRACING/trace" >&3
}

measure() {
	if [ "${TRACE:-0}" = 1 ]; then scale "$TRACED_FILES"; else scale "$FILES"; fi
	fresh_files
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		storm
		trace_end
	else
		before=$(cpu_times)
		storm
		cpu_records "$before" "$(cpu_times)"
	fi
}

teardown() {
	unmount
	drop_memory_disk wqlab-gc
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
