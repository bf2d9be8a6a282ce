#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Write files with zstd compression on btrfs, alone or while all data is scrubbed and balanced. Compression, checksums and
# the ends of writes run on unbound workqueues; a traced repetition counts on which CPUs, and by how many workers.
# usage: btrfs.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

DISK=wqlab-btrfs
MOUNT=${MOUNT:-/mnt/wqlab-btrfs}
PARAMETERS=${PARAMETERS:-/sys/module/workqueue/parameters}
KNOB=default_affinity_scope
LEAST_DISK_MIB=512
# Of a scrub. Those of memory are not of the data; on one disk without copies nothing can be corrected.
ERRORS='(read|csum|verify|super|uncorrectable|unverified|corrected)_errors: [1-9]'

scale() { # FILE_MIB: set file_mib and old_mib to what the memory holds, and report if it is less
	file_mib=$1 old_mib=$OLD_MIB
	# Half of the memory for the disk. Files take half of their size there, balancing writes them once more.
	budget=$(($(cat "$WORK/memory_mib") / 2))
	while [ $((JOBS * file_mib + old_mib)) -gt "$budget" ] && [ "$file_mib" -gt 1 ]; do
		file_mib=$((file_mib / 2)) old_mib=$((old_mib / 2))
	done
	[ "$old_mib" -ge 1 ] || old_mib=1
	[ $((JOBS * file_mib + old_mib)) -le "$budget" ] || fail infrastructure "not enough memory for $JOBS files of 1 MiB: $budget MiB"
	record fact scale "$JOBS jobs, $file_mib MiB each, $old_mib MiB in an older file$(
		[ "$file_mib" = "$1" ] || echo " (scaled to this device's memory; the plan asks for $1 and $OLD_MIB)")"
}

available() { # false, with a record, if this kernel has no btrfs that compresses with zstd
	load_module btrfs || return 1
	[ ! -e "${SYS:-/sys}/fs/btrfs/features/compress_zstd" ] || return 0
	record unsupported '*' "btrfs of kernel $(uname -r) has no zstd compression (Linux 4.14)"
	return 1
}

setup() {
	need fio mkfs.btrfs btrfs insmod
	check_jobs # here already, so that the plan is unsupported without these CPUs
	memory_available_mib >"$WORK/memory_mib"
	[ ! -r "$PARAMETERS/$KNOB" ] || cat "$PARAMETERS/$KNOB" >"$INITIAL.$KNOB"
	# Each measurement reports what is missing.
	available || return 0
	scale "$FILE_MIB"
	fresh_disk
	mkdir -p "$MOUNT" /var/lib/btrfs # where scrub keeps its state
}

# Each repetition has a new one. On a used one, blocks would be allocated or not depending on where balance has put the
# data of earlier repetitions, and all of its size would be in memory in the end.
fresh_disk() {
	unmount
	drop_memory_disk "$DISK"
	disk_mib=$((JOBS * file_mib * 2 + old_mib * 2 + LEAST_DISK_MIB))
	node=$(disk_node 0) || exit 1
	disk=$(memory_disk "$DISK" "$disk_mib" "$(nproc)" 0 "$node") || exit 1
	record fact disk "null_blk memory_backed, $disk_mib MiB, $(nproc) queues, new for each repetition${node:+, home node $node}"
}

unmount() {
	grep -q " $MOUNT " /proc/mounts || return 0
	umount "$MOUNT" || fail infrastructure "cannot unmount $MOUNT"
}

files() { # NAME SIZE_MIB JOBS: print fio's arguments for files of this name, each block with its checksum
	echo --name="$1" --directory="$MOUNT" --numjobs="$3" --size="$2m" --bs=128k --ioengine=psync --verify=crc32c --group_reporting
}

# Content that halves when it is compressed.
WRITING='--rw=write --fallocate=none --buffer_compress_percentage=50 --refill_buffers=1 --end_fsync=1 --do_verify=0'

