#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rt-app: threads that execute a request each period, alone, while each CPU executes works of the lab's module cmwq_load,
# or while fio reads and writes through dm-crypt. rt-app logs how late each request started. A traced repetition counts
# the wakeups and migrations of the threads instead. Plan rt-app-scopes runs it too.
# usage: rt-app.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"
# shellcheck source=../common/dm-crypt.sh
. "$(dirname "$0")/dm-crypt.sh"
# shellcheck source=../common/beside-works.sh
. "$(dirname "$0")/beside-works.sh"
# shellcheck disable=SC2034  # wakeups.sh uses it
TASKS='~ "request*"'
# shellcheck source=../common/wakeups.sh
. "$(dirname "$0")/wakeups.sh"

LOGS=$WORK/requests       # one file for each thread, in memory as all of the device's files are
REQUESTS_JSON=$WORK/requests.json
BESIDE=${BESIDE:-nothing} # in setup, a plan whose scenarios differ in it has none
WORK_SIZE=65536           # works of dm-crypt that are told apart, by address

setup() {
	need rt-app
	if [ "$BESIDE" = dm-crypt ]; then
		need fio dmsetup
		make_crypt_device
	else
		need busybox insmod
		prepare_load
	fi
}

# --- requests ---

threads() { # print the number of threads: THREADS_PER_CPU, as 1/1, for each CPU, and at least one
	n=$(($(nproc) * ${THREADS_PER_CPU%/*} / ${THREADS_PER_CPU#*/}))
	[ "$n" -ge 1 ] || n=1
	echo "$n"
}

describe_requests() { # print rt-app's description of the threads, one a line after that of all
	count=$(threads) separator=
	# A thread keeps its log in a buffer of log_size MiB, 88 bytes for each request, and writes it when it ends.
	printf '{"global": {"duration": -1, "calibration": %d, "default_policy": "SCHED_OTHER", "log_size": %d, "logdir": "%s", "log_basename": "log"}, "tasks": {\n' \
		"$NS_PER_LOOP" $((REQUESTS * 88 / 1048576 + 1)) "$LOGS"
	# The first request of each thread is a period after the start of all; the threads' requests are spread over the period.
	i=0
	while [ "$i" -lt "$count" ]; do
		printf '%s"request%d": {"delay": %d, "loop": 1, "phases": {"request": {"loop": %d, "run": %d, "timer": {"ref": "unique", "period": %d, "mode": "absolute"}}}}' \
			"$separator" "$i" $((PERIOD_US + i * PERIOD_US / count)) "$REQUESTS" "$RUN_US" "$PERIOD_US"
		separator=',
'
		i=$((i + 1))
	done
	printf '}}\n'
}

run_requests() { # threads inherit the timer slack of the process that starts them
	# shellcheck disable=SC2016  # the inner shell's variables
	sh -c 'echo "$1" >"/proc/$$/timerslack_ns"
		[ "$(cat "/proc/$$/timerslack_ns")" = "$1" ] || { echo "the kernel does not accept a timer slack of $1 ns"; exit 1; }
		exec rt-app "$2"' sh "$TIMER_SLACK_NS" "$REQUESTS_JSON"
}

# A line of a log is `IDX PERF RUN PERIOD START END REL_ST SLACK C_DURATION C_PERIOD WU_LAT`, times in us. SLACK is what is
# left of the period when a request ends. WU_LAT is how late the next one starts; without slack rt-app does not sleep.
reduce_requests() { # print lines `THREAD REQUESTS LATE` of the requests that are as requested, and histograms of three digits
	$AWK -v run="$RUN_US" -v period="$PERIOD_US" '
	function digits(us) { return us < 1000 ? us + 0 : int(sprintf("%.2e", us)) }
	function show(name, counts,  key) {
		print "begin\thistogram " name; for (key in counts) printf "%d %d\n", key, counts[key]; print "end\thistogram " name
	}
	/^#/ || NF != 11 || $9 != run || $10 != period { next }
	{ done[$1]++; ran[digits($3)]++ }
	$8 < 0 { late[$1]++; next }
	$8 > 0 || $11 > 0 { woke[digits($11)]++ }
	END {
		show("wakeup_latency_us", woke); show("run_us", ran)
		print "begin\trequests"; for (thread in done) printf "%d %d %d\n", thread, done[thread], late[thread]; print "end\trequests"
	}' "$LOGS"/log-*.log >&3
}

# --- the load through dm-crypt ---

device_ios() { # print how many reads and writes the dm-crypt device has completed
	read -r reads _ _ _ writes _ <"${SYS:-/sys}/dev/block/$(dmsetup info -c --noheadings --separator : -o major,minor "$NAME")/stat"
	echo $((reads + writes))
}

begin_io() { # start fio in the background; return when its first I/O has been completed
	bind=$(job_cpus) || exit 1
	# shellcheck disable=SC2086  # several arguments, or none
	set -- --name=load --filename="$DEVICE" --direct=1 --rw=randrw --bs="${BLOCK_KIB}k" --ioengine=libaio --iodepth="$IODEPTH" \
		--numjobs="$jobs" --size="${region_k}k" --offset_increment="${region_k}k" --group_reporting \
		--rate_iops="$RATE_IOPS" --time_based --runtime=1d $bind
	record fact 'load beside' "fio $*"
	rm -f "$WORK/fio.json"
	first=$(device_ios)
	fio --eta=never --output-format=json --output="$WORK/fio.json" "$@" 3>&- &
	io=$!
	tries=0
	while [ "$(device_ios)" -le "$first" ]; do # fio does not report its first I/O
		tries=$((tries + 1))
		[ "$tries" -le 600 ] || fail infrastructure "fio completed no I/O within 60 s"
		sleep 0.1
	done
}

