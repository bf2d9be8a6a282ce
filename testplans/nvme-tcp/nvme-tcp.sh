#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fio reads or writes at random on a namespace that this device exports to itself: NVMe over TCP on the loopback interface, with
# a memory disk behind the target. A traced repetition counts the works of both ends and where they ran; an untraced one
# takes I/Os a second and latency.
# usage: nvme-tcp.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

SYS=${SYS:-/sys}
TARGET=${TARGET:-/sys/kernel/config/nvmet}
FABRICS=${FABRICS:-/dev/nvme-fabrics}
ADDRESS=127.0.0.1
SERVICE=4420
UUID=77716c61-6200-4e56-8d65-746370000001 # of the namespace; the host finds its block device by it
NQN=nqn.2014-08.org.nvmexpress:uuid:$UUID
SUBSYSTEM=$TARGET/subsystems/$NQN
NAMESPACE=$SUBSYSTEM/namespaces/1
PORT=$TARGET/ports/4420
PARAMETER=$SYS/module/nvme_tcp/parameters/wq_unbound
HOST_WQ=$SYS/devices/virtual/workqueue/nvme_tcp_wq
BLOCK_KIB=4

# --- the target ---

attribute() { # FILE VALUE: of the target
	echo "$2" >"$1" || fail infrastructure "nvmet refuses $2 for ${1#"$TARGET/"}"
}

make_target() { # DISK
	[ -d "$TARGET" ] || mount -t configfs configfs /sys/kernel/config
	[ -d "$TARGET" ] || fail infrastructure "module nvmet is loaded and there is no $TARGET"
	mkdir -p "$NAMESPACE" "$PORT" || fail infrastructure "nvmet makes no namespace or port"
	attribute "$SUBSYSTEM/attr_allow_any_host" 1
	attribute "$NAMESPACE/device_path" "$1"
	attribute "$NAMESPACE/device_uuid" "$UUID"
	attribute "$NAMESPACE/enable" 1
	attribute "$PORT/addr_adrfam" ipv4
	attribute "$PORT/addr_trtype" tcp
	attribute "$PORT/addr_traddr" "$ADDRESS"
	attribute "$PORT/addr_trsvcid" "$SERVICE"
	# The port listens from here on.
	ln -s "$SUBSYSTEM" "$PORT/subsystems/$NQN" || fail infrastructure "nvmet does not listen at $ADDRESS port $SERVICE: $(kernel_says)"
}

drop_target() {
	[ ! -L "$PORT/subsystems/$NQN" ] || rm "$PORT/subsystems/$NQN"
	[ ! -d "$PORT" ] || rmdir "$PORT"
	[ ! -d "$NAMESPACE" ] || { echo 0 >"$NAMESPACE/enable" && rmdir "$NAMESPACE"; }
	[ ! -d "$SUBSYSTEM" ] || rmdir "$SUBSYSTEM"
}

kernel_says() { # print the kernel's last message about NVMe
	dmesg 2>/dev/null | grep -i nvme | tail -n 1
}

disk_bytes() { echo $((DISK_MIB * 1048576)); }

size_disk() { # set DISK_MIB to half of the available memory if the plan asks for more, and `scaled` to the reason
	scaled='' budget=$(($(memory_available_mib) / 2))
	[ "$DISK_MIB" -gt "$budget" ] || return 0
	scaled=" (scaled to this device's memory; the plan asks for $DISK_MIB MiB)"
	DISK_MIB=$budget
	[ "$DISK_MIB" -ge "$JOBS" ] || lack "not enough memory: a disk of $DISK_MIB MiB has no region of 1 MiB for each of $JOBS jobs"
}

