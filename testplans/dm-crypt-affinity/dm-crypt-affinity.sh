#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dm-crypt on a scratch device (or on a memory disk when the device has none), random reads and writes by
# a number of jobs that follows from the CPUs, each in a region of its own, with the affinity scope of the kcryptd
# workqueue chosen. Plan fan-out runs it too.
# usage: dm-crypt-affinity.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/knobs.sh
. "$(dirname "$0")/knobs.sh"
# shellcheck source=../common/dm-crypt.sh
. "$(dirname "$0")/dm-crypt.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"
# shellcheck source=../common/steady-state.sh
. "$(dirname "$0")/steady-state.sh"

setup() {
	need fio dmsetup
	make_crypt_device
}

workload() { # TOTAL_IOS (0: RUNTIME_S seconds, or RUNTIME_MS milliseconds with a log of each I/O)
	bind=$(job_cpus) || exit 1
	# shellcheck disable=SC2086  # several arguments, or none
	set -- "$1" --name=iops-test-job --filename="$DEVICE" --direct=1 --rw=randrw --bs=32k --ioengine=libaio --iodepth="${IODEPTH:-64}" \
		--numjobs="$jobs" --size="${region_k}k" --offset_increment="${region_k}k" --group_reporting --verify="$VERIFY" \
		$bind
	if [ "$1" -gt 0 ]; then
		each=$(($1 / jobs))
		[ "$each" -ge 1 ] || each=1
		[ "$each" -le $((region_k / 32)) ] || each=$((region_k / 32))
		set -- "$@" --number_ios="$each"
	elif [ "${RUNTIME_MS:-0}" -gt 0 ]; then
		rm -f "$WORK"/ios_bw.*.log
		set -- "$@" --runtime="${RUNTIME_MS}ms" --time_based --write_bw_log="$WORK/ios" --log_unix_epoch=1
	else
		set -- "$@" --runtime="$RUNTIME_S" --time_based
	fi
	shift
	run_fio "$@"
}

trace_start() { # WORKQUEUE
	trace_works traced "workqueue == \"$1\"" workqueue/workqueue_execute_end || return 1
	trace_write events/sched/sched_migrate_task/enable 1 && MIGRATIONS=1
	trace_idle && IDLE=1
	trace_write tracing_on 1
}

# Each queued item's CPU and time are kept under its work pointer until it starts; what starts without having been
# queued on this workqueue belongs to another one.
reduce_trace() {
	mask='' confined='' online=''
	if [ "${IDLE:-0}" = 1 ]; then
		mask=$(cat "$folder/cpumask") online=$(cat "${SYS:-/sys}/devices/system/cpu/online")
		[ "$(cat "$folder/affinity_strict")" != 1 ] || confined=$(pods)
	fi
	$AWK -v migrations="${MIGRATIONS:-0}" -v idle="${IDLE:-0}" -v mask="$mask" -v pods="$confined" -v online="$online" \
		"$TRACE_FUNCTIONS $IDLE_FUNCTIONS"'
	BEGIN { idle_setup() }
	/^#/ { next }
	/ sched_switch: / { idle_switch(); next }
	/ workqueue_activate_work: / { idle_activate(item()); next }
	/ workqueue_queue_work: / { queue(item()); queued++; next }
	/ workqueue_execute_start: / {
		w = item()
		if (!(w in from)) next
		pair = from[w] " " cpu(); n[pair]++; started++
		wait[waited_us(w)]++
		idle_start(w); end_wait(w); running[w] = pair; since[w] = time(); next
	}
	/ workqueue_execute_end: / {
		w = item()
		if (w in running) { ns[running[w]] += (time() - since[w]) * 1e9; delete running[w] }
		next
	}
	/ sched_migrate_task: / { moved++ }
	END {
		if (unreadable(0)) exit
		print "begin\tpairs"; for (p in n) printf "%s %d %.0f\n", p, n[p], ns[p]; print "end\tpairs"
		print_counts("histogram queue_to_start_us", wait)
		if (idle) idle_records()
		printf "value\titems\t%d\n", started; printf "fact\titems_queued_not_started\t%d\n", queued - started
		if (migrations) printf "value\tmigrations\t%d\n", moved
		else print "unsupported\tmigrations\tthis kernel has no event sched_migrate_task"
	}' "$TRACING/trace" >&3
}

# --- I/Os while their rate is stable, where a run takes milliseconds ---------------------------------------------------

fio_intervals() { # N RUN_MS LOG...: lines `NUMBER NS IOS` of N intervals in which every job issued I/Os, from the jobs' logs
	intervals=$1 run=$2
	shift 2
	# Numbers stay small, because mawk's strings of large ones are rounded. The first millisecond of the last job is not whole.
	$AWK -F, -v n="$intervals" -v run="$run" '
		NR == 1 { base = $1 }
		FNR == 1 && (NR == 1 || $1 - base >= from) { from = $1 - base + 1 }
		FNR == 1 && (NR == 1 || $1 - base + run < to) { to = $1 - base + run }
		{ ios[$1 - base]++ }
		END {
			ms = int((to - from) / n)
			for (i = 0; i < n && ms > 0; i++) {
				done = 0
				for (j = 0; j < ms; j++) done += ios[from + i * ms + j]
				printf "%d %.0f %d\n", i, ms * 1e6, done
			}
		}' "$@"
}

steady_records() { # records of the I/Os of the last run, without the fill and the drain of the queues
	fio_intervals "$INTERVALS" "$RUNTIME_MS" "$WORK"/ios_bw.*.log >"$WORK/intervals"
	[ -s "$WORK/intervals" ] || fail infrastructure "fio's jobs ran together for less than $INTERVALS ms"
	steady_rate I/O/s "$WORK/intervals"
	# shellcheck disable=SC2086,SC2154  # five numbers, of steady_rate
	set -- $steady
	record value steady_bytes $(($3 * 32768))
	record value steady_ns "$4"
}

measure() {
	use_settings || return 0
	regions || return 0
	settle
	if [ "${TRACE:-0}" = 1 ] && [ -z "$folder" ]; then
		record unsupported traced "kernel $(uname -r) does not name kcryptd in sysfs, so that its works cannot be told apart"
	elif [ "${TRACE:-0}" = 1 ]; then
		if trace_start "$(basename "$folder" | tr '!' '/')"; then
			workload "$TRACED_IOS"
			trace_end
		fi
	else
		before=$(cpu_times)
		workload "$TOTAL_IOS"
		cpu_records "$before" "$(cpu_times)"
		[ "$TOTAL_IOS" -gt 0 ] || [ "${RUNTIME_MS:-0}" = 0 ] || steady_records
	fi
	check_settings
}

teardown() { remove_crypt_device; }

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
