#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# JOBS writers over MOUNTS fresh XFS file systems on ramdisks, 4 KiB writes, an fsync for each, every file written once. A
# traced repetition counts the locks and mutexes that the flushing task takes under __flush_workqueue.
# usage: xfs-fsync.sh setup|measure|teardown
# shellcheck disable=SC2030,SC2031  # subshells read another trace
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

WORKS=$TRACING/instances/wqlab-works
LOG_MIB=64 # the smallest log mkfs.xfs makes; its blocks are written, so they take memory
BLOCK_KIB=4
LOCK_ENTRIES='^(_raw|rt)_(spin|read|write)_(lock|trylock)'
MARKERS='^(__flush_workqueue|schedule|schedule_rtlock|mutex_lock|__mutex_lock_slowpath|mutex_unlock|handle_softirqs|__do_softirq)$'

scale() { # FILE_KIB: set jobs, mounts and file_kib to fit this device's memory, and report if they are less
	mounts=$MOUNTS jobs=$JOBS file_kib=$1
	# Each block takes memory twice, in the page cache and on the ramdisk; half of the memory stays free.
	budget_kib=$(($(cat "$WORK/memory_mib") * 1024 / 2))
	while [ "$mounts" -gt 1 ] && [ $((mounts * LOG_MIB * 1024)) -gt $((budget_kib / 2)) ]; do mounts=$((mounts - 1)); done
	data_kib=$((budget_kib - mounts * LOG_MIB * 1024))
	least_kib=$((72 * BLOCK_KIB)) # fio skips fsyncs until its queue of 64 blocks is full
	while [ "$jobs" -gt "$mounts" ] && [ $((jobs * least_kib * 2)) -gt "$data_kib" ]; do jobs=$((jobs / 2)); done
	[ "$jobs" -ge "$mounts" ] || jobs=$mounts
	jobs=$((jobs / mounts * mounts))
	if [ $((jobs * file_kib * 2)) -gt "$data_kib" ]; then file_kib=$((data_kib / jobs / 2 / BLOCK_KIB * BLOCK_KIB)); fi
	[ "$file_kib" -ge "$least_kib" ] || fail infrastructure "not enough memory: $budget_kib KiB for $mounts file systems and $jobs files"
	record fact scale "$jobs jobs on $mounts mounts, $file_kib KiB each$(
		[ "$jobs $mounts $file_kib" = "$JOBS $MOUNTS $1" ] || echo " (scaled to this device's memory; the plan asks for $JOBS, $MOUNTS, $1 KiB)")"
}

setup() {
	need fio mkfs.xfs
	check_jobs # here already, so that the plan is unsupported without these CPUs
	grep -qw xfs /proc/filesystems || lack "this kernel has no XFS (CONFIG_XFS_FS)"
	memory_available_mib >"$WORK/memory_mib"
	scale "$FILE_KIB"
	# shellcheck disable=SC2017  # jobs is a multiple of mounts
	disk_mib=$((jobs / mounts * file_kib / 1024 * 5 / 4 + 512)) # mkfs.xfs wants at least 300 MiB
	ram_disks "$mounts" "$disk_mib" || return 0
	i=0
	placed='' enough=no
	if has_memory_for $((mounts * disk_mib)); then enough=yes; fi
	while read -r disk; do
		node=$(disk_node "$i") || exit 1
		if [ -n "$node" ] && [ "$enough" = yes ]; then
			fill_on_node "$disk" "$node" "$disk_mib"
			placed="${placed:-, prewritten on nodes} $node"
		elif [ -n "$node" ]; then
			placed=", not prewritten: that takes twice their size of memory"
		fi
		mkdir -p "/mnt/wqlab$i"
		i=$((i + 1))
	done <"$WORK/disks"
	record fact disk "ramdisks (brd), $mounts x $disk_mib MiB$placed"
}

# Ramdisks, as the published study had. A memory disk of null_blk copies each block under one lock of the disk, with
# interrupts off, and so would have a lock of its own that many writers contend for.
ram_disks() { # NUMBER MIB: make them and list their devices in $WORK/disks; false, with a record, if the kernel cannot
	kib=$(($2 * 1024))
	load_module brd "rd_nr=$1" "rd_size=$kib" max_part=1 || return 1
	i=0
	: >"$WORK/disks"
	while [ "$i" -lt "$1" ]; do
		[ -b "/dev/ram$i" ] && [ "$(blockdev --getsize64 "/dev/ram$i")" -ge $((kib * 1024)) ] ||
			lack "this kernel has brd built in, with other disks than $1 of $kib KiB: build it as a module, or boot with ramdisk_size=$kib brd.rd_nr=$1"
		! grep -q "^/dev/ram$i " /proc/mounts || fail infrastructure "ramdisk /dev/ram$i is in use"
		echo "/dev/ram$i" >>"$WORK/disks"
		i=$((i + 1))
	done
}

