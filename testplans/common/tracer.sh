#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a plan's script and count meanwhile what the kernel does, in histograms of the tracer.
# usage: tracer.sh SCRIPT ACTION
# The worker calls it in traced boots only. The counts are the last frame on standard output, `traced`: lines
# `TOPIC NAME COUNT TOTAL_US EXPONENT:COUNT,...`, tab separated. `note` lines say what is not counted.
set -u
TRACING=${TRACING:-/sys/kernel/tracing}
WORK=${WORK:-/tmp/wqlab}
COUNTS=$WORK/traced
INSTANCE=$TRACING/instances/wqlab-traced
# shellcheck source=histograms.sh
. "$(dirname "$0")/histograms.sh"

note() { printf 'note\t%s\n' "$1" >>"$COUNTS"; }

arm() { # SYSTEM/EVENT TRIGGER: count from now on; a trigger of an earlier repetition is cleared
	if [ -e "$WORK/armed" ]; then trigger "$1" "$2:clear"; else trigger "$1" "$2"; fi
}

items() {
	define_waited &&
		define wqlab_executed 'u64 function; u64 us' &&
		arm "$QUEUE" "$ON_QUEUE" &&
		arm "$START" "$ON_START" &&
		arm workqueue/workqueue_execute_end "hist:keys=work:ran=common_timestamp.usecs-\$started_at:size=$ITEMS:onmatch(workqueue.workqueue_execute_start).wqlab_executed(function,\$ran)" &&
		arm "$WAITED" "$TIMES" &&
		arm synthetic/wqlab_executed 'hist:keys=function.sym,us.log2:vals=us:size=8192'
}

locks() {
	define wqlab_locked 'u32 kind; u64 us' &&
		arm lock/contention_begin 'hist:keys=common_pid:wanted_at=common_timestamp.usecs,kind=flags:size=8192' &&
		arm lock/contention_end 'hist:keys=common_pid:waited=common_timestamp.usecs-$wanted_at,was=$kind:size=8192:onmatch(lock.contention_begin).wqlab_locked($was,$waited)' &&
		arm synthetic/wqlab_locked 'hist:keys=kind,us.log2:vals=us:size=2048'
}

callers() { arm lock/contention_begin 'hist:keys=stacktrace:size=2048'; }

migrations() {
	arm sched/sched_migrate_task 'hist:keys=orig_cpu,dest_cpu:size=16384' &&
		arm sched/sched_migrate_task 'hist:keys=comm:size=4096'
}

start() {
	[ -e "$TRACING/tracing_on" ] || mount -t tracefs tracefs "$TRACING"
	mkdir -p "$INSTANCE" 2>/dev/null
	if [ ! -e "$INSTANCE/events/sched/sched_migrate_task/hist" ] || [ ! -e "$TRACING/synthetic_events" ]; then
		note 'nothing is counted: this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS)'
		return
	fi
	items || note "work items are not counted: $(refusal)"
	locks || note "waits for locks are not counted by kind: $(refusal)"
	callers || note "waits for locks are not counted by function: $(refusal)"
	migrations || note "migrations are not counted: $(refusal)"
	: >"$WORK/armed"
}

switches() { $AWK '$1 == "ctxt" { print $2 }' /proc/stat; }

# shellcheck disable=SC2016  # $0 is awk's
stop() {
	[ -e "$WORK/armed" ] || return 0
	print_waits
	histogram synthetic/wqlab_executed '/hitcount:/ { add("executed", symbol()) }'
	histogram synthetic/wqlab_locked '/hitcount:/ { add("contended", field("kind")) }'
	# A stack is one frame a line. The first function that is not of the locks themselves took the lock.
	histogram lock/contention_begin '
		BEGIN { lock_function = "^_*((raw|native|queued|pv|do|rt)_)*(spin|read|write)_(try)?lock|^_*(native_)?queued_|^osq_|" \
			"^_*(mutex|rwsem|rwbase|rt_mutex|percpu)_|^_*down(_|$)|contention|^trace_|^__traceiter|^__bpf|^event_|^hist_" }
		/^{ *(common_)?stacktrace:/ { caller = ""; inside = 1; next }
		inside && /hitcount:/ { plain("contended_at", caller, hits()); inside = 0; next }
		inside && caller == "" {
			name = $1
			sub(/[+[].*/, "", name); sub(/\.(constprop|isra|part|cold).*/, "", name)
			if (name !~ lock_function) caller = name
		}'
	histogram sched/sched_migrate_task '
		/^{.*hitcount:/ {
			if (field("comm") != "") { name = field("comm"); sub(/[-:\/0-9].*/, "", name); plain("migrated_task", name, hits()) }
			else plain("migrated", field("orig_cpu") ">" field("dest_cpu"), hits())
		}'
	printf 'switched\t\t%d\t0\t\n' $((after - before))
}

mkdir -p "$WORK"
: >"$COUNTS"
start
before=$(switches)
/bin/sh "$@"
status=$?
after=$(switches)
stop >>"$COUNTS"
printf '\nbegin\ttraced\n'
cat "$COUNTS"
printf 'end\ttraced\n'
exit "$status"