end_io() { # stop fio, which then writes its result
	kill -TERM "$io" || fail infrastructure "fio ended before the requests did"
	wait "$io" # its exit status is that of the signal; an error is in its result
	[ -s "$WORK/fio.json" ] || fail infrastructure "fio wrote no result"
}

trace_works() { # count on which CPU each work of kcryptd is queued and starts
	define_event wqlab_crypt 'u32 from; u32 to'
	pairs=2048
	while [ "$pairs" -lt $(($(nproc) * $(nproc))) ] && [ "$pairs" -lt 65536 ]; do pairs=$((pairs * 2)); done
	ON_QUEUE="hist:keys=work:crypt_at=common_timestamp.usecs,crypt_from=common_cpu:size=$WORK_SIZE if workqueue ~ \"kcryptd[-/]*\""
	ON_START="hist:keys=work:crypt_wait=common_timestamp.usecs-\$crypt_at,from=\$crypt_from,to=common_cpu:size=$WORK_SIZE:onmatch(workqueue.workqueue_queue_work).wqlab_crypt(\$from,\$to)"
	PLACES="hist:keys=from,to:size=$pairs"
	trigger workqueue/workqueue_queue_work "$ON_QUEUE" && trigger workqueue/workqueue_execute_start "$ON_START" &&
		trigger synthetic/wqlab_crypt "$PLACES" && return 0
	for metric in local_cpu_share local_l3_share local_l3_by_chance; do
		record unsupported "$metric" "this kernel refuses the histogram of dm-crypt's works: $(refusal)"
	done
	return 1
}

untrace_works() { # print lines `QUEUED_ON STARTED_ON COUNT`
	events=$INSTANCE/events
	$AWK '
	/Dropped:/ { lost += $NF }
	/^[{] *from:/ { gsub(/[{}:,]/, " "); n[$2 " " $4] += $6 }
	END {
		print "begin\tpairs"; for (pair in n) print pair, n[pair]; print "end\tpairs"
		if (lost) printf "overrun\t%d\n", lost
	}' "$events/workqueue/workqueue_queue_work/hist" "$events/workqueue/workqueue_execute_start/hist" \
		"$events/synthetic/wqlab_crypt/hist" >&3
	trigger synthetic/wqlab_crypt "!$PLACES"
	trigger workqueue/workqueue_execute_start "!$ON_START"
	trigger workqueue/workqueue_queue_work "!$ON_QUEUE"
}

# --- measuring ---

begin_beside() {
	case $BESIDE in
	load) begin_load ;;
	dm-crypt) begin_io ;;
	esac
}

end_beside() {
	case $BESIDE in
	load) end_load ;;
	dm-crypt) end_io ;;
	esac
}

workload() {
	rm -rf "$LOGS"
	mkdir -p "$LOGS"
	describe_requests >"$REQUESTS_JSON"
	record command "rt-app requests.json"
	record fact threads "$(threads) on $(nproc) CPUs: $REQUESTS requests each, one every $PERIOD_US us; timer slack $TIMER_SLACK_NS ns"
	record fact 'requests.json' "$(head -n 2 "$REQUESTS_JSON")" # all of it is in the boot's output
	begin_beside
	[ "$BESIDE" != dm-crypt ] || ios=$(device_ios) since=$(seconds)
	before=$(cpu_times)
	window begin
	status=0
	run_requests >"$WORK/rt-app.out" 2>&1 3>&- || status=$?
	window end
	after=$(cpu_times)
	if [ "$BESIDE" = dm-crypt ]; then
		record value load_ios $(($(device_ios) - ios))
		record value seconds "$($AWK "BEGIN { print $(seconds) - $since }")"
	fi
	end_beside
	[ "$status" = 0 ] || fail infrastructure "rt-app ended with exit status $status: $(tail -n 1 "$WORK/rt-app.out")"
}

result() { # printed last, so that truncated output has no result
	case $BESIDE in
	load) load_result ;;
	dm-crypt) frame fio <"$WORK/fio.json" ;;
	esac
	reduce_requests
	frame request <"$REQUESTS_JSON"
	rm -rf "$LOGS"
}

measure_traced() {
	trace_wakeups || return 0
	works=
	[ "$BESIDE" != dm-crypt ] || ! trace_works || works=traced
	workload
	reduce_delays
	reduce_moves
	[ -z "$works" ] || untrace_works
	untrace_wakeups
	result
}

measure() {
	case $BESIDE in
	load) load_module cmwq_load || return 0 ;;
	dm-crypt)
		use_settings || return 0
		regions || return 0
		;;
	esac
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		measure_traced
	else
		workload
		cpu_records "$before" "$after"
		result
	fi
	[ "$BESIDE" != dm-crypt ] || check_settings
}

teardown() {
	remove_instance
	if [ "$BESIDE" = dm-crypt ]; then remove_crypt_device; else remove_load; fi
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
