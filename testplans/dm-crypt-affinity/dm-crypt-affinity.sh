#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dm-crypt on a scratch device (or on a memory disk when the device has none), random reads and writes by
# a number of jobs that follows from the CPUs, each in a region of its own, with the affinity scope of the kcryptd
# workqueue chosen. Plan fan-out runs it too.
# usage: dm-crypt-affinity.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

PROC=${PROC:-/proc}
NAME=wqlab-crypt
DEVICE=/dev/mapper/$NAME

knob_folder() { # print the sysfs folder of this device's kcryptd (not kcryptd_io); older kernels name it kcryptd!MAJ:MIN
	for folder in /sys/devices/virtual/workqueue/kcryptd[-!]*; do
		[ -d "$folder" ] && echo "$folder" && return 0
	done
	return 1
}

free_device() { # DEVICE: true if it is not in use
	name=$(basename "$(readlink -f "$1")")
	! grep -q "^$(readlink -f "$1")[0-9p]* " /proc/mounts && [ -z "$(ls "/sys/class/block/$name/holders" 2>/dev/null)" ]
}

size_memory_disk() { # set disk_mib; set scaled to the reason if it is less than the plan requests
	disk_mib=$DISK_MIB scaled=
	most=$(issuers) # of any scenario: setup has the profile's number, which is that of the largest
	if [ "$disk_mib" -lt "$most" ]; then
		disk_mib=$most
		scaled=" (1 MiB for each of $most issuers; the plan asks for $DISK_MIB MiB)"
	fi
	budget=$(($(memory_available_mib) / 2)) # all of it is written; the other half is for everything else
	[ "$disk_mib" -gt "$budget" ] || return 0
	scaled=" (scaled to this device's memory; the plan asks for $DISK_MIB MiB)"
	disk_mib=$budget
	[ "$disk_mib" -ge "$(nproc)" ] ||
		lack "not enough memory: a memory disk of $disk_mib MiB has no region of 1 MiB for each of $(nproc) CPUs"
}

setup() {
	need fio dmsetup
	check_jobs # here already, so that the plan is unsupported without these CPUs
	scratch=${WQLAB_SCRATCH:-}
	scratch=${scratch%% *}
	if [ -n "$scratch" ]; then
		[ -b "$scratch" ] || fail infrastructure "scratch device $scratch does not exist"
		free_device "$scratch" || fail infrastructure "scratch device $scratch is in use"
		record fact disk "$scratch"
	else
		size_memory_disk
		node=$(disk_node 0) || exit 1
		scratch=$(memory_disk wqlab-plain "$disk_mib" "$(nproc)" 0 "$node") || exit 1
		# Pages are allocated by the first write: write all of it now, so that no measured write does.
		if [ -n "$node" ]; then
			fill_on_node "$scratch" "$node" "$disk_mib"
		else
			dd if=/dev/zero of="$scratch" bs=1M count="$disk_mib" || fail infrastructure "cannot fill the memory disk"
		fi
		record fact disk "null_blk memory_backed, $disk_mib MiB, $(nproc) queues, prewritten${node:+ on node $node}$scaled"
	fi
	sectors=$(blockdev --getsz "$scratch")
	key=$(od -An -v -N64 -tx1 /dev/urandom | tr -d ' \n')
	table="0 $sectors crypt aes-xts-plain64"
	dmsetup create "$NAME" --table "$table $key 0 $scratch 0" || fail infrastructure "dmsetup refuses a dm-crypt table"
	[ -b "$DEVICE" ] || dmsetup mknodes
	[ -b "$DEVICE" ] || fail infrastructure "no device node $DEVICE"
	record fact dm_table "$table <key> 0 $scratch 0 (no flags)"
	folder=$(knob_folder) || return 0
	keep_initial "$folder"
}

describe() { # record facts about the environment
	record fact crypto_driver "$($AWK '$1 == "name" { n = $3 } $1 == "driver" { d = $3 }
		$1 == "priority" && n == "xts(aes)" && $3 >= best { best = $3; found = d } END { print found }' /proc/crypto)"
	record fact workqueue "$(basename "$1")"
	for file in max_active cpumask; do [ -r "$1/$file" ] && record fact "workqueue_$file" "$(cat "$1/$file")"; done
}

