# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Functions for every plan's script: records on stdout, memory disks, the tracer, CPU time.
# POSIX sh. Copied to the device beside each plan's own files.

TRACING=${TRACING:-/sys/kernel/tracing}
NULLB=/sys/kernel/config/nullb
WORK=${WORK:-/tmp/wqlab}
if command -v mawk >/dev/null 2>&1; then AWK=mawk; elif command -v gawk >/dev/null 2>&1; then AWK=gawk; else AWK='awk'; fi

exec 3>&1 1>&2 # records go to descriptor 3, the caller's stdout; output of tools goes to stderr

record() { # TYPE FIELD...: tabs and newlines inside a field would break the line, so they become spaces
	line=$1
	shift
	for field; do
		# Only where needed: starting a program takes long on an emulated device.
		case $field in *['	
']*) field=$(printf '%s' "$field" | tr '\t\n' '  ') ;; esac
		line="$line	$field"
	done
	printf '%s\n' "$line" >&3
}

frame() { # NAME: print standard input between `begin` and `end` records
	record begin "$1"
	cat >&3
	record end "$1"
}

fail() { # infrastructure|kernel TEXT
	record failed "$1" "$2"
	echo "$2" >&2
	exit 1
}

lack() { # REASON: report that this device or kernel does not support the plan, which is not a failure
	record unsupported '*' "$1"
	echo "$1" >&2
	exit 1
}

need() { # PROGRAM...
	for program; do
		command -v "$program" >/dev/null 2>&1 || lack "this device has no program $program"
	done
}

load_module() { # NAME [PARAMETER...]: load a module of the plan and those it needs; false, with a record, if this kernel does not support it
	[ ! -d "/sys/module/$1" ] && [ ! -f "$1.builtin" ] || return 0
	if [ ! -f "$1.ko" ]; then
		record unsupported '*' "$(cat "$1.absent" 2>/dev/null || echo "module $1 did not come with the plan")"
		return 1
	fi
	if [ -f "$1.depends" ]; then
		while read -r module; do
			[ -d "/sys/module/$module" ] || insert_module "$module" || return 1
		done <"$1.depends"
	fi
	insert_module "$@"
}

insert_module() { # NAME [PARAMETER...]: load this one module; false, with a record, if the kernel refuses
	module=$1
	shift
	refusal=$(insmod "./$module.ko" "$@" 2>&1) ||
		{ record unsupported '*' "kernel $(uname -r) does not load module $module: $refusal"; return 1; }
}

seconds() { # since boot, to the hundredth
	cut -d' ' -f1 /proc/uptime
}

node_cpus() { # NODE: print the CPUs of a NUMA node, as 0-3; of the only node of a kernel without NUMA
	cat "${SYS:-/sys}/devices/system/node/node$1/cpulist" 2>/dev/null && return 0
	[ "$1" = 0 ] && cat "${SYS:-/sys}/devices/system/cpu/online"
}

nodes() { # print the numbers of the NUMA nodes that have CPUs
	for folder in "${SYS:-/sys}"/devices/system/node/node[0-9]*; do
		[ -z "$(cat "$folder/cpulist" 2>/dev/null)" ] || printf '%s ' "${folder##*/node}"
	done | grep . || echo 0
}

last_level() { # CPU: print the CPUs that share its last-level cache, or its package if no cache is known
	for file in cache/index3/shared_cpu_list cache/index2/shared_cpu_list topology/package_cpus_list; do
		cat "${SYS:-/sys}/devices/system/cpu/cpu$1/$file" 2>/dev/null && return 0
	done
	cat "${SYS:-/sys}/devices/system/cpu/online"
}

disk_node() { # NUMBER: print the node of a plan's memory disk of this number, from DISK_NODES: a node, or `spread`; nothing if it is `any`
	case ${DISK_NODES:-any} in
	any) ;;
	spread)
		number=$1
		# shellcheck disable=SC2046  # a list of numbers
		set -- $(nodes)
		shift $((number % $#))
		echo "$1"
		;;
	*) [ -n "$(node_cpus "$DISK_NODES")" ] || lack "this device has no NUMA node $DISK_NODES with CPUs for a memory disk" && echo "$DISK_NODES" ;;
	esac
}

