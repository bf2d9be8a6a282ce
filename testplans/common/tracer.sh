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

items() {
	define_waited &&
		define wqlab_executed 'u64 function; u64 us' &&
		trigger "$QUEUE" "$ON_QUEUE" &&
		trigger "$START" "$ON_START" &&
		trigger workqueue/workqueue_execute_end "hist:keys=work:ran=common_timestamp.usecs-\$started_at:size=$ITEMS:onmatch(workqueue.workqueue_execute_start).wqlab_executed(function,\$ran)" &&
		trigger "$WAITED" "$TIMES" &&
		trigger synthetic/wqlab_executed 'hist:keys=function.sym,us.log2:vals=us:size=8192'
}

locks() {
	define wqlab_locked 'u32 kind; u64 us' &&
		trigger lock/contention_begin 'hist:keys=common_pid:wanted_at=common_timestamp.usecs,kind=flags:size=8192' &&
		trigger lock/contention_end 'hist:keys=common_pid:waited=common_timestamp.usecs-$wanted_at,was=$kind:size=8192:onmatch(lock.contention_begin).wqlab_locked($was,$waited)' &&
		trigger synthetic/wqlab_locked 'hist:keys=kind,us.log2:vals=us:size=2048'
}

callers() { trigger lock/contention_begin 'hist:keys=stacktrace:size=2048'; }

migrations() {
	trigger sched/sched_migrate_task 'hist:keys=orig_cpu,dest_cpu:size=16384' &&
		trigger sched/sched_migrate_task 'hist:keys=comm:size=4096'
}

# Probes at the start of the functions that the series changes. The compiler may have renamed one (`.isra.0`) or inlined it,
# and some must not be probed: `probed` has the others, with their symbols.
functions() {
	[ -n "${CHANGED_FUNCTIONS:-}" ] || return 0
	$AWK -v names="$CHANGED_FUNCTIONS" '
		BEGIN { n = split(names, each, " "); for (i = 1; i <= n; i++) wanted[each[i]] = 1 }
		$2 ~ /^[tT]$/ && $3 !~ /\.cold/ { name = $3; sub(/\..*/, "", name); if (name in wanted) { print name, $3; delete wanted[name] } }
	' "${KALLSYMS:-/proc/kallsyms}" | while read -r function symbol; do
		{ echo "p:wqlab/ran $symbol" >>"$TRACING/kprobe_events"; } 2>/dev/null && echo "$function $symbol" >>"$WORK/probed"
	done
	[ ! -s "$WORK/probed" ] || trigger wqlab/ran 'hist:keys=__probe_ip.sym:size=2048'
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
	functions || note "calls of changed functions are not counted: $(refusal)"
}

switches() { $AWK '$1 == "ctxt" { print $2 }' /proc/stat; }

# shellcheck disable=SC2016  # $0 is awk's
stop() {
	[ -e "$WORK/triggers" ] || return 0
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
	histogram wqlab/ran '/hitcount:/ { plain("called", symbol(), hits()) }' >"$WORK/called"
	[ ! -s "$WORK/probed" ] || $AWK 'FILENAME == ARGV[1] { if ($1 == "called") calls[$2] = $3; next }
		{ printf "called\t%s\t%d\t0\t\n", $1, calls[$2] }' "$WORK/called" "$WORK/probed"
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
remove_triggers
printf '\nbegin\ttraced\n'
cat "$COUNTS"
printf 'end\ttraced\n'
exit "$status"