unmount_all() {
	for folder in /mnt/wqlab*; do
		! grep -q " $folder " /proc/mounts || umount "$folder" || fail infrastructure "cannot unmount $folder"
	done
}

fresh_file_systems() { # every repetition writes new files to a new file system: overwrites need no log push
	unmount_all
	while read -r disk; do
		mkfs.xfs -q -f -K "$disk" &
	done <"$WORK/disks"
	wait
	window track
	i=0
	while read -r disk; do
		mount -t xfs "$disk" "/mnt/wqlab$i" || fail infrastructure "cannot make and mount an XFS file system on $disk"
		i=$((i + 1))
	done <"$WORK/disks"
}

workload() {
	bind=$(job_cpus) || exit 1
	# shellcheck disable=SC2086  # several arguments, or none
	set -- --ioengine=libaio --iodepth=64 --norandommap=1 --rw=write --size="${file_kib}k" --bs="${BLOCK_KIB}k" --fsync=1 \
		--group_reporting $bind
	i=0
	while [ "$i" -lt "$mounts" ]; do
		set -- "$@" --name="mount$i" --directory="/mnt/wqlab$i" --numjobs=$((jobs / mounts))
		i=$((i + 1))
	done
	run_fio "$@"
}

trace_start() { # a function graph of each __flush_workqueue() with every lock entry point in it
	trace_reset && grep -qw function_graph "$TRACING/available_tracers" ||
		{ record unsupported traced "this kernel has no function_graph tracer"; return 1; }
	functions=$WORK/functions # NUMBER:NAME
	grep -nE "$LOCK_ENTRIES|$MARKERS" "$TRACING/available_filter_functions" | sed 's/[^A-Za-z_0-9:].*//' >"$functions"
	names=" $(cut -d: -f2 "$functions" | tr '\n' ' ')"
	case $names in *' __flush_workqueue '*) ;; *)
		record unsupported traced "this kernel has no traceable __flush_workqueue"
		return 1
		;;
	esac
	for entry in _raw_spin_lock _raw_spin_lock_irq _raw_spin_lock_irqsave; do
		case $names in *" $entry "*) ;; *)
			record unsupported traced "$entry is inlined or not traceable in this kernel: locks cannot be counted"
			return 1
			;;
		esac
	done
	# By number: for each name the kernel would search all functions.
	cut -d: -f1 "$functions" | tr '\n' ' ' >"$TRACING/set_ftrace_filter"
	[ "$(sed 's/[^A-Za-z_0-9].*//' "$TRACING/set_ftrace_filter")" = "$(cut -d: -f2 "$functions")" ] ||
		{ record unsupported traced "this kernel takes other functions by their numbers than it lists (5.1 takes those)"; return 1; }
	case $names in *' mutex_lock '*) ;; *)
		for metric in mutex_per_flush mutex_contended_share; do record unsupported "$metric" "mutex_lock is not traceable in this kernel"; done
		;;
	esac
	record fact lock_entries "$(cut -d: -f2 "$functions" | grep -E "$LOCK_ENTRIES" | tr '\n' ' ')"
	trace_write set_graph_function __flush_workqueue
	# Nothing in a hard interrupt is recorded; what runs in softirq context shows as nested and is left out below.
	for option in irqs=0 proc=1 tail=1 cpu=1 duration=0 overhead=0 abstime=1; do
		trace_write "options/funcgraph-${option%=*}" "${option#*=}"
	done
	trace_write buffer_size_kb "$TRACE_KIB"
	trace_write trace_clock mono
	trace_write current_tracer function_graph
	works_start
	trace_write tracing_on 1
}

# A graph prints events in another form, so XFS's works are traced in a buffer of their own.
works_start() {
	mkdir -p "$WORKS" 2>/dev/null
	if (TRACING=$WORKS; trace_works idle_while_work_waits_us 'workqueue ~ "xfs-*"' && trace_idle && trace_write tracing_on 1); then IDLE=1; fi
}

