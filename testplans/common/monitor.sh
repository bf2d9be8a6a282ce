#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a plan's script and record each workqueue's activity once a second meanwhile; in a traced repetition (TRACE=1) also
# how long work items waited, and where they started.
# usage: monitor.sh SCRIPT ACTION
# The worker calls it in warm-ups and traced repetitions, never in timed ones. The series is the last frame on standard
# output, `workqueues`: lines of `wqmon` if the device has that program and the kernel its counters and /proc/kcore,
# else counts of the workqueue tracepoints. The waits are the frame before it, `traced`, as tracer.sh prints them. `note`
# lines say what is not measured.
# shellcheck disable=SC2317  # the functions stop_counters and stop_events are called by a name in a variable
set -u
TRACING=${TRACING:-/sys/kernel/tracing}
WORK=${WORK:-/tmp/wqlab}
PLAN=$(dirname "$0")
SERIES=$WORK/workqueues
EVENTS='workqueue_queue_work workqueue_execute_start workqueue_execute_end'
END='the script has ended'
END_TIMEOUT_S=15
EVENTS_INSTANCE=$TRACING/instances/wqlab-monitor
INSTANCE=$TRACING/instances/wqlab-waits
WAITS=$WORK/waits
ITEMS=8192 # a quarter of a traced boot's, because this is set up in each cell
# shellcheck source=histograms.sh
. "$PLAN/histograms.sh"

note() { printf 'note\t0\t%s\n' "$1" >>"$SERIES"; }

start_counters() { # false, with the reason in `why`, if this device or kernel does not support it
	command -v wqmon >/dev/null 2>&1 || { why='this device has no program wqmon'; return 1; }
	[ -s "$PLAN/workqueue-layout" ] || { why="this kernel's debug information has no counters"; return 1; }
	rm -f "$WORK/watching"
	mkfifo "$WORK/watching" || { why='no fifo can be made'; return 1; }
	wqmon "$PLAN/workqueue-layout" "$SERIES" >"$WORK/watching" 2>"$WORK/wqmon.err" &
	monitor=$!
	# shellcheck disable=SC2034  # only that a line arrives matters
	read -r word <"$WORK/watching" && return 0
	wait "$monitor"
	why=$(tail -n 1 "$WORK/wqmon.err")
	return 1
}

stop_counters() {
	kill -TERM "$monitor"
	wait "$monitor" || note "the counters ended early: $(tail -n 1 "$WORK/wqmon.err")"
}

# By default mawk reads a pipe only when its buffer is full.
follow() {
	if $AWK -W version 2>&1 </dev/null | grep -q '^mawk'; then exec $AWK -W interactive "$@"; else exec $AWK "$@"; fi
}

start_events() { # in a separate trace instance: the plan may trace too
	for event in $EVENTS; do
		[ -d "$TRACING/events/workqueue/$event" ] || { why="$why; this kernel has no event $event"; return 1; }
	done
	mkdir -p "$EVENTS_INSTANCE" || { why="$why; no trace instance can be made"; return 1; }
	echo mono >"$EVENTS_INSTANCE/trace_clock"
	echo 1024 >"$EVENTS_INSTANCE/buffer_size_kb"
	# Instances inherit a plan's switched-off hash-ptr; Linux 6.1 then prints no workqueue names.
	[ ! -e "$EVENTS_INSTANCE/options/hash-ptr" ] || echo 1 >"$EVENTS_INSTANCE/options/hash-ptr"
	follow -v end="$END" "$count_events" <"$EVENTS_INSTANCE/trace_pipe" >>"$SERIES" &
	monitor=$!
	for event in $EVENTS; do echo 1 >"$EVENTS_INSTANCE/events/workqueue/$event/enable"; done
}

