#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Works under the limit max_active of workqueues (the lab's module max_active): how many execute at once, whether chains of
# works end, and how workqueues of one worker pool share it.
# usage: max-active.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

SYS=${SYS:-/sys}
ACTIVE=${ACTIVE:-/sys/kernel/debug/max_active}
QUEUES=$SYS/devices/virtual/workqueue

send_request() { # REQUEST: write it by busybox, whose echo prints the error; returns after the last work
	busybox echo "$1" >"$ACTIVE/start"
}

refuses() { # REQUEST
	! send_request "$1" 2>/dev/null || fail infrastructure "module max_active accepted the bad request '$1'"
}

last_message() { dmesg | grep 'max_active: ' | tail -n 1; }

count_of() { $AWK -v name="$1" '$1 == name { print $2 }' "$ACTIVE/result"; } # NAME: print a count of the last request

notices() { # COUNT REQUEST: fail unless the module counts something that the request makes wrong on purpose
	send_request "$2" || fail infrastructure "module max_active refuses '$2': $(last_message)"
	# A kernel that ignores the limit is measured, and not refused here.
	[ "$(count_of "$1")" -gt 0 ] || [ "$(count_of excess)" -gt 0 ] ||
		fail infrastructure "module max_active counts no $1 in '$2', which has some"
}

setup() {
	need busybox insmod
	# Each measurement reports whether the module is available.
	load_module max_active || return 0
	[ -w "$ACTIVE/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$ACTIVE/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
	# Check that the module refuses invalid requests, and that it notices a chain that is too deep for its limit and
	# limits that are lower or higher than expected.
	for bad in "" shape=fan kind=percpu "shape=fan kind=slow" "shape=tree kind=percpu" "shape=fan kind=percpu works=0" \
		"shape=fan kind=percpu max_active=100000" "shape=fan kind=percpu pace=1" "shape=fair kind=percpu queues=1"; do
		refuses "$bad"
	done
	notices deadlocks "shape=nested kind=percpu max_active=2 depth=16 fillers=0 rounds=1 cpus=1 stall_ms=300"
	notices excess "shape=fan kind=percpu max_active=16 limit=1 works=16 steps=0 cpus=1 stall_ms=300"
	notices deficit "shape=fan kind=percpu max_active=2 limit=16 works=16 steps=0 cpus=1 stall_ms=300"
	send_request "shape=nested kind=percpu max_active=1 rounds=1 fillers=0" ||
		fail infrastructure "module max_active refuses a good request after bad ones"
	send_request "shape=fan kind=percpu works=1 steps=0" || fail infrastructure "module max_active refuses the default limit"
	cat "$QUEUES/max_active-0/max_active" >"$WORK/default-limit"
}

# --- what the limit applies to ----------------------------------------------------------------------------------------

allowed_cpus() { # FILE: print how many CPUs its mask has, as 000000ff,ffffffff
	$AWK '{ gsub(/,/, ""); mask = tolower($0); for (i = 1; i <= length(mask); i++) {
		digit = index("0123456789abcdef", substr(mask, i, 1)) - 1
		while (digit > 0) { n += digit % 2; digit = int(digit / 2) } } } END { printf "%d", n }' "$1"
}

find_limit() { # set `spans`; false, with a record, if the limit of this workqueue cannot be said
	spans=0
	[ "$KIND" = unbound ] || return 0
	online=$(listed "$(cat "$SYS/devices/system/cpu/online")" | wc -l)
	allowed=$(allowed_cpus "$QUEUES/cpumask")
	if [ "${allowed:-0}" -lt "$online" ]; then
		record unsupported '*' "unbound works may use $allowed of $online CPUs here, and the nodes' shares of max_active depend on which"
		return 1
	fi
	scope=$(cat "$SYS/module/workqueue/parameters/default_affinity_scope" 2>/dev/null)
	# A pool with CPUs of several nodes has a limit of its own, that of the system.
	# shellcheck disable=SC2046  # a list of numbers
	set -- $(nodes)
	[ "$scope" != system ] || [ $# = 1 ] || spans=1
}

limit_setting() { # setting|setting_after: record max_active as the kernel reports it for each workqueue of the last request
	[ -n "${SETTING_MAX_ACTIVE:-}" ] || return 0
	found=$(cat "$QUEUES"/max_active-*/max_active | sort -u | tr '\n' ' ')
	case $SETTING_MAX_ACTIVE in
	default)
		record fact 'max_active by default' "${found% }"
		record "$1" max_active default
		;;
	*) record "$1" max_active "${found% }" ;;
	esac
}

fan_works() { # print how many works fan queues on each CPU: a sixth more than the limit, if that is more than WORKS
	[ "$limit" != 0 ] || limit=$(cat "$WORK/default-limit")
	works=$((limit * 7 / 6))
	if [ "$works" -gt "$WORKS" ]; then echo "$works"; else echo "$WORKS"; fi
}

request() { # SHAPE: print the module's request for a shape
	case ${SETTING_MAX_ACTIVE:-default} in default) limit=0 ;; *) limit=$SETTING_MAX_ACTIVE ;; esac
	case $1 in
	fan) arguments="works=$(fan_works) steps=$STEPS hold_us=$HOLD_US" ;;
	nested | crossed) arguments="rounds=$ROUNDS fillers=$FILLERS hold_us=$HOLD_US" ;;
	fair) arguments="queues=$POOL_QUEUES works=$GREEDY_WORKS polite=$POLITE_WORKS burn_us=$BURN_US" ;;
	shares) arguments="queues=$POOL_QUEUES works=$SHARED_WORKS burn_us=$BURN_US" ;;
	esac
	echo "shape=$1 kind=$KIND max_active=$limit cpus=$CPUS spans=$spans stall_ms=$STALL_MS $arguments"
}

perform() { # SHAPE: send its request and keep its result
	error=$(send_request "$(request "$1")" 2>&1) ||
		fail infrastructure "module max_active refused '$(request "$1")' ($error): $(last_message)"
	cp "$ACTIVE/result" "$WORK/result-$1"
	cp "$ACTIVE/groups" "$WORK/groups-$1"
}

measure() {
	load_module max_active || return 0
	find_limit || return 0
	settle
	shapes=$SHAPE
	[ "$SHAPE" != fair ] || shapes='fair shares'
	command=
	for shape in $shapes; do command="${command:+$command; }echo '$(request "$shape")' >$ACTIVE/start"; done
	record command "$command"
	window track
	# An instrumented boot has no warm-up: create workers before its window.
	[ "${WINDOW:-0}" = 0 ] || send_request "shape=fan kind=$KIND works=16"
	before=$(cpu_times)
	window begin
	for shape in $shapes; do perform "$shape"; done
	window end
	cpu_records "$before" "$(cpu_times)"
	limit_setting setting
	limit_setting setting_after
	record fact "max_active of $KIND workqueues" "applies to $(sed -n 's/^applies_to //p' "$ACTIVE/result")"
	for shape in $shapes; do
		frame "$shape" <"$WORK/result-$shape"
		frame "groups $shape" <"$WORK/groups-$shape"
	done
}

teardown() {
	[ ! -d /sys/module/max_active ] || rmmod max_active || fail infrastructure "cannot remove module max_active"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
