#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Switch CPUs off and on while each CPU has works (the lab's module cmwq_load), and count the works that are lost, that
# run on another CPU, and that still do once all CPUs are back.
# usage: hotplug.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

SYS=${SYS:-/sys}
CPUS=$SYS/devices/system/cpu
LOAD=${LOAD:-$SYS/kernel/debug/cmwq_load}
# shellcheck source=../common/beside-works.sh
. "$(dirname "$0")/beside-works.sh"
ENOUGH=$WORK/enough # exists when all cycles are done, or a load has lost works

hotpluggable() { # print the numbers of the CPUs that can be switched off
	for file in "$CPUS"/cpu[0-9]*/online; do
		[ ! -w "$file" ] || [ "$(cat "$file")" != 1 ] || printf '%s\n' "$file"
	done | sed 's/.*cpu\([0-9]*\).online$/\1/' | sort -n
}

setup() {
	need busybox insmod
	hotpluggable >"$WORK/cpus"
	[ -s "$WORK/cpus" ] || lack "this device has no CPU that can be switched off (CONFIG_HOTPLUG_CPU), or only one CPU"
	record fact 'CPUs switched off and on' "$(tr '\n' ',' <"$WORK/cpus" | sed 's/,$//') of $(cat "$CPUS/online")"
	# Each measurement reports whether the module is available.
	load_module cmwq_load || return 0
	[ -w "$LOAD/start" ] || mount -t debugfs debugfs "$SYS/kernel/debug"
	[ -w "$LOAD/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
}

# --- cycles ---

switch() { # CPU 0|1: write it, or count a refusal
	busybox echo "$2" >"$CPUS/cpu$1/online" 2>>"$WORK/refusals"
}

# Who has this folder: a cycle while its CPU is off, or a load that begins. The module gives no works to a CPU that is off.
take() { until mkdir "$WORK/taken" 2>/dev/null; do sleep 0.05; done; }

drop() { rmdir "$WORK/taken"; }

cycle() { # switch the CPUs off and on in turn, CYCLES times, until a load has lost works
	done=0
	while [ "$done" -lt "$CYCLES" ]; do
		while read -r cpu; do
			[ "$done" -lt "$CYCLES" ] && [ ! -e "$ENOUGH" ] || break 2
			take
			switch "$cpu" 0
			sleep "$DWELL_S"
			switch "$cpu" 1
			drop
			sleep "$DWELL_S"
			done=$((done + 1))
		done <"$WORK/cpus"
	done
	echo "$done" >"$WORK/done"
	: >"$ENOUGH"
}

# --- trace ---

workqueue_state() { # print the number of the hotplug state in which workqueues unbind and rebind
	sed -n 's/^ *\([0-9]*\): workqueue:online$/\1/p' "$CPUS/hotplug/states" 2>/dev/null
}

traced() { [ "${TRACE:-0}" = 1 ]; } # else somebody else traces, or the emulator counts

trace_start() {
	traced || return 0
	trace_reset || { record unsupported '*' "this kernel has no tracefs"; return 1; }
	state=$(workqueue_state)
	[ -n "$state" ] || { record unsupported '*' "this kernel names no CPU hotplug state workqueue:online"; return 1; }
	trace_write buffer_size_kb "$TRACE_KIB"
	trace_write trace_clock mono
	trace_write options/hash-ptr 0
	for event in cpuhp_enter cpuhp_exit; do
		trace_write "events/cpuhp/$event/filter" "idx == $state" && trace_write "events/cpuhp/$event/enable" 1 ||
			{ record unsupported '*' "this kernel has no event $event"; return 1; }
	done
	# What is queued and never starts is named. The counts are the module's.
	trace_write events/workqueue/workqueue_queue_work/filter 'workqueue ~ "cmwq_load*"' ||
		{ record unsupported '*' "this kernel's workqueue_queue_work names no workqueue"; return 1; }
	for event in queue_work execute_start; do trace_write "events/workqueue/workqueue_$event/enable" 1; done
	trace_write tracing_on 1
}

# A pass over the trace of one load. Events that the buffer has overwritten are missing: a name may be, and no count is.
reduce_trace() { # print lines `unbind|rebind CPU MICROSECONDS`, and `unstarted FUNCTION CPU`
	$AWK "$TRACE_FUNCTIONS"'
	function number(name) { match($0, name ": *[0-9]+"); return substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) + 0 }
	/^#/ { next }
	/ cpuhp_enter: / { c = number("cpu"); at[c] = time(); what[c] = /offline/ ? "unbind" : "rebind"; next }
	/ cpuhp_exit: / { c = number("cpu"); if (c in at) printf "%s %d %.0f\n", what[c], c, (time() - at[c]) * 1e6; delete at[c]; next }
	/ workqueue_queue_work: / { w = item(); queued[w] = field("function") " " field("cpu"); next }
	/ workqueue_execute_start: / { delete queued[item()]; next }
	END { for (w in queued) print "unstarted " queued[w] }' "$TRACING/trace"
}