fill_on_node() { # DEVICE NODE MIB: write all of a memory disk, from the node's CPUs, and check that the node's memory took it
	# Each page is allocated on the node of its first writer. Direct I/O: pages of the page cache are written by kernel
	# threads on any node.
	settle
	nodes_in_use >"$WORK/nodes.before"
	fio --name=fill --filename="$1" --rw=write --bs=1M --direct=1 --ioengine=psync --cpus_allowed="$(node_cpus "$2")" ||
		fail infrastructure "cannot fill memory disk $1 on node $2"
	settle
	check_node "$1" "$2" "$3" "$WORK/nodes.before"
}

nodes_in_use() { # print each node and its memory in use, KiB; nothing on a kernel without NUMA
	cat "${SYS:-/sys}"/devices/system/node/node[0-9]*/meminfo 2>/dev/null | $AWK '$3 == "MemUsed:" { print $2, $4 }'
}

check_node() { # DEVICE NODE MIB BEFORE: fail unless NODE's memory in use grew by most of MIB since nodes_in_use printed BEFORE
	nodes_in_use >"$WORK/nodes.after"
	[ -s "$WORK/nodes.after" ] || return 0 # without NUMA all memory is that of node 0
	taken=$($AWK -v wanted="$2" -v mib="$3" 'FNR == NR { before[$1] = $2; next }
		{ grown = ($2 - before[$1]) / 1024; if ($1 == wanted) on = grown; text = text sprintf("%s%.0f MiB on node %s", text == "" ? "" : ", ", grown, $1) }
		END { print (on >= 0.75 * mib ? "placed" : "elsewhere"), text }' "$4" "$WORK/nodes.after")
	[ "${taken%% *}" = placed ] ||
		fail infrastructure "memory disk $1 of $3 MiB was to be on node $2, and its memory is elsewhere: ${taken#* }; is node $2 large enough?"
}

has_memory_for() { # MIB: true if twice as much is available
	[ $(($1 * 2)) -le "$(memory_available_mib)" ]
}

settle() { # bring page cache and dirty pages to a known state before a repetition: written back, and dropped
	[ "${WINDOW:-0}" = 0 ] || return 0 # an instrumented boot has one repetition, whose state is exact
	sync
	echo 3 >"${PROC_VM:-/proc/sys/vm}/drop_caches" || fail infrastructure "the kernel refuses to drop its page cache"
	tries=0
	while [ "$(dirty_kib)" -gt 1024 ]; do # nothing reports that write-back has ended
		tries=$((tries + 1))
		[ "$tries" -le 60 ] || fail infrastructure "$(dirty_kib) KiB are still dirty after 30 s of write-back"
		sleep 0.5
	done
	check_memory_state
}

check_memory_state() { # fail if transparent hugepages or KSM are otherwise than before this boot's first repetition
	now="transparent hugepages $(chosen transparent_hugepage/enabled), KSM $(chosen ksm/run)"
	if [ ! -e "$WORK/memory-state" ]; then
		echo "$now" >"$WORK/memory-state"
		record fact 'memory before each repetition' "page cache written back and dropped; $now"
	fi
	read -r first <"$WORK/memory-state"
	[ "$now" = "$first" ] ||
		fail infrastructure "something on the device changed its memory's conditions during the boot: $first, then $now"
}

chosen() { # FILE in /sys/kernel/mm: print its value, or the chosen word of a list as `always [madvise] never`
	value='not in this kernel'
	if [ -r "${SYS:-/sys}/kernel/mm/$1" ]; then
		read -r value <"${SYS:-/sys}/kernel/mm/$1"
		case $value in *\[*\]*) value=${value#*\[} value=${value%%\]*} ;; esac
	fi
	echo "$value"
}

dirty_kib() { $AWK '$1 == "Dirty:" || $1 == "Writeback:" { n += $2 } END { printf "%d", n }' "${MEMINFO:-/proc/meminfo}"; }

job_cpus() { # print fio's arguments that bind its jobs to JOB_CPUS, `all`, a list of CPUs or node:N
	case ${JOB_CPUS:-unbound} in
	unbound) return 0 ;;
	all) list=$(cat "${SYS:-/sys}/devices/system/cpu/online") ;;
	node:*) list=$(node_cpus "${JOB_CPUS#node:}") ;;
	*) list=$JOB_CPUS ;;
	esac
	[ -n "$list" ] || lack "this device has no CPUs for job_cpus=$JOB_CPUS"
	echo "--cpus_allowed=$list --cpus_allowed_policy=shared"
}

