#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Isolate half of the CPUs from unbound workqueues while dm-crypt queues works, and count the works that start there
# nevertheless; then let a task spin on an isolated CPU and count what interrupts it.
# usage: isolation.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

SYS=${SYS:-/sys}
PROC=${PROC:-/proc}
MASK=$SYS/devices/virtual/workqueue/cpumask
CGROUPS=$SYS/fs/cgroup
GROUP=$CGROUPS/wqlab-isolation
NAME=wqlab-isolation
DEVICE=/dev/mapper/$NAME
LONGEST_S=7000 # fio is ended before; a limit in case that nobody does

# --- CPUs ---

online() { cat "$SYS/devices/system/cpu/online"; }

chosen_cpus() { # print the CPUs to isolate, from ISOLATED: a list, or `half`: the last half of those online, as 2,3
	if [ "$ISOLATED" != half ]; then
		listed "$ISOLATED" | join_cpus
		return
	fi
	count=$(listed "$(online)" | wc -l)
	listed "$(online)" | tail -n $((count / 2)) | join_cpus
}

join_cpus() { tr '\n' ',' | sed 's/,$//'; }

without() { # LIST LIST: print the CPUs of the first list that are not in the second
	listed "$2" >"$WORK/removed"
	listed "$1" | grep -vxF -f "$WORK/removed" | join_cpus
}

hex_mask() { # LIST: print it as the kernel's bitmaps are written: hexadecimal digits, a comma after each 32 bits
	listed "$1" | $AWK 'BEGIN { last = 0 } { on[int($1 / 4)] += 2 * ($1 % 4 == 1) + 4 * ($1 % 4 == 2) + 8 * ($1 % 4 == 3) + ($1 % 4 == 0)
			if (int($1 / 4) > last) last = int($1 / 4) }
		END { for (n = last; n >= 0; n--) printf "%s%s", substr("0123456789abcdef", on[n] + 1, 1), (n && n % 8 == 0) ? "," : "" }'
}

overlap() { # MASK MASK: true if they have a CPU in common
	echo "$1 $2" | tr -d ',' | $AWK '{
		for (back = 0; back < length($1) && back < length($2); back++) {
			one = digit($1, back); other = digit($2, back)
			for (bit = 8; bit >= 1; bit /= 2) if (int(one / bit) % 2 && int(other / bit) % 2) found = 1
		}
		exit !found
	}
	function digit(mask, back) { return index("0123456789abcdef", substr(mask, length(mask) - back, 1)) - 1 }'
}

# --- the four means of isolation ---

available() { # false, with a record, if this kernel or boot does not have the scenario's means
	case $MEANS in
	cpumask)
		[ -w "$MASK" ] || { record unsupported '*' "kernel $(uname -r) has no cpumask of all unbound workqueues in sysfs"; return 1; }
		chosen_cpus >"$WORK/isolated"
		;;
	cpuset)
		[ -e "$MASK"_isolated ] ||
			{ record unsupported '*' "kernel $(uname -r) does not take isolated partitions from its workqueues (Linux 6.8 does)"; return 1; }
		make_group || return 1
		chosen_cpus >"$WORK/isolated"
		cat "$WORK/isolated" >"$GROUP/cpuset.cpus" || fail infrastructure "the kernel refuses CPUs $(cat "$WORK/isolated") for a cpuset"
		;;
	isolcpus) booted_with isolated isolcpus=domain,managed_irq CONFIG_CPU_ISOLATION || return 1 ;;
	nohz_full) booted_with nohz_full nohz_full= CONFIG_NO_HZ_FULL || return 1 ;;
	*) fail infrastructure "unknown means of isolation '$MEANS'" ;;
	esac
	isolated=$(cat "$WORK/isolated")
	housekeeping=$(without "$(online)" "$isolated")
	[ -n "$isolated" ] && [ -n "$housekeeping" ] && return 0
	record unsupported '*' "of CPUs $(online), ${isolated:-none} would be isolated and ${housekeeping:-none} left for works"
	return 1
}