# Each block gets a checksum and its own address, which reads then verify.
fill() { # DISK [NODE]
	node_bind=
	[ -z "${2:-}" ] || node_bind=--cpus_allowed=$(node_cpus "$2")
	# shellcheck disable=SC2086  # an argument, or none
	fio --name=fill --filename="$1" --size="${DISK_MIB}m" --rw=write --bs=1M --direct=1 --ioengine=psync --verify=crc32c \
		--verify_interval="${BLOCK_KIB}k" --do_verify=0 $node_bind --output="$WORK/fill" ||
		fail infrastructure "cannot fill memory disk $1: $(tail -n 1 "$WORK/fill")"
}

setup() {
	need fio insmod rmmod
	check_jobs # here already, so that the plan is unsupported without these CPUs
	# Each measurement reports whether the modules are available.
	load_module nvmet && load_module nvmet_tcp || return 0
	size_disk
	node=$(disk_node 0) || exit 1
	disk=$(memory_disk wqlab-nvme "$DISK_MIB" "$(nproc)" 0 "$node") || exit 1
	[ -z "$node" ] || { settle; nodes_in_use >"$WORK/nodes.before"; }
	fill "$disk" "$node"
	[ -z "$node" ] || { settle; check_node "$disk" "$node" "$DISK_MIB" "$WORK/nodes.before"; }
	echo "$disk $DISK_MIB" >"$WORK/disk"
	record fact disk "null_blk memory_backed, $DISK_MIB MiB, $(nproc) queues, prewritten${node:+ on node $node}$scaled"
	ip link set lo up
	make_target "$disk"
}

# --- the host ---

parameter() { cat "$PARAMETER" 2>/dev/null || echo none; }

queue_kind() { # print `unbound` or `per-CPU`, as sysfs says of the host's workqueue; nothing if that is not there
	case $(cat "$HOST_WQ/per_cpu" 2>/dev/null) in 0) echo unbound ;; 1) echo per-CPU ;; esac
}

built_in() { [ -d "$SYS/module/nvme_tcp" ] && [ ! -f nvme_tcp.ko ]; }

load() { # load nvme_tcp with SETTING_WQ_UNBOUND and read it back; false, with a record, if this kernel does not use it
	# The workqueue is made while the module is loaded: a later change of the parameter does not reach it.
	if [ "$SETTING_WQ_UNBOUND" = default ]; then
		built_in || load_module nvme_tcp || return 1
		loaded=$(parameter)
		kind=$(queue_kind)
		record fact 'wq_unbound by default' "$loaded${kind:+, nvme_tcp_wq is $kind}"
		record setting wq_unbound default
		return 0
	fi
	if built_in; then
		record unsupported '*' "nvme_tcp is built into kernel $(uname -r), so wq_unbound cannot be set before its workqueue is made"
		return 1
	fi
	load_module nvme_tcp "wq_unbound=$SETTING_WQ_UNBOUND" || return 1
	loaded=$(parameter)
	kind=$(queue_kind)
	case $SETTING_WQ_UNBOUND in Y) wanted=unbound ;; *) wanted=per-CPU ;; esac
	if [ "$loaded" = none ]; then
		record unsupported '*' "module nvme_tcp of kernel $(uname -r) has no parameter wq_unbound"
	elif [ "$loaded" != "$SETTING_WQ_UNBOUND" ]; then
		record unsupported '*' "kernel $(uname -r) has wq_unbound=$loaded when $SETTING_WQ_UNBOUND is requested"
	elif [ "${kind:-$wanted}" != "$wanted" ]; then
		record unsupported '*' "kernel $(uname -r) has wq_unbound=$loaded, and its nvme_tcp_wq is $kind"
	else
		record setting wq_unbound "$loaded"
		[ ! -r "$HOST_WQ/affinity_scope" ] || record fact "affinity_scope of nvme_tcp_wq, wq_unbound=$loaded" "$(cat "$HOST_WQ/affinity_scope")"
		return 0
	fi
	return 1
}

