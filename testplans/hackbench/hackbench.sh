#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hackbench: groups of tasks send each other messages over pipes or sockets, alone or while each CPU executes works of the
# lab's module cmwq_load. A traced repetition takes the time from the wakeup of each task to its start.
# usage: hackbench.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/beside-works.sh
. "$(dirname "$0")/beside-works.sh"
# shellcheck disable=SC2034  # wakeups.sh uses it
TASKS='== "hackbench"'
# shellcheck source=../common/wakeups.sh
. "$(dirname "$0")/wakeups.sh"

groups() { # print the number of groups: GROUPS_PER_CPU, as 1/2, for each CPU, and at least one
	n=$(($(nproc) * ${GROUPS_PER_CPU%/*} / ${GROUPS_PER_CPU#*/}))
	[ "$n" -ge 1 ] || n=1
	echo "$n"
}

setup() {
	need hackbench busybox insmod
	prepare_load
}

workload() {
	set -- -g "$(groups)" -f "$FDS" -l "$LOOPS" -s "$SIZE"
	[ "$TRANSPORT" = socket ] || set -- "$@" --pipe
	record command "hackbench $*"
	record fact groups "$(groups) on $(nproc) CPUs, each of $FDS senders and $FDS receivers"
	[ "$BESIDE" != load ] || begin_load
	before=$(cpu_times)
	window begin
	status=0
	hackbench "$@" >"$WORK/hackbench.out" 2>&1 3>&- || status=$?
	window end
	after=$(cpu_times)
	[ "$BESIDE" != load ] || end_load
	[ "$status" = 0 ] || fail infrastructure "hackbench ended with exit status $status: $(tail -n 1 "$WORK/hackbench.out")"
}

result() { # printed last, so that truncated output has no result
	[ "$BESIDE" != load ] || load_result
	frame hackbench <"$WORK/hackbench.out"
}

measure() {
	if [ "$BESIDE" = load ]; then load_module cmwq_load || return 0; fi
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_wakeups || return 0
		workload
		reduce_delays
		reduce_moves
		untrace_wakeups
	else
		workload
		cpu_records "$before" "$after"
	fi
	result
}

teardown() {
	remove_instance
	remove_load
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
