#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One fio process keeps a CPU nearly busy with direct 4 KiB AIO on XFS, while each completed write queues work for the
# same CPU. Count how often the scheduler moves that process.
# usage: aio-migration.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

MOUNT=/mnt/wqlab-aio
DEBUGFS=${DEBUGFS:-/sys/kernel/debug}
SYSCTL=${SYSCTL:-/proc/sys/kernel}
BLOCK_KIB=4

# --- knobs of the scheduler ---

knob() { # NAME: print its file: a sysctl until 5.12, in debugfs since
	for file in "$SYSCTL/sched_$1" "$DEBUGFS/sched/$1"; do
		[ -w "$file" ] && echo "$file" && return 0
	done
	return 1
}

at_boot() { # NAME: print its value at the start of this boot, to report and to restore
	cat "$WORK/boot.$1" 2>/dev/null
}

missing() { # NAME: print why this kernel has no such knob
	if [ ! -d "$DEBUGFS/sched" ] && [ ! -e "$SYSCTL/sched_min_granularity_ns" ]; then
		echo "this kernel shows no scheduler knobs (CONFIG_SCHED_DEBUG, debugfs)"
		return
	fi
	case $1 in
	base_slice_ns) echo "this kernel is older than EEVDF (Linux 6.6)" ;;
	*) echo "EEVDF (Linux 6.6) has base_slice_ns, and nothing in place of the wakeup granularity" ;;
	esac
}

keep_knobs() {
	[ -d "$DEBUGFS/sched" ] || mount -t debugfs debugfs "$DEBUGFS" 2>/dev/null
	for name in min_granularity_ns wakeup_granularity_ns base_slice_ns; do
		file=$(knob "$name") && cat "$file" >"$WORK/boot.$name"
	done
	for name in base_slice_ns min_granularity_ns wakeup_granularity_ns; do
		record fact "$name" "$(at_boot "$name" || echo "none: $(missing "$name")")"
	done
}

values_of() { # granularity slow|fast|default, base_slice 4ms|10ms|default: lines of knob and nanoseconds
	case $1:$2 in
	granularity:slow) printf '%s\n' 'min_granularity_ns 10000000' 'wakeup_granularity_ns 15000000' ;;
	granularity:fast) printf '%s\n' 'min_granularity_ns 4000000' 'wakeup_granularity_ns 3000000' ;;
	granularity:default)
		for name in min_granularity_ns wakeup_granularity_ns; do at_boot "$name" | sed "s/^/$name /"; done
		;;
	base_slice:default) at_boot base_slice_ns | sed 's/^/base_slice_ns /' ;;
	base_slice:*ms) echo "base_slice_ns ${2%ms}000000" ;;
	esac
}

choose() { # KNOB VALUE: set it and read it back, or report why not
	values_of "$1" "$2" >"$WORK/wanted"
	while read -r name ns; do
		if ! file=$(knob "$name"); then
			record unsupported '*' "kernel $(uname -r) has no $name: $(missing "$name")"
			return 1
		fi
		[ "$(cat "$file")" = "$ns" ] || echo "$ns" >"$file" 2>/dev/null # nothing is written for a default
		if [ "$(cat "$file")" != "$ns" ]; then
			record unsupported '*' "kernel $(uname -r) uses $name $(cat "$file") when $ns is requested"
			return 1
		fi
	done <"$WORK/wanted"
	record setting "$1" "$(in_use "$1" "$2")"
}

in_use() { # KNOB VALUE: print VALUE if the kernel uses it now, else the value in use
	values_of "$1" "$2" >"$WORK/wanted"
	other=
	while read -r name ns; do
		found=$(cat "$(knob "$name")")
		[ "$found" = "$ns" ] || other="$other$name:$found "
	done <"$WORK/wanted"
	other=${other% }
	echo "${other:-$2}"
}

# --- the file system ---

size_file() { # MIB WHAT: set file_mib to what the plan asks for, or to MIB if WHAT permits no more
	file_mib=$FILE_MIB scaled=
	[ "$file_mib" -le "$1" ] || file_mib=$1 scaled=" (scaled to $2; the plan asks for $FILE_MIB)"
	[ "$file_mib" -ge 4 ] || fail infrastructure "$2 is not enough for a file of 4 MiB on XFS"
	record fact file_mib "$file_mib$scaled"
}