loaded_after() { # report the setting after the workload
	if [ "$SETTING_WQ_UNBOUND" = default ] && [ "$(parameter)" = "$loaded" ]; then
		record setting_after wq_unbound default
	else
		record setting_after wq_unbound "$(parameter)"
	fi
}

controllers() { # print the sysfs folders of the controllers that are connected to this plan's subsystem
	for folder in "$SYS"/class/nvme/nvme*; do
		[ "$(cat "$folder/subsysnqn" 2>/dev/null)" != "$NQN" ] || echo "$folder"
	done
}

find_namespace() { # print the block device of the plan's namespace; false if there is none
	for folder in "$SYS"/block/nvme*; do
		# With multipath, the paths of a namespace have its UUID too, but no device node.
		[ "$(cat "$folder/uuid" 2>/dev/null)" = "$UUID" ] && [ -e "${DEV:-/dev}/${folder##*/}" ] && echo "${DEV:-/dev}/${folder##*/}" && return 0
	done
	return 1
}

connect() { # set `remote` to the block device of the namespace
	# Long timeouts of the protocol itself: a busy emulated device must not lose its connection.
	options="transport=tcp,traddr=$ADDRESS,trsvcid=$SERVICE,nqn=$NQN,nr_io_queues=$(nproc),keep_alive_tmo=60,ctrl_loss_tmo=60"
	echo "$options" >"$FABRICS" || fail kernel "the host does not connect to the target ($options): $(kernel_says)"
	tries=0
	until remote=$(find_namespace); do # nothing reports that the host has scanned the target's namespaces
		tries=$((tries + 1))
		[ "$tries" -le 300 ] || fail kernel "30 s after it connected, the host has no namespace of the target: $(kernel_says)"
		sleep 0.1
	done
	controller=$(controllers)
	record fact queues "$(cat "$controller/queue_count" 2>/dev/null), one of them for administration; sqsize $(cat "$controller/sqsize" 2>/dev/null)"
}

check_connection() {
	state=$(cat "$controller/state" 2>/dev/null)
	[ "$state" = live ] || fail kernel "after the workload the connection is ${state:-gone}: $(kernel_says)"
}

clean_up() { # end the connection and unload the host's module, so that the next setting starts without both
	for folder in $(controllers); do
		echo 1 >"$folder/delete_controller" || fail kernel "the host does not disconnect: $(kernel_says)"
	done
	[ ! -d "$SYS/module/nvme_tcp" ] || built_in || refusal=$(rmmod nvme_tcp 2>&1) ||
		fail kernel "kernel $(uname -r) does not unload module nvme_tcp: $refusal"
}

# --- load ---

workload() { # TOTAL_IOS (0: RUNTIME_S seconds)
	bind=$(job_cpus) || exit 1
	blocks=$((DISK_MIB * 1024 / BLOCK_KIB / JOBS)) # of a job
	region_k=$((blocks * BLOCK_KIB))
	# shellcheck disable=SC2086  # several arguments, or none
	set -- "$1" --name=nvme-tcp --filename="$remote" --direct=1 --rw="$RW" --bs="${BLOCK_KIB}k" --ioengine=libaio \
		--iodepth="$IODEPTH" --numjobs="$JOBS" --size="${region_k}k" --offset_increment="${region_k}k" --group_reporting \
		--verify=crc32c $bind
	# What was written is read back after the measurement, or else half of the I/Os would be reads.
	[ "$RW" != randwrite ] || set -- "$@" --do_verify=0
	if [ "$1" -gt 0 ]; then
		each=$(($1 / JOBS))
		[ "$each" -ge 1 ] || each=1
		[ "$each" -le "$blocks" ] || each=$blocks
		set -- "$@" --number_ios="$each"
	else
		set -- "$@" --runtime="$RUNTIME_S" --time_based
	fi
	shift
	before=$(moved)
	run_fio "$@"
	echo "$before $(moved)" | $AWK '{ printf "value\ttarget_read_bytes\t%.0f\nvalue\ttarget_written_bytes\t%.0f\n", $3 - $1, $4 - $2 }' >&3
}