# Only the queueing event names the workqueue: items queued earlier cannot be attributed and are skipped.
count_events='
	function tell(  name) {
		for (name in changed)
			printf "%d\t%s\t%d\t%d\t%d\t%d\n", second, name, started[name], completed[name],
				started[name] - completed[name], queued[name] - started[name]
		split("", changed)
	}
	function item() { match($0, /work struct[ =][^ ]+/); w = substr($0, RSTART + 12, RLENGTH - 12); sub(/:$/, "", w); return w }
	index($0, end) { tell(); exit }
	! match($0, / [0-9]+\.[0-9]+: workqueue_/) { next }
	{
		now = substr($0, RSTART + 1) + 0
		if (first == "") { first = now; second = 1 }
		while (now >= first + second) { tell(); second++ }
	}
	/ workqueue_queue_work: / {
		if (!match($0, /workqueue=[^ ]+/)) next
		name = substr($0, RSTART + 10, RLENGTH - 10); of[item()] = name; queued[name]++; changed[name] = 1; next
	}
	/ workqueue_execute_start: / {
		w = item(); if (!(w in of)) next
		running[w] = of[w]; started[of[w]]++; changed[of[w]] = 1; delete of[w]; next
	}
	/ workqueue_execute_end: / {
		w = item(); if (!(w in running)) next
		completed[running[w]]++; changed[running[w]] = 1; delete running[w]
	}'

stop_events() {
	echo 0 >"$EVENTS_INSTANCE/events/enable"
	printf '%s\n' "$END" >"$EVENTS_INSTANCE/trace_marker" || kill "$monitor"
	# The monitor must never block or fail the plan.
	{ sleep "$END_TIMEOUT_S"; kill "$monitor"; } >/dev/null 2>&1 &
	guard=$!
	wait "$monitor" || note "the events' end was not seen in $END_TIMEOUT_S s: the last counts are missing"
	kill "$guard" 2>/dev/null
	lost=$(cat "$EVENTS_INSTANCE"/per_cpu/cpu*/stats | $AWK '/overrun:|dropped events:/ { n += $NF } END { printf "%d", n }')
	[ "$lost" -eq 0 ] || note "the trace buffer lost $lost events: counts are too low"
	rmdir "$EVENTS_INSTANCE"
}

start() {
	if start_counters; then
		stop=stop_counters
		return
	fi
	printf 'source\ttracepoints\ncolumns\tstarted\tcompleted\tin_flight\tqueued\n' >"$SERIES"
	if start_events; then
		stop=stop_events
		note "CPU time, concurrency management, repatriations and rescues are not measured: $why"
	else
		stop=:
		note "not measured: $why"
	fi
}

# --- waits of work items ---

places() { # print the trigger that counts pairs of CPUs, with entries for four functions that run anywhere
	size=2048 pairs=$(($(nproc) * $(nproc) * 4))
	while [ "$size" -lt "$pairs" ] && [ "$size" -lt 65536 ]; do size=$((size * 2)); done
	echo "hist:keys=function.sym,from,to:size=$size"
}

start_waits() {
	[ -e "$TRACING/tracing_on" ] || mount -t tracefs tracefs "$TRACING"
	mkdir -p "$INSTANCE" 2>/dev/null
	if [ ! -d "$TRACING/events/$START" ]; then
		why='this kernel has no event workqueue_execute_start'
	elif [ ! -d "$INSTANCE" ]; then
		why='no trace instance can be made'
	elif [ ! -e "$INSTANCE/events/$START/hist" ] || [ ! -e "$TRACING/synthetic_events" ]; then
		why='this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS)'
	elif define_waited && trigger "$QUEUE" "$ON_QUEUE" && trigger "$START" "$ON_START" &&
		trigger "$WAITED" "$TIMES" && trigger "$WAITED" "$(places)"; then
		return
	else
		why=$(refusal)
	fi
	printf "note\tthe times from queueing to start of work items are not counted: %s\n" "$why" >"$WAITS"
}

stop_waits() {
	[ -s "$WAITS" ] || print_waits >"$WAITS"
	remove_triggers
	printf '\nbegin\ttraced\n'
	cat "$WAITS"
	printf 'end\ttraced\n'
}

mkdir -p "$WORK"
: >"$WAITS"
[ "${TRACE:-0}" != 1 ] || start_waits
start
/bin/sh "$@"
status=$?
[ "${TRACE:-0}" != 1 ] || stop_waits
$stop
printf '\nbegin\tworkqueues\n'
cat "$SERIES"
printf 'end\tworkqueues\n'
exit "$status"