# The CPUs of each pod, as its workers are allowed them while the scope is strict: "0-3 4-7". Pools that are shared with
# other workqueues outlive a change of scope, and their idle workers keep our name: lists of all CPUs, when not strict.
# Pods have no CPU in common, so a list is none when a shorter one has a CPU of it.
pods() {
	$AWK '$1 == "Name:" { ours = $2 ~ /^kworker\/u.*kcryptd[-\/]/ }
		$1 != "Cpus_allowed_list:" || !ours || $2 in size { next }
		{
			list = $2; size[list] = 0
			for (n = split(list, ranges, ","); n; n--) {
				last = split(ranges[n], ends, "-")
				for (cpu = ends[1] + 0; cpu <= ends[last] + 0; cpu++) { size[list]++; cpus[list] = cpus[list] " " cpu }
			}
			n = split(cpus[list], each, " ")
			for (; n; n--) if (!(each[n] in least) || size[list] < least[each[n]]) least[each[n]] = size[list]
		}
		END {
			for (list in size) {
				pod = 1
				for (n = split(cpus[list], each, " "); n; n--) if (least[each[n]] < size[list]) pod = 0
				if (pod) print list
			}
		}' "$PROC"/[0-9]*/status 2>/dev/null | sort -n | tr '\n' ' '
}

issuers() { # print the number of issuers: a share of the CPUs (ISSUERS_PER_CPU=1/3) or a root of their number (ISSUERS_POWER=1/3)
	cpus=$(nproc)
	if [ -n "${ISSUERS_POWER:-}" ]; then
		count=$($AWK "BEGIN { printf \"%d\", $cpus ^ ($ISSUERS_POWER) + 0.5 }")
	else
		count=$((cpus * ${ISSUERS_PER_CPU%/*} / ${ISSUERS_PER_CPU#*/}))
	fi
	[ "$count" -ge 1 ] || count=1
	echo "$count"
}

regions() { # set jobs and region_k, a job's share of the disk; false, with a record, if the disk is too small
	jobs=$(issuers)
	bytes=$(blockdev --getsize64 "$DEVICE")
	region=$((bytes / jobs / 1048576))
	[ "${REGION_MIB:-0}" -gt 0 ] && [ "$region" -gt "$REGION_MIB" ] && region=$REGION_MIB
	region_k=$((region * 1024))
	[ "$region" -ge 1 ] && return 0
	record unsupported '*' "a disk of $((bytes / 1048576)) MiB is too small for a region of 1 MiB for each of $jobs issuers"
	return 1
}

workload() { # TOTAL_IOS (0: RUNTIME_S seconds)
	bind=$(job_cpus) || exit 1
	# shellcheck disable=SC2086  # several arguments, or none
	set -- "$1" --name=iops-test-job --filename="$DEVICE" --direct=1 --rw=randrw --bs=32k --ioengine=libaio --iodepth=64 \
		--numjobs="$jobs" --size="${region_k}k" --offset_increment="${region_k}k" --group_reporting --verify="$VERIFY" \
		$bind
	if [ "$1" -gt 0 ]; then
		each=$(($1 / jobs))
		[ "$each" -ge 1 ] || each=1
		[ "$each" -le $((region_k / 32)) ] || each=$((region_k / 32))
		set -- "$@" --number_ios="$each"
	else
		set -- "$@" --runtime="$RUNTIME_S" --time_based
	fi
	shift
	run_fio "$@"
}

trace_start() { # WORKQUEUE
	trace_reset || { record unsupported traced "this kernel has no tracefs"; return 1; }
	for event in workqueue_queue_work workqueue_execute_start workqueue_execute_end; do
		[ -d "$TRACING/events/workqueue/$event" ] ||
			{ record unsupported traced "this kernel has no event $event"; return 1; }
	done
	trace_write buffer_size_kb "$TRACE_KIB"
	trace_write trace_clock mono # one clock for all CPUs: a work item's two events are on different ones
	trace_write options/hash-ptr 0
	trace_write events/workqueue/workqueue_queue_work/filter "workqueue == \"$1\"" ||
		{ record unsupported traced "this kernel's workqueue_queue_work names no workqueue"; return 1; }
	for event in workqueue_queue_work workqueue_execute_start workqueue_execute_end; do
		trace_write "events/workqueue/$event/enable" 1
	done
	trace_write events/sched/sched_migrate_task/enable 1 && MIGRATIONS=1
	trace_write tracing_on 1
}