setup() {
	need fio mkfs.xfs
	grep -qw xfs /proc/filesystems || lack "this kernel has no XFS (CONFIG_XFS_FS)"
	keep_knobs
	scratch=${WQLAB_SCRATCH:-}
	scratch=${scratch%% *}
	if [ -n "$scratch" ]; then
		[ -b "$scratch" ] || fail infrastructure "scratch device $scratch does not exist"
		! grep -q "^$(readlink -f "$scratch")[0-9p]* " /proc/mounts || fail infrastructure "scratch device $scratch is in use"
		record fact disk "$scratch"
		# XFS needs a quarter and 512 MiB at most for its log and metadata.
		size_file $(($(blockdev --getsize64 "$scratch") * 3 / 4 / 1048576 - 512)) "the size of $scratch"
	else
		size_file $(($(memory_available_mib) / 2 - 64)) "this device's memory" # mkfs.xfs writes a log of 64 MiB
		# A disk that completes within submission would leave no completion work: the submitter would do it.
		node=$(disk_node 0) || exit 1
		disk_mib=$((file_mib * 5 / 4 + 512))
		scratch=$(memory_disk wqlab-aio "$disk_mib" "$(nproc)" 2 "$node") || exit 1
		has_memory_for "$disk_mib" || node=
		[ -z "$node" ] || fill_on_node "$scratch" "$node" "$disk_mib"
		record fact disk "null_blk memory_backed, $(nproc) queues, completed by a timer${node:+, prewritten on node $node}"
	fi
	echo "$scratch" >"$WORK/disk"
	echo "$file_mib" >"$WORK/file_mib"
	fresh_file_system
}

fresh_file_system() {
	mkdir -p "$MOUNT"
	! grep -q " $MOUNT " /proc/mounts || umount "$MOUNT" || fail infrastructure "cannot unmount $MOUNT"
	disk=$(cat "$WORK/disk")
	mkfs.xfs -q -f -K "$disk" && mount -t xfs "$disk" "$MOUNT" || fail infrastructure "cannot make and mount XFS on $disk"
}

prepare_file() { # initial writes need a fresh file system; all other scenarios need the file
	if [ "$FRESH" = 1 ]; then
		fresh_file_system
	elif [ ! -e "$WORK/laid_out" ] || [ ! -e "$MOUNT/file" ]; then
		fio --name=layout --filename="$MOUNT/file" --rw=write --bs=1M --direct=1 --size="$(cat "$WORK/file_mib")m" ||
			fail infrastructure "fio cannot lay out the file"
		: >"$WORK/laid_out"
		return
	fi
	[ "$FRESH" = 0 ] || rm -f "$WORK/laid_out"
}

# --- the writer ---

writer_starts() { # PID: called by fio in the process that does the I/O, right before it starts
	cat "/proc/$1/sched" >"$WORK/sched.before"
	[ "${TRACE:-0}" = 1 ] || return 0
	trace_write events/sched/sched_migrate_task/filter "pid == $1"
	trace_write tracing_on 1
}

writer_ends() { # PID: the same, right after its last I/O
	[ "${TRACE:-0}" != 1 ] || trace_write tracing_on 0
	cat "/proc/$1/sched" >"$WORK/sched.after"
}

workload() {
	rm -f "$WORK/sched.before" "$WORK/sched.after"
	set -- --name=writer --filename="$MOUNT/file" --rw="$RW" --bs="${BLOCK_KIB}k" --size="$(cat "$WORK/file_mib")m" --direct=1 \
		--ioengine=libaio --iodepth="$IODEPTH" --fallocate=none --group_reporting
	[ "$FRESH" = 1 ] || [ "$RUNTIME_S" = 0 ] || set -- "$@" --runtime="$RUNTIME_S" --time_based
	# $PPID is expanded by the shell that fio starts: its parent is the process that does the I/O.
	cd "$WORK" || exit 1
	run_fio "$@" --exec_prerun="sh $script writer_starts \$PPID" --exec_postrun="sh $script writer_ends \$PPID"
}

counted() { # FIELD of /proc/PID/sched: print its increase
	$AWK -v field="$1" 'FNR == 1 { file++ } $1 == field { n[file] = $3; seen++ }
		END { if (seen == 2) printf "%.6f", n[2] - n[1] }' "$WORK/sched.before" "$WORK/sched.after"
}

