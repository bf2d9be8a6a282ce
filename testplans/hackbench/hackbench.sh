#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hackbench: groups of tasks send each other messages over pipes or sockets, alone or while each CPU executes works of the
# lab's module cmwq_load. A traced repetition takes the time from the wakeup of each task to its start.
# usage: hackbench.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

LOAD=${LOAD:-/sys/kernel/debug/cmwq_load}
INSTANCE=$TRACING/instances/wqlab-hackbench
OVER=$WORK/over # exists when hackbench has ended
# One of the tasks is the one that is woken: events of other programs and kernel threads are not counted.
DELAY='wqlab_delay u64 us'
WAKING='hist:keys=pid:since=common_timestamp.usecs:size=16384 if comm == "hackbench"'
SWITCH='hist:keys=next_pid:waited=common_timestamp.usecs-$since:size=16384:onmatch(sched.sched_waking).wqlab_delay($waited) if next_comm == "hackbench"'
DELAYED='hist:keys=us:size=32768'
MOVED='hist:keys=comm:size=1024 if comm == "hackbench"'

groups() { # print the number of groups: GROUPS_PER_CPU, as 1/2, for each CPU, and at least one
	n=$(($(nproc) * ${GROUPS_PER_CPU%/*} / ${GROUPS_PER_CPU#*/}))
	[ "$n" -ge 1 ] || n=1
	echo "$n"
}

start_load() { # DURATION_MS: load all CPUs; returns at the end of the load. Busybox's echo prints the error
	request="workload=$WORKLOAD burn=S duration_ms=$1 cpu=all seed=$SEED"
	busybox echo "$request" >"$LOAD/start" || fail infrastructure "module cmwq_load refused '$request': $(dmesg | grep cmwq_load | tail -n 1)"
}

setup() {
	need hackbench busybox insmod
	# Each measurement of a scenario with a load reports whether the module is available.
	[ -f cmwq_load.ko ] && load_module cmwq_load || return 0
	[ -w "$LOAD/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$LOAD/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
}

# --- wakeups ---

trigger() { # SYSTEM/EVENT TRIGGER: true if the kernel accepted it
	{ printf '%s\n' "$2" >>"$INSTANCE/events/$1/trigger"; } 2>/dev/null
}

trace_start() { # false, with a record, if this kernel lacks something
	trace_reset || { record unsupported traced "this kernel has no tracefs"; return 1; }
	mkdir -p "$INSTANCE" 2>/dev/null
	if [ ! -e "$INSTANCE/events/sched/sched_waking/hist" ] || [ ! -e "$TRACING/synthetic_events" ]; then
		record unsupported traced "this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS, CONFIG_SYNTH_EVENTS)"
		return 1
	fi
	grep -q "^wqlab_delay[[:space:]]" "$TRACING/synthetic_events" || echo "$DELAY" >>"$TRACING/synthetic_events"
	trigger sched/sched_migrate_task "$MOVED" && trigger sched/sched_waking "$WAKING" &&
		trigger sched/sched_switch "$SWITCH" && trigger synthetic/wqlab_delay "$DELAYED" && return 0
	record unsupported traced "this kernel refuses the histograms of wakeups: $(grep -a 'error:' "$INSTANCE/error_log" "$TRACING/error_log" 2>/dev/null | tail -n 1 | sed 's/.*error: //')"
	trace_stop
	return 1
}

trace_stop() { # remove the triggers, so that later repetitions do not pay for them
	trigger sched/sched_switch "!$SWITCH"
	trigger sched/sched_waking "!$WAKING"
	trigger synthetic/wqlab_delay "!$DELAYED"
	trigger sched/sched_migrate_task "!$MOVED"
}

# Each line of a histogram is `{ KEY: VALUE } hitcount: N`; `Dropped` counts events that found no free entry.
reduce_delays() { # print the histogram as lines `MICROSECONDS COUNT`, three digits of each, and a record if it was full
	$AWK '
	/^[{] *us:/ {
		gsub(/[{}:,]/, " "); us = $2 + 0
		# Two CPUs may disagree on the time, so that a task starts before it is woken: that is 0 us, not 2^64.
		if (us > 1e15) us = 0
		n[us < 1000 ? us : int(sprintf("%.2e", us))] += $4
	}
	/Dropped:/ { lost += $NF }
	END {
		print "begin\thistogram wakeup_us"; for (us in n) printf "%d %d\n", us, n[us]; print "end\thistogram wakeup_us"
		if (lost) printf "overrun\t%d\n", lost
	}' "$INSTANCE/events/synthetic/wqlab_delay/hist" >&3
}

reduce_moves() {
	$AWK '/^[{].*hitcount:/ { n += $NF } END { printf "value\tmigrations\t%d\n", n }' "$INSTANCE/events/sched/sched_migrate_task/hist" >&3
}

# --- measuring ---

under_load() { # loads of LOAD_MS, one after the other, until hackbench has ended: their results follow one another
	: >"$WORK/loads"
	while [ ! -e "$OVER" ]; do
		start_load "$LOAD_MS"
		cat "$LOAD/result" >>"$WORK/loads"
	done
}

workload() {
	set -- -g "$(groups)" -f "$FDS" -l "$LOOPS" -s "$SIZE"
	[ "$TRANSPORT" = socket ] || set -- "$@" --pipe
	record command "hackbench $*"
	record fact groups "$(groups) on $(nproc) CPUs, each of $FDS senders and $FDS receivers"
	rm -f "$OVER"
	load=
	if [ "$BESIDE" = load ]; then
		under_load &
		load=$!
		sleep 0.2 # nothing reports that the load has begun
	fi
	before=$(cpu_times)
	window begin
	status=0
	hackbench "$@" >"$WORK/hackbench.out" 2>&1 3>&- || status=$?
	window end
	after=$(cpu_times)
	: >"$OVER"
	[ -z "$load" ] || wait "$load" || exit 1
	[ "$status" = 0 ] || fail infrastructure "hackbench ended with exit status $status: $(tail -n 1 "$WORK/hackbench.out")"
}

result() { # printed last, so that truncated output has no result
	[ "$BESIDE" != load ] || frame loads <"$WORK/loads"
	frame hackbench <"$WORK/hackbench.out"
}

measure() {
	if [ "$BESIDE" = load ]; then load_module cmwq_load || return 0; fi
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		workload
		reduce_delays
		reduce_moves
		trace_stop
	else
		workload
		cpu_records "$before" "$after"
	fi
	result
}

teardown() {
	[ ! -d "$INSTANCE" ] || rmdir "$INSTANCE" 2>/dev/null # a kernel may refuse while its events are in use
	[ ! -d /sys/module/cmwq_load ] || rmmod cmwq_load || fail infrastructure "cannot remove module cmwq_load"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
