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
if command -v mawk >/dev/null 2>&1; then AWK=mawk; elif command -v gawk >/dev/null 2>&1; then AWK=gawk; else AWK='awk'; fi

note() { printf 'note\t%s\n' "$1" >>"$COUNTS"; }

define() { # EVENT FIELDS: define a synthetic event once per boot
	grep -q "^$1[[:space:]]" "$TRACING/synthetic_events" 2>/dev/null || echo "$1 $2" >>"$TRACING/synthetic_events"
}

arm() { # SYSTEM/EVENT TRIGGER: count from now on; a trigger of an earlier repetition is cleared
	file=$INSTANCE/events/$1/trigger
	[ -e "$file" ] || return 1
	if [ -e "$WORK/armed" ]; then echo "$2:clear" >>"$file"; else echo "$2" >>"$file"; fi 2>/dev/null
}

items() {
	define wqlab_queued 'u64 function; u64 us' &&
		define wqlab_executed 'u64 function; u64 us' &&
		arm workqueue/workqueue_queue_work 'hist:keys=work:queued_at=common_timestamp.usecs:size=32768' &&
		arm workqueue/workqueue_execute_start 'hist:keys=work:waited=common_timestamp.usecs-$queued_at,started_at=common_timestamp.usecs:size=32768:onmatch(workqueue.workqueue_queue_work).wqlab_queued(function,$waited)' &&
		arm workqueue/workqueue_execute_end 'hist:keys=work:ran=common_timestamp.usecs-$started_at:size=32768:onmatch(workqueue.workqueue_execute_start).wqlab_executed(function,$ran)' &&
		arm synthetic/wqlab_queued 'hist:keys=function.sym,us.log2:vals=us:size=8192' &&
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

refusal() {
	reason=$(grep -a 'error:' "$INSTANCE/error_log" "$TRACING/error_log" 2>/dev/null | tail -n 1 | sed 's/.*error: //')
	echo "${reason:-this kernel has no such event}"
}

switches() { $AWK '$1 == "ctxt" { print $2 }' /proc/stat; }

histogram() { # SYSTEM/EVENT AWK_PROGRAM: print the rows of an event's histograms
	[ ! -e "$INSTANCE/events/$1/hist" ] || $AWK "$reading $2" "$INSTANCE/events/$1/hist"
}

# Each line of a histogram is `{ KEY: VALUE, ... } hitcount: N  FIELD: SUM`. `Dropped` counts events without an entry.
# shellcheck disable=SC2016  # $0 is awk's
reading='
	BEGIN { lock_function = "^_*((raw|native|queued|pv|do|rt)_)*(spin|read|write)_(try)?lock|^_*(native_)?queued_|^osq_|" \
		"^_*(mutex|rwsem|rwbase|rt_mutex|percpu)_|^_*down(_|$)|contention|^trace_|^__traceiter|^__bpf|^event_|^hist_" }
	function field(name,  rest) {
		if (!match($0, "[{, ]" name ": *")) return ""
		rest = substr($0, RSTART + RLENGTH)
		sub(/[ ,}].*/, "", rest)
		return rest
	}
	function hits() { match($0, /hitcount: */); return substr($0, RSTART + RLENGTH) + 0 }
	function sum(  rest) {
		match($0, /hitcount: */)
		rest = substr($0, RSTART + RLENGTH)
		return match(rest, /us: */) ? substr(rest, RSTART + RLENGTH) + 0 : 0
	}
	function exponent() { return match($0, /2\^[0-9]+/) ? substr($0, RSTART + 2, RLENGTH - 2) + 0 : 0 }
	function symbol(  rest) {
		if (!match($0, /\] */)) return ""
		rest = substr($0, RSTART + RLENGTH)
		sub(/[ ,}].*/, "", rest)
		return rest
	}
	function add(topic, name) {
		if (name == "") return
		key = topic "\t" name
		# Two CPUs may disagree on the time, so that an item starts before it is queued: that is 0 us, not 2^64, whose
		# bucket the kernel calls 2^0 or 2^64.
		e = exponent(); s = sum()
		if (e > 40 || s > 1e15) e = s = 0
		total[key] += s
		count[key] += hits()
		buckets[key] = buckets[key] (buckets[key] == "" ? "" : ",") e ":" hits()
	}
	function plain(topic, name, n) { if (name != "") count[topic "\t" name] += n }
	/Dropped:/ { lost += $NF }
	END {
		for (key in count) printf "%s\t%.0f\t%.0f\t%s\n", key, count[key], total[key], buckets[key]
		if (lost) printf "note\ta histogram was full: %d events are not counted\n", lost
	}'

# shellcheck disable=SC2016  # $0 is awk's
stop() {
	[ -e "$WORK/armed" ] || return 0
	histogram synthetic/wqlab_queued '/hitcount:/ { add("queued", symbol()) }'
	histogram synthetic/wqlab_executed '/hitcount:/ { add("executed", symbol()) }'
	histogram synthetic/wqlab_locked '/hitcount:/ { add("contended", field("kind")) }'
	# A stack is one frame a line. The first function that is not of the locks themselves took the lock.
	histogram lock/contention_begin '
		/^{ *(common_)?stacktrace:/ { caller = ""; inside = 1; next }
		inside && /hitcount:/ { plain("contended_at", caller, hits()); inside = 0; next }
		inside && caller == "" {
			name = $1
			sub(/[+[].*/, "", name); sub(/\.(constprop|isra|part|cold).*/, "", name)
			if (name !~ lock_function) caller = name
		}'
	# The line of the trigger, a comment, names hitcount too.
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
