# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Histograms of the tracer, for plans that count the wakeups of some tasks: the time from each wakeup (sched_waking) to
# the start of the task (sched_switch), and how often the tasks were moved to another CPU.
# Sourced after device.sh. The script sets TASKS to the names that count, as a filter of the tracer has them:
# `== "hackbench"`, `~ "request*"`.
# shellcheck disable=SC2016  # variables in the triggers are the kernel's, $0 is awk's

INSTANCE=$TRACING/instances/wqlab-wakeups
DELAY='wqlab_delay u64 us'
# One of the tasks is the one that is woken: events of other programs and kernel threads are not counted.
WAKING="hist:keys=pid:since=common_timestamp.usecs:size=16384 if comm $TASKS"
SWITCH='hist:keys=next_pid:waited=common_timestamp.usecs-$since:size=16384:onmatch(sched.sched_waking).wqlab_delay($waited) if next_comm '"$TASKS"
# An entry for each number of microseconds; with more runnable tasks there are more numbers. 131072 is the kernel's maximum.
[ "$(nproc)" -le 32 ] && DELAYS=32768 || DELAYS=131072
DELAYED="hist:keys=us:size=$DELAYS"
MOVED="hist:keys=comm:size=1024 if comm $TASKS"

trigger() { # SYSTEM/EVENT TRIGGER: true if the kernel accepted it
	{ printf '%s\n' "$2" >>"$INSTANCE/events/$1/trigger"; } 2>/dev/null
}

define_event() { # NAME FIELDS: define a synthetic event once per boot
	grep -q "^$1[[:space:]]" "$TRACING/synthetic_events" || echo "$1 $2" >>"$TRACING/synthetic_events"
}

refusal() { # print why the kernel refused a trigger
	grep -a 'error:' "$INSTANCE/error_log" "$TRACING/error_log" 2>/dev/null | tail -n 1 | sed 's/.*error: //'
}

trace_wakeups() { # false, with a record, if this kernel lacks something
	trace_reset || { record unsupported traced "this kernel has no tracefs"; return 1; }
	mkdir -p "$INSTANCE" 2>/dev/null
	if [ ! -e "$INSTANCE/events/sched/sched_waking/hist" ] || [ ! -e "$TRACING/synthetic_events" ]; then
		record unsupported traced "this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS, CONFIG_SYNTH_EVENTS)"
		return 1
	fi
	define_event "${DELAY%% *}" "${DELAY#* }"
	trigger sched/sched_migrate_task "$MOVED" && trigger sched/sched_waking "$WAKING" &&
		trigger sched/sched_switch "$SWITCH" && trigger synthetic/wqlab_delay "$DELAYED" && return 0
	record unsupported traced "this kernel refuses the histograms of wakeups: $(refusal)"
	untrace_wakeups
	return 1
}

untrace_wakeups() { # remove the triggers, so that later repetitions do not pay for them
	trigger sched/sched_switch "!$SWITCH"
	trigger sched/sched_waking "!$WAKING"
	trigger synthetic/wqlab_delay "!$DELAYED"
	trigger sched/sched_migrate_task "!$MOVED"
}

remove_instance() {
	[ ! -d "$INSTANCE" ] || rmdir "$INSTANCE" 2>/dev/null || : # a kernel may refuse while its events are in use
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