booted_with() { # FILE ARGUMENT OPTION: keep the CPUs that this boot isolates; false, with a record, if there are none
	found=$(cat "$SYS/devices/system/cpu/$1" 2>/dev/null)
	case $found in
	'' | *'(null)'*) ;;
	*)
		listed "$found" | join_cpus >"$WORK/isolated"
		return 0
		;;
	esac
	if grep -q "${2%%=*}=" "$PROC/cmdline"; then
		record unsupported '*' "kernel $(uname -r) was booted with ${2%%=*} and isolates no CPU: it lacks $3 (recipe isolation), or the list names no CPU"
	else
		record unsupported '*' "this device is booted without ${2%%=*}: add it to boot.kernel_arguments of a device type, and build with $3 (recipe isolation)"
	fi
	return 1
}

make_group() { # false, with a record, if this kernel has no cpusets of cgroup v2
	[ -e "$CGROUPS/cgroup.controllers" ] || mount -t cgroup2 cgroup2 "$CGROUPS" 2>/dev/null
	if ! grep -qw cpuset "$CGROUPS/cgroup.controllers" 2>/dev/null; then
		record unsupported '*' "this kernel has no cpuset controller in cgroup v2 (CONFIG_CPUSETS)"
		return 1
	fi
	echo +cpuset >"$CGROUPS/cgroup.subtree_control" && mkdir -p "$GROUP" || fail infrastructure "cannot make a cgroup with a cpuset"
}

isolate() {
	mark isolating
	case $MEANS in
	cpumask) echo "$masked" >"$MASK" || fail infrastructure "the kernel refuses $masked as cpumask of its unbound workqueues" ;;
	cpuset) echo isolated >"$GROUP/cpuset.cpus.partition" || fail infrastructure "the kernel refuses the partition" ;;
	esac
	mark isolated
}

release() {
	mark releasing
	case $MEANS in
	cpumask) echo "$whole" >"$MASK" || fail infrastructure "the kernel refuses $whole as cpumask of its unbound workqueues" ;;
	cpuset) echo member >"$GROUP/cpuset.cpus.partition" || fail infrastructure "the kernel refuses to end the partition" ;;
	esac
	mark released
}

obeyed() { # false, with a record, unless the kernel says that the CPUs are isolated
	if [ "$MEANS" = cpuset ] && read -r state <"$GROUP/cpuset.cpus.partition" && [ "$state" != isolated ]; then
		record unsupported '*' "kernel $(uname -r) makes no isolated partition of CPUs $isolated: it is '$state'"
		return 1
	fi
	# nohz_full alone excludes the CPUs too, and isolcpus without `domain` does not.
	[ -r "$MASK" ] || return 0
	overlap "$(cat "$MASK")" "$(hex_mask "$isolated")" || return 0
	record unsupported '*' "with $MEANS, kernel $(uname -r) has cpumask $(cat "$MASK") for unbound workqueues, which includes some of CPUs $isolated"
	return 1
}

# --- load and trace ---

setup() {
	need fio dmsetup taskset
	disk=$(memory_disk "$NAME" "$DISK_MIB" "$(nproc)") || exit 1
	key=$(od -An -v -N64 -tx1 /dev/urandom | tr -d ' \n')
	dmsetup create "$NAME" --table "0 $(blockdev --getsz "$disk") crypt aes-xts-plain64 $key 0 $disk 0" ||
		fail infrastructure "dmsetup refuses a dm-crypt table"
	[ -b "$DEVICE" ] || dmsetup mknodes
	[ -b "$DEVICE" ] || fail infrastructure "no device node $DEVICE"
	record fact disk "null_blk memory_backed, $DISK_MIB MiB, under dm-crypt"
}

traced() { [ "${TRACE:-0}" = 1 ]; } # else somebody else traces, or the emulator counts

mark() { ! traced || trace_write trace_marker "wqlab $1"; }

trace_start() { # false, with a record, if this kernel cannot trace workqueues
	traced || return 0
	trace_reset || { record unsupported '*' "this kernel has no tracefs"; return 1; }
	for event in workqueue/workqueue_queue_work workqueue/workqueue_execute_start sched/sched_switch; do
		[ -d "$TRACING/events/$event" ] || { record unsupported '*' "this kernel has no event $event"; return 1; }
	done
	trace_write buffer_size_kb "$TRACE_KIB"
	trace_write trace_clock mono
	trace_write options/hash-ptr 0
	for event in queue_work execute_start; do trace_write "events/workqueue/workqueue_$event/enable" 1; done
	trace_write tracing_on 1
}

