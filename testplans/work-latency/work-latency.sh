#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Single works of one kind of workqueue, from queueing to start and end (the lab's module work_latency): on idle or loaded
# CPUs, near and far, with limited idle states. Plan work-latency-scopes runs it too, with the affinity scope chosen.
# usage: work-latency.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"

SYS=${SYS:-/sys}
LATENCY=${LATENCY:-/sys/kernel/debug/work_latency}
WORKQUEUE=${WORKQUEUE:-/sys/devices/virtual/workqueue/work_latency}
SHALLOW_US=2 # longest exit latency of an idle state that cstate=shallow leaves enabled

send_request() { # REQUEST: write it by busybox, whose echo prints the error; returns after the last work
	busybox echo "$1" >"$LATENCY/start"
}

refuses() { # REQUEST
	! send_request "$1" 2>/dev/null || fail infrastructure "module work_latency accepted the bad request '$1'"
}

last_message() { dmesg | grep 'work_latency: ' | tail -n 1; }

setup() {
	need taskset busybox insmod
	# Each measurement reports whether the module is available.
	load_module work_latency || return 0
	[ -w "$LATENCY/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$LATENCY/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
	[ ! -d "$WORKQUEUE" ] || keep_initial "$WORKQUEUE"
	# Check that the module refuses invalid requests and still accepts a valid one afterwards.
	for bad in "" kind=percpu works=9 "kind=slow works=9" "kind=percpu works=0" "kind=percpu works=9 cpu=100000" \
		"kind=percpu works=9 pace=1" "kind=unbound works=9 target=0" "kind=unbound works=9 batch=2" "kind=percpu works=9 burn_us=9"; do
		refuses "$bad"
	done
	send_request "kind=percpu works=9" || fail infrastructure "module work_latency refuses a good request after bad ones"
}

# --- where works are issued and executed ------------------------------------------------------------------------------

node_of() { # CPU: print its NUMA node
	for node in $(nodes); do
		! listed "$(node_cpus "$node")" | grep -qx "$1" || { echo "$node" && return; }
	done
	echo 0
}

distance() { # CPU CPU: print same_cpu, same_core, same_l3, other_l3 (of one node) or other_node; an L3 is the last-level cache
	[ "$1" != "$2" ] || { echo same_cpu && return; }
	! listed "$(cat "$SYS/devices/system/cpu/cpu$1/topology/thread_siblings_list" 2>/dev/null)" | grep -qx "$2" ||
		{ echo same_core && return; }
	[ "$(node_of "$1")" = "$(node_of "$2")" ] || { echo other_node && return; }
	if listed "$(last_level "$1")" | grep -qx "$2"; then echo same_l3; else echo other_l3; fi
}

find_cpus() { # set `place` to the module's arguments for TARGET; false, with a record, if this device has no such CPUs
	place='cpu=all'
	[ "${TARGET:-local}" != local ] || return 0
	online=$(listed "$(cat "$SYS/devices/system/cpu/online")")
	# The issuer is the last CPU, far from CPU 0, which takes most interrupts.
	issuer=$(echo "$online" | tail -n 1)
	for cpu in $online; do
		[ "$(distance "$issuer" "$cpu")" = "$TARGET" ] || continue
		place="cpu=$issuer target=$cpu"
		record fact "CPUs $TARGET" "issued on CPU $issuer, queued to CPU $cpu"
		return 0
	done
	record unsupported '*' "target=$TARGET: this device has no such CPU, seen from CPU $issuer, whose last-level cache is that of CPUs $(last_level "$issuer")"
	return 1
}

# --- idle states ------------------------------------------------------------------------------------------------------

idle_states() { # print the folder of each idle state of each CPU
	for state in "$SYS"/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*; do [ ! -d "$state" ] || echo "$state"; done
}

is_allowed() { # FOLDER of an idle state: true if SETTING_CSTATE allows it
	case $SETTING_CSTATE in
	poll) [ "$(cat "$1/name")" = POLL ] ;;
	shallow) [ "$(cat "$1/latency")" -le "$SHALLOW_US" ] ;;
	deep) true ;;
	esac
}

limit_idle() { # disable the idle states that SETTING_CSTATE excludes; false, with a record, if the kernel does not
	: >"$WORK/idle-before"
	[ "${SETTING_CSTATE:-default}" != default ] || return 0
	idle_states >"$WORK/idle-states"
	if [ ! -s "$WORK/idle-states" ]; then
		record unsupported '*' "kernel $(uname -r) has no idle states on this device (no cpuidle driver)"
		return 1
	fi
	if [ "$SETTING_CSTATE" = poll ] && ! cat "$SYS"/devices/system/cpu/cpu[0-9]*/cpuidle/state0/name | grep -qx POLL; then
		record unsupported '*' "kernel $(uname -r) has no idle state POLL on this device"
		return 1
	fi
	while read -r state; do
		echo "$state $(cat "$state/disable")" >>"$WORK/idle-before"
		disable=1
		! is_allowed "$state" || disable=0
		echo "$disable" >"$state/disable"
		[ "$(cat "$state/disable")" = "$disable" ] || fail infrastructure "the kernel refuses to write $disable to $state/disable"
	done <"$WORK/idle-states"
}

restore_idle() {
	while read -r state value; do echo "$value" >"$state/disable"; done <"$WORK/idle-before"
}

idle_setting() { # setting|setting_after: record what the idle states' files say now
	[ -n "${SETTING_CSTATE:-}" ] || return 0
	found=$SETTING_CSTATE
	while read -r state _; do
		disable=1
		! is_allowed "$state" || disable=0
		[ "$(cat "$state/disable")" = "$disable" ] || found="changed: $state"
	done <"$WORK/idle-before"
	record "$1" cstate "$found"
}