check_jobs() { # start fio once with the arguments of job_cpus, and fail unless a job of it may use exactly these CPUs
	bind=$(job_cpus) || exit 1
	[ -n "$bind" ] || return 0
	# In the job's own process, right after fio has bound it. In timed repetitions this would delay each job. fio
	# redirects the command's output itself, so the braces keep ours.
	(
		cd "$WORK" || exit 1
		# shellcheck disable=SC2086 # several arguments
		fio --name=bound --ioengine=null --rw=write --size=4k $bind --output=/dev/null \
			--exec_prerun="{ grep '^Cpus_allowed_list:' /proc/\$PPID/status >bound; }"
	) || fail infrastructure "fio does not run with $bind"
	bind=${bind#*=}
	check_allowed "fio's jobs" "${bind%% *}" "$($AWK '{ print $2 }' "$WORK/bound")"
	record fact job_cpus "${bind%% *}, read back from a job"
}

check_allowed() { # WHAT DECLARED FOUND: fail unless a process may use exactly the declared CPUs, both lists as 0-3,8
	[ "$(listed "$2")" = "$(listed "$3")" ] ||
		fail infrastructure "the binding was not obeyed: $1 may run on CPU ${3:-none}, and CPU $2 was declared"
}

listed() { # CPU_LIST: print each CPU of a list as 0-2,8, in order
	echo "$1" | tr ',' '\n' | while IFS=- read -r first last; do [ -z "$first" ] || seq "$first" "${last:-$first}"; done | sort -n
}

memory_disk() { # NAME MIB QUEUES [IRQMODE [NODE]]: create a memory disk and print its device; memory is allocated as blocks are written
	# IRQMODE 0 (default) completes within submission, 2 from a timer interrupt, like real hardware.
	[ -d "$NULLB" ] || modprobe null_blk nr_devices=0 2>/dev/null # the kernels of distributions have it as a module
	[ -d "$NULLB" ] || mount -t configfs configfs /sys/kernel/config
	[ -d "$NULLB" ] || lack "this kernel has no null_blk with configfs (CONFIG_BLK_DEV_NULL_BLK, CONFIG_CONFIGFS_FS)"
	mkdir -p "$NULLB/$1"
	for pair in "size=$2" "submit_queues=$3" blocksize=4096 "irqmode=${4:-0}" ${5:+"home_node=$5"} memory_backed=1 power=1; do
		echo "${pair#*=}" >"$NULLB/$1/${pair%%=*}" || fail infrastructure "null_blk refuses $pair"
	done
	[ -z "${5:-}" ] || [ "$(cat "$NULLB/$1/home_node")" = "$5" ] ||
		fail infrastructure "null_blk has home_node $(cat "$NULLB/$1/home_node") for memory disk $1, which was to be on node $5"
	for device in "/dev/$1" "/dev/nullb$(cat "$NULLB/$1/index")"; do
		[ -b "$device" ] && break
	done
	[ -b "$device" ] || fail infrastructure "no device node for memory disk $1"
	echo "$device"
}

drop_memory_disk() { # NAME
	[ -d "$NULLB/$1" ] || return 0
	echo 0 >"$NULLB/$1/power"
	rmdir "$NULLB/$1"
}

memory_available_mib() { $AWK '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo; }

cpu_times() { # print busy ticks, all ticks and context switches since boot; waiting for I/O counts as idle
	$AWK '$1 == "cpu" { all = 0; for (i = 2; i <= 9; i++) all += $i; busy = all - $5 - $6 }
		$1 == "ctxt" { switches = $2 } END { printf "%.0f %.0f %.0f\n", busy, all, switches }' /proc/stat
}

cpu_records() { # BEFORE AFTER, each from cpu_times: records of the whole device's use between the two
	echo "$1 $2" | $AWK '{ busy = $4 - $1; all = $5 - $2
		printf "value\tcpu_busy_seconds\t%.2f\nvalue\tcontext_switches\t%d\n", busy / 100, $6 - $3
		if (all > 0) printf "value\tcpu_utilisation\t%.4f\n", 100 * busy / all }' >&3
}

trace_write() { # FILE TEXT: true if the kernel accepted it
	printf '%s\n' "$2" >"$TRACING/$1" 2>/dev/null
}

trace_reset() {
	[ -e "$TRACING/tracing_on" ] || mount -t tracefs tracefs "$TRACING"
	[ -e "$TRACING/tracing_on" ] || return 1
	trace_write tracing_on 0
	trace_write current_tracer nop
	trace_write events/enable 0
	trace_write set_graph_function ''
	trace_write set_ftrace_filter ''
	trace_write trace ''
}

trace_losses() { # print a record if any CPU's buffer lost events
	lost=$(cat "$TRACING"/per_cpu/cpu*/stats | $AWK '/overrun:|dropped events:/ { n += $NF } END { printf "%d", n }')
	[ "$lost" -eq 0 ] || record overrun "$lost"
}

trace_end() { # end a traced repetition: print the records that the plan's reduce_trace makes of its trace, and free the buffer
	trace_write tracing_on 0
	trace_write events/enable 0
	trace_losses
	reduce_trace
	trace_reset
	trace_write buffer_size_kb 1
}

window() { # track|begin|end: follow cache lines from here on (instrumented devices only), or begin or end what is counted
	if [ "${WINDOW:-0}" = 0 ]; then
		"count_$1"
	elif [ "${TRACE:-0}" = 0 ]; then
		wqmark "$1"
	# A traced repetition has the times of a modelled device, and nothing of it is counted.
	else
		case $1 in track) wqmark track ;; end) wqmark untrack ;; esac
	fi
}