fresh_file_system() { # with an older file, to scrub and balance
	fresh_disk
	mkfs.btrfs -q -f -K -d single -m single "$disk" && mount -t btrfs -o compress-force=zstd:1 "$disk" "$MOUNT" ||
		fail infrastructure "cannot make and mount btrfs on $disk"
	# shellcheck disable=SC2046,SC2086  # several arguments
	fio $(files old "$old_mib" 1) $WRITING --output="$WORK/old" || fail infrastructure "fio cannot write the older file: $(tail -n 1 "$WORK/old")"
}

data_kib() { # print the data that the file system holds on its disk
	sync
	btrfs filesystem df --kbytes "$MOUNT" | $AWK '/^Data/ { sub(/.*used=/, ""); kib += $0 } END { printf "%d", kib }'
}

# --- scrub and balance ---

scrub() { # FILE: scrub all data once; its report goes to the file
	btrfs scrub start -B -R "$MOUNT" >"$1" 2>&1
}

balance() { # FILE: write all data and metadata to other places
	btrfs balance start --full-balance "$MOUNT" >"$1" 2>&1
}

until_written() { # scrub|balance: repeat it until the jobs have written; NAME.runs has a line for each run, NAME.log the last report
	: >"$WORK/$1.runs"
	while :; do
		status=0
		"$1" "$WORK/$1.log" || status=$?
		# The number of chunks is in the last line of a balance.
		echo "$status $(sed -n 's/.*had to relocate \([0-9]*\) out of.*/\1/p' "$WORK/$1.log")" >>"$WORK/$1.runs"
		# A scrub that found errors stays the last one.
		if [ "$status" -ne 0 ] || grep -qE "$ERRORS" "$WORK/$1.log" || [ -e "$WORK/written" ]; then return 0; fi
	done
}

maintain() { # start scrub and balance
	rm -f "$WORK/written"
	until_written scrub &
	scrubbing=$!
	until_written balance &
	balancing=$!
	# Both end, and the file system can be unmounted, if this script fails meanwhile.
	trap ': >"$WORK/written"; wait' EXIT
}

maintained() { # wait until the last scrub and balance have ended, and fail if one of them has failed
	wait "$scrubbing" "$balancing"
	trap - EXIT
	record value scrubs "$(grep -c '^0' "$WORK/scrub.runs")"
	record value balances "$(grep -c '^0' "$WORK/balance.runs")"
	record value relocated_chunks "$($AWK '{ n += $2 } END { printf "%d", n }' "$WORK/balance.runs")"
	check_scrub "$WORK/scrub.log" "$(tail -n 1 "$WORK/scrub.runs")"
	status=$(tail -n 1 "$WORK/balance.runs")
	[ "${status%% *}" = 0 ] || fail infrastructure "btrfs balance failed with status ${status%% *}: $(tail -n 1 "$WORK/balance.log")"
}

check_scrub() { # FILE STATUS: fail if a scrub found errors, or did not end
	if grep -qE "$ERRORS" "$1"; then
		fail kernel "scrub found errors: $(grep -E "$ERRORS" "$1" | tr -s '\t\n' '  ' | sed 's/^ *//; s/ *$//')"
	fi
	[ "${2%% *}" = 0 ] || fail infrastructure "btrfs scrub failed with status ${2%% *}: $(tail -n 1 "$1")"
}

check_data() { # outside of what is measured: scrub once more, now that all is written, and read all files back
	status=0
	scrub "$WORK/check.log" || status=$?
	check_scrub "$WORK/check.log" "$status"
	record value checked_kib "$($AWK '$1 == "data_bytes_scrubbed:" { printf "%d", $2 / 1024 }' "$WORK/check.log")"
	settle # so that they are read from the disk, and decompressed
	read_back old "$old_mib" 1
	read_back new "$file_mib" "$JOBS"
}

read_back() { # NAME SIZE_MIB JOBS: fail unless each block of the files has the checksum that fio gave it before it was compressed
	# shellcheck disable=SC2046  # several arguments
	fio $(files "$@") --rw=read --output="$WORK/read" && return 0
	# fio's error 84: a checksum is another one.
	! grep -q 'err=84' "$WORK/read" ||
		fail kernel "what was read back is not what was written: $(grep 'verify' "$WORK/read" | head -n 1)"
	fail infrastructure "fio cannot read the files back: $(grep 'err=' "$WORK/read" | head -n 1)"
}