load_start() { # queue works from the housekeeping CPUs: one for each write, in bursts, so that several run at once
	set -- --name=load --filename="$DEVICE" --rw=randwrite --bs=4k --size="${DISK_MIB}m" --direct=1 --ioengine=libaio \
		--iodepth=16 --iodepth_batch=8 --rate_iops="$RATE" --cpus_allowed="$housekeeping" --time_based --runtime="$LONGEST_S"
	record command "fio $*"
	# The process that waits for fio's job must not run on the isolated CPUs either.
	taskset -c "$housekeeping" fio --output="$WORK/fio.out" "$@" 3>&- &
	load=$!
}

load_stop() {
	kill -0 "$load" 2>/dev/null || fail infrastructure "fio ended early: $(tail -n 1 "$WORK/fio.out")"
	kill -TERM "$load"
	wait "$load"
}

change_masks() { # isolate and release, CHANGES times
	sleep "$DWELL_S" # what is unbound may run anywhere meanwhile: the control
	n=0
	while [ "$n" -lt "$CHANGES" ]; do
		n=$((n + 1))
		isolate
		sleep "$DWELL_S"
		[ "$n" -gt 1 ] || obeyed || { release; return 1; }
		release
		sleep "$DWELL_S"
	done
}

# --- a task that spins on an isolated CPU ---

interrupts() { # CPU: print its interrupts, and those of the local timer, since boot
	$AWK -v cpu="CPU$1" 'NR == 1 { for (n = 1; n <= NF; n++) if ($n == cpu) column = n + 1; next }
		{ all += $column } $1 == "LOC:" || /arch_timer/ { ticks += $column }
		END { printf "%.0f %.0f\n", all, ticks }' "$PROC/interrupts"
}

preempted() { $AWK '$1 == "nonvoluntary_ctxt_switches:" { print $2 }' "$PROC/$1/status"; }

spin() { # let a task spin for SPIN_S seconds on the first isolated CPU, and record what interrupted it
	cpu=${isolated%%,*}
	# shellcheck disable=SC2016  # expanded by the inner shell
	sh -c '[ "$1" != cpuset ] || echo $$ >"$2/cgroup.procs"; exec taskset -c "$3" sh -c "while :; do :; done"' \
		spin "$MEANS" "$GROUP" "$cpu" 3>&- &
	task=$!
	tries=0
	until [ "$(spinner_cpus)" = "$cpu" ]; do # nothing reports that taskset has bound it
		tries=$((tries + 1))
		[ "$tries" -le 100 ] || fail infrastructure "no task can be bound to isolated CPU $cpu: it may run on ${isolated:-none}"
		sleep 0.1
	done
	if traced; then
		trace_write events/sched/sched_switch/filter "prev_pid == $task"
		trace_write events/sched/sched_switch/enable 1
	fi
	# shellcheck disable=SC2046  # two numbers each
	set -- $(interrupts "$cpu") "$(preempted "$task")"
	mark spinning
	sleep "$SPIN_S"
	mark spun
	# shellcheck disable=SC2046
	set -- "$@" $(interrupts "$cpu") "$(preempted "$task")"
	! traced || trace_write events/sched/sched_switch/enable 0
	kill "$task"
	wait "$task"
	record value interrupts $(($4 - $1))
	record value ticks $(($5 - $2))
	record value preemptions $(($6 - $3))
}

spinner_cpus() { $AWK '$1 == "Cpus_allowed_list:" { print $2 }' "$PROC/$task/status" 2>/dev/null; }

# --- counting ---