idle_entries() { # print each idle state and how often all CPUs have entered it
	for state in "$SYS"/devices/system/cpu/cpu0/cpuidle/state[0-9]*; do
		[ -d "$state" ] || continue
		echo "$(cat "$state/name") $(cat "$SYS"/devices/system/cpu/cpu[0-9]*/cpuidle/"${state##*/}"/usage | $AWK '{ n += $1 } END { printf "%.0f", n }')"
	done
}

# --- load -------------------------------------------------------------------------------------------------------------

start_load() { # keep each CPU busy with a process of normal priority
	spinners=
	[ "${LOAD:-idle}" = loaded ] || return 0
	for cpu in $(listed "$(cat "$SYS/devices/system/cpu/online")"); do
		taskset -c "$cpu" sh -c 'while :; do :; done' 3>&- &
		spinners="$spinners $!"
	done
}

stop_load() {
	# shellcheck disable=SC2086  # several process ids
	[ -z "$spinners" ] || { kill $spinners; wait $spinners 2>/dev/null; }
}

# --- settings ---------------------------------------------------------------------------------------------------------

affinity() { # apply SETTING_SCOPE and SETTING_STRICT, if the plan has them; false, with a record, if the kernel does not
	[ -n "${SETTING_SCOPE:-}" ] || return 0
	if [ ! -w "$WORKQUEUE/affinity_scope" ]; then
		if [ "$SETTING_SCOPE,$SETTING_STRICT" = default,default ]; then # nothing to write
			record setting scope default
			record setting strict default
			return 0
		fi
		record unsupported '*' "kernel $(uname -r) has no affinity scopes, which came with Linux 6.5"
		return 1
	fi
	apply "$WORKQUEUE" scope "$SETTING_SCOPE" affinity_scope && apply "$WORKQUEUE" strict "$SETTING_STRICT" affinity_strict
}

affinity_after() {
	[ -n "${SETTING_SCOPE:-}" ] || return 0
	if [ ! -w "$WORKQUEUE/affinity_scope" ]; then
		record setting_after scope default
		record setting_after strict default
		return 0
	fi
	after "$WORKQUEUE" scope "$SETTING_SCOPE" affinity_scope
	after "$WORKQUEUE" strict "$SETTING_STRICT" affinity_strict
}

works() { # print the number of works of the scenario
	if [ "${LONG:-0}" = 1 ]; then echo "$LONG_WORKS"; elif [ "$KIND" = rescuer ]; then echo "$RESCUER_WORKS"; elif [ "${LOAD:-idle}" = loaded ]; then echo "$LOADED_WORKS"; else echo "$WORKS"; fi
}

batch() { # print the module's arguments for works that are queued at once
	if [ "${LONG:-0}" = 1 ]; then
		echo " batch=2 burn_us=$((LONG_TIMES * $(threshold_us)))"
	elif [ "$KIND" = rescuer ]; then
		echo " batch=$RESCUER_BATCH"
	fi
}

threshold_us() { # print after how many us of CPU time a work gives its CPU to others; 10000, the usual value, without such a limit
	found=$(cat "$SYS/module/workqueue/parameters/cpu_intensive_thresh_us" 2>/dev/null)
	if [ "${found:-0}" -gt 0 ]; then echo "$found"; else echo 10000; fi
}

measure() {
	load_module work_latency || return 0
	if ! grep -qx "$KIND" "$LATENCY/kinds"; then
		record unsupported '*' "kernel $(uname -r) has no workqueue of kind $KIND: BH workqueues came with Linux 6.9"
		return 0
	fi
	find_cpus || return 0
	affinity || return 0
	settle
	limit_idle || return 0
	idle_setting setting
	request="kind=$KIND works=$(works) $place gap_us=$GAP_US bytes=$BYTES delay_ms=$DELAY_MS late_ms=$LATE_MS$(batch)"
	[ "${LONG:-0}" = 0 ] || record fact cpu_intensive_thresh_us "$(cat "$SYS/module/workqueue/parameters/cpu_intensive_thresh_us" 2>/dev/null ||
		echo "none: this kernel is older than Linux 6.5")"
	record command "echo '$request' >$LATENCY/start"
	start_load
	window track
	# An instrumented boot has no warm-up: create the workers before its window.
	[ "${WINDOW:-0}" = 0 ] || send_request "kind=$KIND works=20 $place gap_us=$GAP_US bytes=$BYTES"
	idle_entries >"$WORK/idle-entries"
	before=$(cpu_times)
	window begin
	error=$(send_request "$request" 2>&1)
	status=$?
	window end
	cpu_records "$before" "$(cpu_times)"
	stop_load
	idle_entries | $AWK 'NR == FNR { before[$1] = $2; next } { printf "%s %.0f ", $1, $2 - before[$1] }' "$WORK/idle-entries" - >"$WORK/idle-entered"
	[ ! -s "$WORK/idle-entered" ] || record fact "idle states entered $(cell)" "$(cat "$WORK/idle-entered")"
	affinity_after
	idle_setting setting_after
	restore_idle
	if [ "$status" != 0 ]; then
		case $KIND:$error in
		rescuer:*temporarily*) record unsupported '*' "kernel $(uname -r) creates workers even under this memory pressure, so that no rescuer is called" ;;
		*) fail infrastructure "module work_latency refused '$request' ($error): $(last_message)" ;;
		esac
		return 0
	fi
	frame latency <"$LATENCY/result"
	frame pairs <"$LATENCY/pairs"
	frame 'histogram queue_to_start_ns' <"$LATENCY/queue_to_start"
	frame 'histogram start_to_end_ns' <"$LATENCY/start_to_end"
}

teardown() {
	[ ! -d /sys/module/work_latency ] || rmmod work_latency || fail infrastructure "cannot remove module work_latency"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
