#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a plan's script and says beside its records what each workqueue did meanwhile, once a second.
# usage: monitor.sh SCRIPT ACTION
# The worker calls it in warm-ups and traced repetitions, never in those that are timed. The series is the last frame
# on standard output, `workqueues`: lines of `wqmon` where the device has that program and the kernel its counters and
# /proc/kcore, else counts of the workqueue tracepoints. What neither can say is in a `note` line.
set -u
TRACING=${TRACING:-/sys/kernel/tracing}
WORK=${WORK:-/tmp/wqlab}
PLAN=$(dirname "$0")
SERIES=$WORK/workqueues
INSTANCE=$TRACING/instances/wqlab-monitor
EVENTS='workqueue_queue_work workqueue_execute_start workqueue_execute_end'
END='the script has ended'
PATIENCE_S=15
if command -v mawk >/dev/null 2>&1; then AWK=mawk; elif command -v gawk >/dev/null 2>&1; then AWK=gawk; else AWK=awk; fi

note() { printf 'note\t0\t%s\n' "$1" >>"$SERIES"; }

start_counters() { # false, and says why, when this device or kernel cannot
	command -v wqmon >/dev/null 2>&1 || { why='this device has no program wqmon'; return 1; }
	[ -s "$PLAN/workqueue-layout" ] || { why="this kernel's debug information tells of no counters"; return 1; }
	rm -f "$WORK/watching"
	mkfifo "$WORK/watching" || { why='no fifo can be made'; return 1; }
	wqmon "$PLAN/workqueue-layout" "$SERIES" >"$WORK/watching" 2>"$WORK/wqmon.err" &
	monitor=$!
	read -r word <"$WORK/watching" && return 0
	wait "$monitor"
	why=$(tail -n 1 "$WORK/wqmon.err")
	return 1
}

stop_counters() {
	kill -TERM "$monitor"
	wait "$monitor" || note "the counters ended early: $(tail -n 1 "$WORK/wqmon.err")"
}

# mawk waits until its buffer is full before it looks at a line of a pipe, unless it is told otherwise.
follow() {
	if $AWK -W version 2>&1 </dev/null | grep -q '^mawk'; then exec $AWK -W interactive "$@"; else exec $AWK "$@"; fi
}

start_events() { # in a trace instance of their own: the plan may trace too
	for event in $EVENTS; do
		[ -d "$TRACING/events/workqueue/$event" ] || { why="$why; this kernel has no event $event"; return 1; }
	done
	mkdir -p "$INSTANCE" || { why="$why; no trace instance can be made"; return 1; }
	echo mono >"$INSTANCE/trace_clock"
	echo 1024 >"$INSTANCE/buffer_size_kb"
	# A plan that showed pointers left that to every instance made since; 6.1 then prints no names of workqueues.
	[ ! -e "$INSTANCE/options/hash-ptr" ] || echo 1 >"$INSTANCE/options/hash-ptr"
	follow -v end="$END" "$count_events" <"$INSTANCE/trace_pipe" >>"$SERIES" &
	monitor=$!
	for event in $EVENTS; do echo 1 >"$INSTANCE/events/workqueue/$event/enable"; done
}

# Events of a work item name its workqueue when it is queued only: what was queued before is nobody's.
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
	echo 0 >"$INSTANCE/events/enable"
	printf '%s\n' "$END" >"$INSTANCE/trace_marker" || kill "$monitor"
	# No plan fails for what is only watched beside it.
	{ sleep "$PATIENCE_S"; kill "$monitor"; } >/dev/null 2>&1 &
	guard=$!
	wait "$monitor" || note "the events' end was not seen in $PATIENCE_S s: the last counts are missing"
	kill "$guard" 2>/dev/null
	lost=$(cat "$INSTANCE"/per_cpu/cpu*/stats | $AWK '/overrun:|dropped events:/ { n += $NF } END { printf "%d", n }')
	[ "$lost" -eq 0 ] || note "the trace buffer lost $lost events: counts are too low"
	rmdir "$INSTANCE"
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

mkdir -p "$WORK"
start
/bin/sh "$@"
status=$?
$stop
printf '\nbegin\tworkqueues\n'
cat "$SERIES"
printf 'end\tworkqueues\n'
exit "$status"