count_track() { :; }

count_begin() { # count with the CPU's own counters, in repetitions that are not traced
	counting=
	[ "${TRACE:-0}" = 0 ] && [ ! -e "$WORK/no-counters" ] || return 0
	if command -v wqcount >/dev/null 2>&1; then
		rm -f "$WORK/counting"
		mkfifo "$WORK/counting"
		wqcount "$WORK/counts" >"$WORK/counting" 2>"$WORK/counts.err" 3>&- &
		counting=$!
		# shellcheck disable=SC2034  # only that a line arrives matters
		read -r word <"$WORK/counting" && return 0
		wait "$counting"
		counting=
		why=$(cat "$WORK/counts.err")
	else
		why='this device has no program wqcount'
	fi
	: >"$WORK/no-counters"
	record fact 'hardware counters' "not available: $why"
}

count_end() {
	[ -n "${counting:-}" ] || return 0
	kill -TERM "$counting"
	if ! wait "$counting"; then
		record fact 'hardware counters' "not counted: $(cat "$WORK/counts.err")"
		return 0
	fi
	while IFS='	' read -r name value; do record value "$name" "$value"; done <"$WORK/counts"
	record fact 'hardware counters' "$(cut -f1 "$WORK/counts" | tr '\n' ' ')"
	record fact "counters $(cell)" "$($AWK '{ n[$1] = $2 } END {
		if (n["cycles"] > 0) printf "%.2f instructions per cycle", n["instructions"] / n["cycles"]
		for (name in n) if (name ~ /_misses$/ && n["instructions"] > 0) {
			what = name; sub(/_/, " ", what); printf "; %.2f %s per 1000 instructions", 1000 * n[name] / n["instructions"], what
		} }' "$WORK/counts")"
}

cell() { # print the scenario and its settings, as in `fsync scope=cache`
	echo "${SCENARIO:-}" "$(env | sed -n 's/^SETTING_\([A-Z_]*\)=/\1=/p' | sort | tr 'A-Z\n' 'a-z ')" | sed 's/ *$//'
}

run_fio() { # ARGUMENT...: run fio; print its command line as a record, then its JSON result
	record command "fio$(for word; do case $word in *[!A-Za-z0-9_./:=,+-]*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac; done)"
	rm -f "$WORK/fio.json"
	status=0
	window begin
	fio --output-format=json --output="$WORK/fio.json" "$@" || status=$?
	window end
	# If fio detected an error, its result has it; the parser decides whose fault it is.
	[ -s "$WORK/fio.json" ] || fail infrastructure "fio wrote no result (exit status $status)"
	frame fio <"$WORK/fio.json"
}

mkdir -p "$WORK"