writer_records() {
	for pair in migrations_by_counter=se.nr_migrations writer_switches=nr_switches writer_cpu_ms=se.sum_exec_runtime; do
		found=$(counted "${pair#*=}")
		[ -z "$found" ] || record value "${pair%=*}" "$found"
	done
	[ -n "$(counted nr_switches)" ] || for metric in migrations_by_counter writer_switches writer_cpu_share; do
		record unsupported "$metric" "this kernel has no /proc/PID/sched (CONFIG_SCHED_DEBUG)"
	done
}

# --- tracing ---

probe_completions() { # find out where the completion work of AIO writes runs, and whether its workqueue is bound; false if overwrites, which the scenario has, queue none
	name="dio/$(basename "$(readlink -f "$(cat "$WORK/disk")")")"
	trace_write trace_clock mono
	trace_write events/workqueue/workqueue_queue_work/filter "workqueue == \"$name\"" ||
		{ for metric in completions_by_work completions_unbound completions_local; do
			record unsupported "$metric" "this kernel's workqueue_queue_work names no workqueue"
		done
		return 0; }
	trace_write options/hash-ptr 0
	for event in queue_work execute_start; do trace_write "events/workqueue/workqueue_$event/enable" 1; done
	# An overwrite changes no metadata, and since Linux 6.19 completes without a work (fs/iomap/direct-io.c).
	probe=$MOUNT/probe
	! overwrites || probe=$MOUNT/file
	trace_write tracing_on 1
	fio --name=probe --filename="$probe" --rw=write --bs=4k --size=1m --direct=1 --ioengine=libaio --iodepth=16 --fallocate=none \
		--output="$WORK/probe.out" || fail infrastructure "fio cannot write to $MOUNT"
	trace_write tracing_on 0
	trace_write events/enable 0
	trace_losses
	rm -f "$MOUNT/probe"
	$AWK "$TRACE_FUNCTIONS"'
	/^#/ { next }
	/ workqueue_queue_work: / { queued++; if (/ cpu=-1$/) unbound++; queue(item()); next }
	/ workqueue_execute_start: / { w = item(); if (w in from) { started++; if (from[w] == cpu()) home++; end_wait(w) } }
	END {
		printf "value\tcompletions_probed\t256\nvalue\tcompletions_queued\t%d\nvalue\tcompletions_unbound_queued\t%d\n", queued, unbound
		printf "value\tcompletions_started\t%d\nvalue\tcompletions_started_locally\t%d\n", started, home
		exit queued == 0
	}' "$TRACING/trace" >&3 && works=yes || works=no
	trace_write trace ''
	[ "$works" = yes ] || ! overwrites
}

overwrites() { # true if the scenario overwrites a file
	[ "$FRESH" = 0 ] && case $RW in *write) true ;; *) false ;; esac
}

reduce_trace() { # count the writer's migrations and the time between them
	$AWK "$TRACE_FUNCTIONS"'
	/^#/ { next }
	/ sched_migrate_task: / { t = time(); if (moved++) stay[int((t - last) * 1e6 + 0.5)]++; last = t }
	END {
		print_counts("histogram stay_us", stay)
		printf "value\tmigrations\t%d\n", moved
	}' "$TRACING/trace" >&3
}

measure() {
	script=$(readlink -f "$0")
	choose granularity "$SETTING_GRANULARITY" || return 0
	choose base_slice "$SETTING_BASE_SLICE" || return 0
	prepare_file
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		if trace_reset && [ -d "$TRACING/events/sched/sched_migrate_task" ]; then
			# Up to 6.6, if another instance (the monitor's) sized its buffer first, this one stays at two pages.
			trace_write buffer_size_kb "$TRACE_KIB"
			if probe_completions; then
				trace_write events/sched/sched_migrate_task/enable 1
				workload
				trace_write events/enable 0
				trace_losses
				reduce_trace
				writer_records
			else
				record value overwrites_without_work 1
			fi
			trace_reset
			trace_write buffer_size_kb 1
		else
			record unsupported traced "this kernel has no event sched_migrate_task"
		fi
	else
		before=$(cpu_times)
		workload
		cpu_records "$before" "$(cpu_times)"
		writer_records
	fi
	record setting_after granularity "$(in_use granularity "$SETTING_GRANULARITY")"
	record setting_after base_slice "$(in_use base_slice "$SETTING_BASE_SLICE")"
}

teardown() {
	choose granularity default
	choose base_slice default
	! grep -q " $MOUNT " /proc/mounts || umount "$MOUNT" || fail infrastructure "cannot unmount $MOUNT"
	drop_memory_disk wqlab-aio
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
writer_starts | writer_ends) "$1" "$2" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