# States of the trace: free, changing (the write is under way), isolated. A work counts as started on an isolated CPU if
# it was queued GRACE_US after the change or later: who has looked the pool up before the change may still queue to it.
# Works queued before may start late, which is how long a change takes to hold.
# cpu=-1 in the queueing event is an unbound pool. Of works that were queued before the trace, the worker's name tells.
reduce_trace() { # ISOLATED_CPUS BOOTED: count; BOOTED 1 if the CPUs are isolated since boot
	$AWK -v cpus="$1" -v booted="$2" -v grace="$GRACE_US" "$TRACE_FUNCTIONS"'
	BEGIN { for (n = split(cpus, each, ","); n; n--) isolated[each[n] + 0] = 1; state = booted ? "isolated" : "free" }
	/^#/ { next }
	/ tracing_mark_write: wqlab / {
		t = time()
		if ($NF == "isolating" && !booted) { begun = t; state = "changing" }
		if ($NF == "isolated" && !booted) { held = last = t; state = "isolated" }
		if ($NF == "releasing" && !booted) {
			state = "free"
			changes = changes sprintf("%.0f %.0f\n", (held - begun) * 1e6, (last - held) * 1e6)
		}
		next
	}
	/ sched_switch: / { if (match($0, /next_comm=.* next_pid/)) by[substr($0, RSTART + 10, RLENGTH - 19)]++; next }
	# Kept after the start: a work may be queued twice before the event of its first start.
	/ workqueue_queue_work: / {
		w = item()
		at[w] = time(); name[w] = field("workqueue"); unbound[w] = field("cpu") == "-1"
		next
	}
	/ workqueue_execute_start: / {
		w = item(); t = time(); here = cpu() in isolated
		known = w in at
		free_to_move = known ? unbound[w] : /^ *kworker\/(u|R-)/
		since = known ? at[w] : 0
		if (!free_to_move) { if (here && state == "isolated") bound++ }
		else if (state == "free") { if (here) before++ }
		else if (state == "isolated") {
			if (since > held + grace / 1e6) during++
			if (here) {
				last = t
				if (since > held + grace / 1e6) {
					broken++
					function_name = $0; sub(/.*: function /, "", function_name); sub(/ .*/, "", function_name)
					who[name[w] " (" function_name ") on CPU " cpu()]++
				} else late++
			}
		}
	}
	END {
		if (unreadable(0)) exit
		printf "begin\tchanges\n%send\tchanges\n", changes
		printf "value\tworks_on_isolated\t%d\nvalue\tworks_while_isolated\t%d\n", broken, during
		printf "value\tworks_before\t%d\nvalue\tlate_works\t%d\nvalue\tpercpu_works\t%d\n", before, late, bound
		for (each_name in who) print "culprit\t" each_name "\t" who[each_name]
		for (comm in by) print "preempted\t" comm "\t" by[comm]
	}' "$TRACING/trace" >"$WORK/counts"
	grep -v '^culprit	\|^preempted	' "$WORK/counts" >&3
	# Names without counts: the same in each boot. Nothing is recorded if there is none.
	culprits=$(sed -n 's/^culprit	\([^	]*\)	.*/\1/p' "$WORK/counts" | sort | tr '\n' ';' | sed 's/;$//; s/;/; /g')
	[ -z "$culprits" ] || record fact "works on isolated CPUs $SCENARIO" "$culprits"
	record fact "preempted by $SCENARIO" "$(sed -n 's/^preempted	\([^	]*\)	\(.*\)/\1 \2/p' "$WORK/counts" | sort | tr '\n' ';' | sed 's/;$//; s/;/; /g')"
}

measure() {
	[ -b "$DEVICE" ] || fail infrastructure "the dm-crypt device $DEVICE does not exist"
	available || return 0
	record fact "isolated CPUs $SCENARIO" "$isolated of $(online), works queued from $housekeeping"
	masked=$(hex_mask "$housekeeping") whole=$(cat "$MASK" 2>/dev/null)
	booted=0
	case $MEANS in isolcpus | nohz_full) booted=1 ;; esac
	[ "$booted" = 0 ] || obeyed || return 0
	settle
	trace_start || return 0
	window begin
	load_start
	if [ "$booted" = 0 ] && ! change_masks; then
		stop_measuring
		return 0
	fi
	isolate
	spin
	release
	stop_measuring
	record value changes_made "$CHANGES"
	traced || return 0
	trace_losses
	reduce_trace "$isolated" "$booted"
	trace_reset
	trace_write buffer_size_kb 1
}

stop_measuring() {
	if traced; then
		trace_write tracing_on 0
		trace_write events/enable 0
	fi
	window end
	load_stop
}

teardown() {
	[ ! -d "$GROUP" ] || { echo member >"$GROUP/cpuset.cpus.partition"; rmdir "$GROUP"; }
	[ ! -e "$DEVICE" ] || dmsetup remove "$NAME" || fail infrastructure "cannot remove $DEVICE"
	drop_memory_disk "$NAME"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
