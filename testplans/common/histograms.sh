# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Histograms of the tracer: how long work items waited from queueing to start, and where they started.
# Sourced by tracer.sh (traced boots) and by monitor.sh (traced repetitions of measured boots), each with its own INSTANCE
# of the tracer, so that the plan's own tracing sees nothing of them. POSIX sh.
# shellcheck disable=SC2016,SC2034  # variables in the triggers are the kernel's, $0 is awk's; both scripts use the triggers

TRACING=${TRACING:-/sys/kernel/tracing}
if command -v mawk >/dev/null 2>&1; then AWK=mawk; elif command -v gawk >/dev/null 2>&1; then AWK=gawk; else AWK='awk'; fi

# Different work items that are kept, by address. The kernel allocates all entries at once.
ITEMS=${ITEMS:-32768}
QUEUE=workqueue/workqueue_queue_work
START=workqueue/workqueue_execute_start
WAITED=synthetic/wqlab_queued
ON_QUEUE="hist:keys=work:queued_at=common_timestamp.usecs,queued_on=common_cpu:size=$ITEMS"
ON_START='hist:keys=work:waited=common_timestamp.usecs-$queued_at,from=$queued_on,to=common_cpu,started_at=common_timestamp.usecs'
ON_START="$ON_START:size=$ITEMS"':onmatch(workqueue.workqueue_queue_work).wqlab_queued(function,$waited,$from,$to)'
TIMES='hist:keys=function.sym,us.log2:vals=us:size=8192'

define() { # EVENT FIELDS: define a synthetic event once per boot
	grep -q "^$1[[:space:]]" "$TRACING/synthetic_events" 2>/dev/null || echo "$1 $2" >>"$TRACING/synthetic_events"
}

define_waited() { define wqlab_queued 'u64 function; u64 us; u32 from; u32 to'; }

write_trigger() { { echo "$2" >>"$INSTANCE/events/$1/trigger"; } 2>/dev/null; }

trigger() { # SYSTEM/EVENT TEXT: false if the kernel refuses it
	[ -e "$INSTANCE/events/$1/trigger" ] && write_trigger "$1" "$2" && echo "$1 $2" >>"$WORK/triggers"
}

# Remove all triggers, so that what runs next runs without them and a further repetition can define their variables again.
# A trigger cannot be removed while another one refers to its variables: the last comes first.
remove_triggers() {
	[ ! -e "$WORK/triggers" ] || $AWK '{ line[NR] = $0 } END { for (i = NR; i; i--) print line[i] }' "$WORK/triggers" |
		while read -r event text; do write_trigger "$event" "!$text"; done
	rm -f "$WORK/triggers"
	rmdir "$INSTANCE" 2>/dev/null
}

refusal() {
	reason=$(grep -a 'error:' "$INSTANCE/error_log" "$TRACING/error_log" 2>/dev/null | tail -n 1 | sed 's/.*error: //')
	echo "${reason:-this kernel has no such event}"
}

histogram() { # SYSTEM/EVENT AWK_PROGRAM: print the rows of an event's histograms
	[ ! -e "$INSTANCE/events/$1/hist" ] || $AWK "$reading $2" "$INSTANCE/events/$1/hist"
}

# Each line of a histogram is `{ KEY: VALUE, ... } hitcount: N  FIELD: SUM`. `Dropped` counts events without an entry.
# The line of the trigger, a comment, names hitcount too.
reading='
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
	function place(  key) {
		key = symbol() "\t" field("from")
		places[key] = places[key] (places[key] == "" ? "" : ",") field("to") ":" hits()
	}
	/Dropped:/ { lost += $NF }
	END {
		for (key in count) printf "%s\t%.0f\t%.0f\t%s\n", key, count[key], total[key], buckets[key]
		for (key in places) printf "placed\t%s\t%s\n", key, places[key]
		if (lost) printf "note\ta histogram was full: %d events are not counted\n", lost
	}'

print_waits() { # print lines `queued FUNCTION COUNT TOTAL_US EXPONENT:COUNT,...` and `placed FUNCTION FROM_CPU TO_CPU:COUNT,...`
	histogram "$WAITED" '/^{.*hitcount:/ { if (field("from") != "") place(); else add("queued", symbol()) }'
	for event in "$QUEUE" "$START"; do histogram "$event" ''; done
}