# Each queued item's CPU and time are kept under its work pointer until it starts; what starts without having been
# queued on this workqueue belongs to another one.
reduce_trace() {
	$AWK -v migrations="${MIGRATIONS:-0}" "$TRACE_FUNCTIONS"'
	/^#/ { next }
	/ workqueue_queue_work: / { queue(item()); queued++; next }
	/ workqueue_execute_start: / {
		w = item()
		if (!(w in from)) next
		pair = from[w] " " cpu(); n[pair]++; started++
		wait[waited_us(w)]++
		end_wait(w); running[w] = pair; since[w] = time(); next
	}
	/ workqueue_execute_end: / {
		w = item()
		if (w in running) { ns[running[w]] += (time() - since[w]) * 1e9; delete running[w] }
		next
	}
	/ sched_migrate_task: / { moved++ }
	END {
		if (unreadable(0)) exit
		print "begin\tpairs"; for (p in n) printf "%s %d %.0f\n", p, n[p], ns[p]; print "end\tpairs"
		print_counts("histogram queue_to_start_us", wait)
		printf "value\titems\t%d\n", started; printf "fact\titems_queued_not_started\t%d\n", queued - started
		if (migrations) printf "value\tmigrations\t%d\n", moved
		else print "unsupported\tmigrations\tthis kernel has no event sched_migrate_task"
	}' "$TRACING/trace" >&3
}

localize() { # FOLDER: workers moved to the CPU that issued the work; posted with the affinity scopes, and not taken
	[ "${SETTING_LOCAL:-0}" = 0 ] && [ ! -e "$1/localize" ] && return 0
	if [ ! -w "$1/localize" ]; then
		record unsupported '*' "localization was never merged: kernel $(uname -r) cannot turn it on"
		return 1
	fi
	choose "$1" local "$SETTING_LOCAL" localize
}

settings() { # FOLDER: apply the settings; false, with a record, if the kernel does not
	describe "$1"
	for knob in scope strict; do
		if [ ! -w "$1/affinity_$knob" ]; then
			record unsupported '*' "kernel $(uname -r) has no affinity_$knob for $(basename "$1")"
			return 1
		fi
	done
	localize "$1" && apply "$1" scope "$SETTING_SCOPE" affinity_scope && apply "$1" strict "$SETTING_STRICT" affinity_strict
}

measure() {
	[ -b "$DEVICE" ] || fail infrastructure "the dm-crypt device $DEVICE does not exist"
	if folder=$(knob_folder); then
		settings "$folder" || return 0
	elif [ "$SETTING_SCOPE,$SETTING_STRICT" = default,default ]; then
		record setting scope default # nothing to write, so this needs no sysfs
		record setting strict default
	else # before 6.10 kcryptd has no folder; before 6.5 none has scopes
		record unsupported '*' "kernel $(uname -r) has no affinity_scope for kcryptd: that workqueue is not in sysfs"
		return 0
	fi
	regions || return 0
	settle
	if [ "${TRACE:-0}" = 1 ] && [ -z "$folder" ]; then
		record unsupported traced "kernel $(uname -r) does not name kcryptd in sysfs, so that its works cannot be told apart"
	elif [ "${TRACE:-0}" = 1 ]; then
		if trace_start "$(basename "$folder" | tr '!' '/')"; then
			workload "$TRACED_IOS"
			trace_end
		fi
	else
		before=$(cpu_times)
		workload "$TOTAL_IOS"
		cpu_records "$before" "$(cpu_times)"
	fi
	[ "$SETTING_STRICT" != 1 ] || record fact "${SETTING_SCOPE}_pods" "$(pods)"
	if [ -z "$folder" ]; then
		record setting_after scope default
		record setting_after strict default
		return 0
	fi
	after "$folder" scope "$SETTING_SCOPE" affinity_scope
	after "$folder" strict "$SETTING_STRICT" affinity_strict
	[ ! -e "$folder/localize" ] || record setting_after local "$(read_knob "$folder/localize")"
}

teardown() {
	[ ! -e "$DEVICE" ] || dmsetup remove "$NAME" || fail infrastructure "cannot remove $DEVICE"
	drop_memory_disk wqlab-plain
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