moved() { # print the bytes that the target's disk has read and written so far
	$AWK '{ printf "%.0f %.0f\n", $3 * 512, $7 * 512 }' "$SYS/class/block/$(basename "$(readlink -f "$disk")")/stat"
}

read_back() { # verify each block of the namespace: checksum and address
	# In the blocks in which it was written: fio 3.33 reads larger ones without noticing that their content is wrong.
	fio --name=read-back --filename="$remote" --size="${DISK_MIB}m" --direct=1 --rw=read --bs="${BLOCK_KIB}k" --ioengine=libaio \
		--iodepth=64 --verify=crc32c --output-format=json --output="$WORK/read-back" 2>"$WORK/read-back.err" || {
		# `verify: bad header ...` or `crc32c: verify failed ...`
		wrong=$(grep -h verify "$WORK/read-back.err" "$WORK/read-back" | head -n 1)
		! grep -q '"error" : 84,' "$WORK/read-back" ||
			fail kernel "data that was written over NVMe/TCP is not what is read back: $wrong"
		fail infrastructure "cannot read the namespace back: $(tail -n 1 "$WORK/read-back.err")"
	}
	record value disk_bytes "$(disk_bytes)"
	record value read_back_bytes "$($AWK '$1 == "\"io_bytes\"" { print $3 + 0; exit }' "$WORK/read-back")"
}

# --- trace ---

trace_start() {
	trace_works traced 'workqueue ~ "nvme*"' || return 1
	trace_write tracing_on 1
}

# What starts without having been queued as a work of one of the two ends belongs to another function.
reduce_trace() {
	$AWK "$TRACE_FUNCTIONS"'
	function end(  name) {
		name = field("function")
		if (name ~ /^0x/) unnamed = 1
		return name == "nvme_tcp_io_work" ? "host" : (name == "nvmet_tcp_io_work" ? "target" : "")
	}
	/^#/ { next }
	/ workqueue_queue_work: / {
		w = item(); e = end(); if (e == "") next
		queue(w); of[w] = e; queued[e]++; next
	}
	/ workqueue_execute_start: / {
		w = item()
		if (!(w in from)) next
		e = of[w]; started[e]++; pairs[e, from[w] " " cpu()]++
		wait[e, waited_us(w)]++
		end_wait(w); next
	}
	function table(name, e, counts,  key, part) {
		printf "begin\t%s\n", name
		for (key in counts) { split(key, part, SUBSEP); if (part[1] == e) printf "%s %d\n", part[2], counts[key] }
		printf "end\t%s\n", name
	}
	END {
		if (unreadable(unnamed)) exit
		for (i = split("host target", ends, " "); i; i--) {
			e = ends[i]
			table("pairs " e, e, pairs); table("histogram " e "_queue_to_start_us", e, wait)
			printf "value\t%s_works_queued\t%d\nvalue\t%s_works\t%d\n", e, queued[e], e, started[e]
		}
	}' "$TRACING/trace" >&3
}

# --- measuring ---

measure() {
	load_module nvmet && load_module nvmet_tcp || return 0
	read -r disk DISK_MIB <"$WORK/disk" || fail infrastructure "the target was not set up"
	trap clean_up EXIT
	trap 'exit 1' HUP INT TERM
	clean_up # a repetition that was killed leaves its connection
	load || return 0
	connect
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		workload "$TRACED_IOS"
		trace_end
		trace_write events/workqueue/workqueue_queue_work/filter 0
	else
		times=$(cpu_times)
		workload "$TOTAL_IOS"
		cpu_records "$times" "$(cpu_times)"
	fi
	check_connection
	[ "$RW" != randwrite ] || read_back
	loaded_after
}

teardown() {
	clean_up
	drop_target
	drop_memory_disk wqlab-nvme
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