# --- one repetition ---

workload() {
	bind=$(job_cpus) || exit 1
	[ "${TRACE:-0}" = 0 ] || trace_write tracing_on 1
	start=$(cpu_times)
	[ "$MAINTAIN" = 0 ] || maintain
	# shellcheck disable=SC2046,SC2086  # several arguments
	run_fio $(files new "$file_mib" "$JOBS") $WRITING $bind
	: >"$WORK/written"
	[ "${TRACE:-0}" = 0 ] || trace_write tracing_on 0
	cpu_records "$start" "$(cpu_times)"
	[ "$MAINTAIN" = 0 ] || maintained
	after_kib=$(data_kib)
	record value stored_kib $((after_kib > before_kib ? after_kib - before_kib : 0))
	check_data
}

trace_start() { # the trace begins with the workload
	trace_works traced 'workqueue ~ "btrfs-*"' || return 1
	if trace_idle; then IDLE=1; fi
}

# Compression runs on btrfs-delalloc. The task that starts a work is its worker. btrfs' workqueues are unbound and not in
# sysfs, so their CPUs are those of all such workqueues, and no scope of theirs is strict.
reduce_trace() {
	mask='' online=''
	if [ "${IDLE:-0}" = 1 ]; then
		mask=$(cat "${SYS:-/sys}/devices/virtual/workqueue/cpumask") online=$(cat "${SYS:-/sys}/devices/system/cpu/online")
	fi
	$AWK -v idle="${IDLE:-0}" -v mask="$mask" -v online="$online" "$TRACE_FUNCTIONS $IDLE_FUNCTIONS"'
	BEGIN { idle_setup() }
	/^#/ { next }
	/ sched_switch: / { idle_switch(); next }
	/ workqueue_activate_work: / { idle_activate(item()); next }
	/ workqueue_queue_work: / {
		w = item(); queue(w); queued++; of[w] = field("workqueue"); next
	}
	/ workqueue_execute_start: / {
		w = item(); if (!(w in from)) next
		c = cpu(); pair = from[w] " " c; pairs[pair]++; works++; by[of[w]]++; workers[pid() " " c]++
		if (of[w] == "btrfs-delalloc") compressing[pair]++
		wait[waited_us(w)]++
		idle_start(w); end_wait(w)
	}
	END {
		if (unreadable(0)) exit
		if (idle) idle_records()
		print_counts("pairs", pairs); print_counts("compressing", compressing); print_counts("workers", workers)
		print_counts("histogram queue_to_start_us", wait)
		printf "value\tworks\t%d\n", works
		printf "value\tworks_queued\t%d\n", queued
		print_counts("works by workqueue", by)
	}' "$TRACING/trace" >&3
}

scope() { # apply the setting; false, with a record, if the kernel does not
	if [ ! -w "$PARAMETERS/$KNOB" ]; then
		[ "$SETTING_SCOPE" = default ] && record setting scope default && return 0
		record unsupported '*' "kernel $(uname -r) has no workqueue.$KNOB (Linux 6.5)"
		return 1
	fi
	apply "$PARAMETERS" scope "$SETTING_SCOPE" "$KNOB"
}

measure() {
	available || return 0
	scope || return 0
	if [ "${TRACE:-0}" = 1 ]; then scale "$TRACED_FILE_MIB"; else scale "$FILE_MIB"; fi
	fresh_file_system
	before_kib=$(data_kib)
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		workload
		trace_end
	else
		workload
	fi
	if [ -w "$PARAMETERS/$KNOB" ]; then
		after "$PARAMETERS" scope "$SETTING_SCOPE" "$KNOB"
	else
		record setting_after scope default
	fi
}

teardown() {
	[ ! -e "$INITIAL.$KNOB" ] || [ ! -w "$PARAMETERS/$KNOB" ] || leave "$PARAMETERS" scope "$KNOB"
	unmount
	drop_memory_disk "$DISK"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