# --- measuring ---

load_all_cpus() { # a load that begins while all CPUs are on
	take
	start_load "$DURATION_MS" &
	load=$!
	if traced; then
		until grep -q load_work_fn "$TRACING/trace" || ! kill -0 "$load" 2>/dev/null; do sleep 0.05; done
	else
		sleep 0.2 # nothing else reports that it has begun
	fi
	drop
	wait "$load" || { : >"$ENOUGH"; exit 1; }
}

under_load() { # loads, one after the other, until ENOUGH exists: each result is added to the sums
	while [ ! -e "$ENOUGH" ]; do
		! traced || trace_write trace ''
		load_all_cpus
		cat "$LOAD/result" >>"$WORK/loads"
		keep_log
		: >"$WORK/reduced"
		! traced || reduce_trace >"$WORK/reduced"
		grep 'bind ' "$WORK/reduced" >>"$WORK/binds"
		[ "$($AWK '$1 == "lost" || $1 == "refused" { n += $2 } END { print n }' "$LOAD/result")" -eq 0 ] || {
			sed -n 's/^unstarted //p' "$WORK/reduced" >"$WORK/unstarted"
			: >"$ENOUGH"
		}
	done
}

# The kernel prints lines for each CPU that goes and comes, which would soon fill its log: it is emptied after each load.
keep_log() { dmesg -c >>"$WORK/log"; }

warnings() { # print the number of reports of the kernel: of its code (WARNING, BUG, Oops), lockdep, RCU, hung tasks, workqueues
	grep -cE '(WARNING|BUG): |INFO: (task|rcu|trying)|Oops' "$WORK/log"
}

measure() {
	load_module cmwq_load || return 0
	record command "while :; do echo 'workload=$WORKLOAD burn=S duration_ms=$DURATION_MS cpu=all seed=$SEED' >$LOAD/start; done & for cpu in $(tr '\n' ' ' <"$WORK/cpus"); do echo 0 >$CPUS/cpu\$cpu/online; sleep $DWELL_S; echo 1 >$CPUS/cpu\$cpu/online; sleep $DWELL_S; done"
	settle
	trace_start || return 0
	rm -f "$ENOUGH" "$WORK/done"
	[ ! -d "$WORK/taken" ] || drop
	dmesg -c >/dev/null
	for file in loads binds refusals unstarted log; do : >"$WORK/$file"; done
	window begin
	cycle &
	cycles=$!
	under_load
	wait "$cycles"
	[ -e "$WORK/done" ] || fail infrastructure "the cycles of CPU hotplug ended early"
	window end
	if traced; then
		trace_write tracing_on 0
		trace_write events/enable 0
	fi
	back_online
	# All CPUs are back: each work must run on its own again.
	start_load "$AFTER_MS"
	keep_log
	frame after <"$LOAD/result"
	frame loads <"$WORK/loads"
	frame binds <"$WORK/binds"
	record value cycles "$(cat "$WORK/done")"
	record value refusals "$(wc -l <"$WORK/refusals")"
	record value warnings "$(warnings)"
	[ ! -s "$WORK/refusals" ] || record fact 'refused by the kernel' "$(sort "$WORK/refusals" | uniq | head -n 3 | tr '\n' ';')"
	[ ! -s "$WORK/unstarted" ] || record fact 'lost works' "$(lost_names)"
	traced || return 0
	trace_reset
	trace_write buffer_size_kb 1
}

lost_names() { # the function and CPU of the works that were queued and never started, without counts: the same in each boot
	sort -u "$WORK/unstarted" | $AWK '{ cpus[$1] = cpus[$1] (cpus[$1] == "" ? "" : ",") $2 }
		END { for (name in cpus) printf "%s queued on CPU %s and never started\n", name, cpus[name] }' | sort | tr '\n' ';' | sed 's/;$//'
}

back_online() {
	while read -r cpu; do
		[ "$(cat "$CPUS/cpu$cpu/online")" = 1 ] || switch "$cpu" 1 ||
			fail kernel "CPU $cpu does not come back online: $(tail -n 1 "$WORK/refusals")"
	done <"$WORK/cpus"
}

teardown() {
	: >"$WORK/refusals"
	[ ! -e "$WORK/cpus" ] || back_online
	remove_load
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
