#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How many works threads on several CPUs queue to one unbound workqueue in each affinity scope, once the rate is stable
# (the lab's module queue_rate).
# usage: queue-rate.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"
# shellcheck source=../common/steady-state.sh
. "$(dirname "$0")/steady-state.sh"

SYS=${SYS:-/sys}
RATE=${RATE:-/sys/kernel/debug/queue_rate}
WORKQUEUE=${WORKQUEUE:-/sys/devices/virtual/workqueue/queue_rate}

send_request() { # REQUEST: write it by busybox, whose echo prints the error; returns after the last work
	busybox echo "$1" >"$RATE/start"
}

refuses() { # REQUEST
	! send_request "$1" 2>/dev/null || fail infrastructure "module queue_rate accepted the bad request '$1'"
}

setup() {
	need busybox insmod
	# Each measurement reports whether the module is available.
	load_module queue_rate || return 0
	[ -w "$RATE/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$RATE/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
	for bad in "" intervals=9 "intervals=0 interval_us=9" "intervals=1 interval_us=1000 producers=65535" "intervals=1 interval_us=1000 pace=1"; do
		refuses "$bad"
	done
	send_request "intervals=1 interval_us=1000" || fail infrastructure "module queue_rate refuses a good request after bad ones"
}

has_cpus() { # false, with a record, if this device has fewer CPUs than the scenario has producers
	online=$(listed "$(cat "$SYS/devices/system/cpu/online")" | wc -l)
	[ "$PRODUCERS" != all ] && [ "$PRODUCERS" -gt "$online" ] || return 0
	record unsupported '*' "this device has $online CPUs, and scenario $SCENARIO has $PRODUCERS producers"
	return 1
}

affinity() { # apply SETTING_SCOPE; false, with a record, if the kernel does not
	if [ ! -w "$WORKQUEUE/affinity_scope" ]; then
		record unsupported '*' "kernel $(uname -r) has no affinity scopes, which came with Linux 6.5"
		return 1
	fi
	apply "$WORKQUEUE" scope "$SETTING_SCOPE" affinity_scope
}

# --- figures of the intervals in which the rate is stable -------------------------------------------------------------

percentiles() { # NAME DROPPED WORKS P...: records of percentiles, nearest rank, of lines `INTERVAL NS WORKS` from interval DROPPED on
	name=$1 dropped=$2 works=$3
	shift 3
	$AWK -v first="$dropped" '$1 >= first { print $2, $3 }' "$RATE/$name" | sort -n >"$WORK/histogram"
	counted=$($AWK '{ n += $2 } END { printf "%.0f", n }' "$WORK/histogram")
	[ "$counted" = "$works" ] || fail infrastructure "histogram $name has $counted works, and the intervals have $works"
	for p; do
		if [ $((works * (100 - p))) -lt 100 ]; then
			record unsupported "${name}_p${p}_ns" "p$p needs $((100 / (100 - p))) works, and there were $works"
		else
			record value "${name}_p${p}_ns" "$($AWK -v share="$p" -v n="$works" '{ seen += $2 } seen * 100 >= share * n { print $1; exit }' "$WORK/histogram")"
		fi
	done
}

figures() { # records of the last run
	steady_rate works/s "$RATE/intervals"
	# shellcheck disable=SC2086,SC2154  # five numbers, of steady_rate
	set -- $steady
	record value works_lost "$($AWK '$1 == "lost" { print $2 }' "$RATE/result")"
	record value producers "$($AWK '$1 == "producers" { print $2 }' "$RATE/result")"
	record value operations "$5"
	[ "$3" != 0 ] || return 0
	record value intervals_dropped "$1"
	record value rate_unstable $((1 - $2))
	record value items_per_s "$($AWK -v works="$3" -v ns="$4" 'BEGIN { printf "%.3f", 1e9 * works / ns }')"
	percentiles queue "$1" "$3" 50 90 95 99
	percentiles queue_to_start "$1" "$3" 50 95 99
}

measure() {
	load_module queue_rate || return 0
	has_cpus || return 0
	affinity || return 0
	settle
	where="producers=$PRODUCERS first=$FIRST"
	request="$where intervals=$INTERVALS interval_us=$INTERVAL_US"
	window track
	if [ "${WINDOW:-0}" = 0 ]; then
		window begin
	else
		# The module marks the window, so that the threads' start and end are not in it. There is no warm-up: create the workers before.
		send_request "$where intervals=1 interval_us=$INTERVAL_US"
		request="$request mark=1"
	fi
	record command "echo '$request' >$RATE/start"
	before=$(cpu_times)
	error=$(send_request "$request" 2>&1)
	status=$?
	[ "${WINDOW:-0}" != 0 ] || window end
	cpu_records "$before" "$(cpu_times)"
	after "$WORKQUEUE" scope "$SETTING_SCOPE" affinity_scope
	[ "$status" = 0 ] || fail infrastructure "module queue_rate refused '$request' ($error): $(dmesg | grep 'queue_rate: ' | tail -n 1)"
	record fact "CPUs of $SCENARIO" "$($AWK '$1 == "cpus" { print $2 }' "$RATE/result")"
	figures
}

teardown() {
	[ ! -d /sys/module/queue_rate ] || rmmod queue_rate || fail infrastructure "cannot remove module queue_rate"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