# Unbound works only: a bound one can run on one CPU. XFS's workqueues are not in sysfs, so their CPUs are those of all unbound
# ones, and no scope of theirs is strict.
reduce_works() {
	trace_write tracing_on 0
	trace_losses
	$AWK -v mask="$(cat "${SYS:-/sys}/devices/virtual/workqueue/cpumask")" -v online="$(cat "${SYS:-/sys}/devices/system/cpu/online")" \
		"$TRACE_FUNCTIONS $IDLE_FUNCTIONS"'
	BEGIN { idle_setup() }
	/^#/ { next }
	/ sched_switch: / { idle_switch(); next }
	/ workqueue_activate_work: / { idle_activate(item()); next }
	/ workqueue_queue_work: / { if (field("cpu") ~ /^(-1|4294967295)$/) queue(item()); next }
	/ workqueue_execute_start: / { w = item(); if (w in from) { idle_start(w); end_wait(w) } }
	END { if (!unreadable(0)) idle_records() }' "$TRACING/trace" >&3
}

# Each CPU's trace is read for itself and sorted by time, far cheaper than the kernel's merge; a flush that waits may go
# on on another CPU. A flush goes through wq->mutex first: what a contended mutex locks depends on timing, so it counts for the whole
# flush but not for the part until it waits, which ends at the first schedule() outside of the mutex. An uncontended
# mutex_lock() calls none of the functions of this trace.
reduce_trace() {
	cat "$TRACING"/per_cpu/cpu*/trace | sort -n -s -k1,1 | $AWK -v lock="$LOCK_ENTRIES" '
	function frame(name, counts,  value) {
		print "begin\thistogram " name
		for (value in counts) printf "%d %d\n", value, counts[value]
		print "end\thistogram " name
	}
	{
		if (!match($0, / fio-[0-9]+ +\| +/)) next # time | cpu) fio-PID | what
		p = substr($0, RSTART + 5) + 0
		body = substr($0, RSTART + RLENGTH)
		closing = body ~ /^}/; nested = body ~ /\{$/
		name = body
		if (closing) { sub(/^} +\/\* /, "", name); sub(/[ \[].*/, "", name) } else sub(/\(.*/, "", name)
	}
	name == "__flush_workqueue" {
		if (!closing) { open[p] = 1; whole[p] = 0; until[p] = 0; waited[p] = 0; softirq[p] = 0; mutex[p] = 0; taken[p] = 0; held[p] = 0; locking[p] = 0; next }
		if (!open[p]) next
		open[p] = 0; flushes[whole[p]]++; mutexes += taken[p]; contended += held[p]
		if (waited[p]) w[until[p]]++; else r[until[p]]++
		next
	}
	!open[p] { next }
	name ~ /softirq/ { if (nested) softirq[p]++; else if (closing) softirq[p]--; next }
	name == "mutex_lock" && !closing { taken[p]++; locking[p] = nested; slow[p] = 0 }
	name == "mutex_lock" && closing { held[p] += slow[p]; locking[p] = 0 }
	name ~ /^mutex_/ { if (nested) mutex[p]++; else if (closing) mutex[p]--; next }
	locking[p] && !softirq[p] { slow[p] = 1 }
	name ~ /^schedule/ { if (!closing && !mutex[p] && !softirq[p]) waited[p] = 1; next }
	closing || softirq[p] || name !~ lock { next }
	{ whole[p]++; if (!waited[p] && !mutex[p]) until[p]++; kind[name]++ }
	END {
		frame("locks_until_wait_waited", w); frame("locks_until_wait_returned", r); frame("locks_whole_flush", flushes)
		printf "value\tmutexes\t%d\nvalue\tmutexes_contended\t%d\n", mutexes, contended
		printf "fact\tlocks_by_entry\t"; for (k in kind) printf "%s:%d ", k, kind[k]; print ""
	}' >&3
	[ "${IDLE:-0}" = 0 ] || (TRACING=$WORKS; reduce_works)
	[ ! -d "$WORKS" ] || rmdir "$WORKS"
}

measure() {
	if [ "${TRACE:-0}" = 1 ]; then scale "$TRACED_FILE_KIB"; else scale "$FILE_KIB"; fi
	fresh_file_systems
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		workload
		trace_end
	else
		before=$(cpu_times)
		workload
		cpu_records "$before" "$(cpu_times)"
	fi
}

teardown() {
	unmount_all
	[ -f brd.builtin ] || [ ! -d /sys/module/brd ] || rmmod brd || fail infrastructure "cannot remove module brd"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
