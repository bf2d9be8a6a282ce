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

load_module() { # NAME [PARAMETER...]: load a module of the plan; false, with a record, if this kernel does not support it
	[ ! -d "/sys/module/$1" ] || return 0
	if [ ! -f "$1.ko" ]; then
		record unsupported '*' "$(cat "$1.absent" 2>/dev/null || echo "module $1 did not come with the plan")"
		return 1
	fi
	module=$1
	shift
	refusal=$(insmod "./$module.ko" "$@" 2>&1) ||
		{ record unsupported '*' "kernel $(uname -r) does not load module $module: $refusal"; return 1; }
}

seconds() { # since boot, to the hundredth
	cut -d' ' -f1 /proc/uptime
}

memory_disk() { # NAME MIB QUEUES [IRQMODE]: create a memory disk and print its device; memory is allocated as blocks are written
	# IRQMODE 0 (default) completes within submission, 2 from a timer interrupt, like real hardware.
	[ -d "$NULLB" ] || mount -t configfs configfs /sys/kernel/config
	[ -d "$NULLB" ] || lack "this kernel has no null_blk with configfs (CONFIG_BLK_DEV_NULL_BLK, CONFIG_CONFIGFS_FS)"
	mkdir -p "$NULLB/$1"
	for pair in "size=$2" "submit_queues=$3" blocksize=4096 "irqmode=${4:-0}" memory_backed=1 power=1; do
		echo "${pair#*=}" >"$NULLB/$1/${pair%%=*}" || fail infrastructure "null_blk refuses $pair"
	done
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

window() { # track|begin|end: on an instrumented device, follow cache lines from here on, or begin or end what is counted
	[ "${WINDOW:-0}" = 0 ] || wqmark "$1"
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
