#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# netperf sends messages of SIZE bytes to netserver, over loopback or to another network namespace. An untraced
# repetition counts interrupts and context switches meanwhile, a traced one how tasks on other CPUs are woken.
# usage: netperf-stream.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

NAMESPACE=$WORK/netns # the namespace of the second server, kept by a mount on this file
LACKING=$WORK/netns-lacking
LINK=wqlab0
CLIENT=198.51.100.1 # addresses that the Internet never routes
SERVER=198.51.100.2
LISTENS=' 00000000:3241 00000000:0000 0A ' # in /proc/net/tcp: netperf's own port, 12865, on every address
SYS=${SYS:-/sys}
BINDS_S=20 # after which both programs have bound themselves, also on a slow emulated device
SCHEDSTATS=/proc/sys/kernel/sched_schedstats
KEYS=THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,LOCAL_SEND_THROUGHPUT,REMOTE_BYTES_RECVD,REMOTE_RECV_THROUGHPUT

in_namespace() { nsenter --net="$NAMESPACE" "$@"; }

serve() { # PREFIX...: start netserver and return once it listens
	"$@" netserver -4 </dev/null >"$WORK/netserver.log" 2>&1 3>&- && "$@" grep -q "$LISTENS" /proc/net/tcp ||
		fail infrastructure "netserver does not listen: $(tail -n 1 "$WORK/netserver.log")"
}

join_namespace() { # make the namespace and a veth link to it; report what the kernel lacks
	[ -e /proc/self/ns/net ] || { echo "this kernel has no network namespaces (CONFIG_NET_NS)"; return 1; }
	: >"$NAMESPACE"
	unshare --net="$NAMESPACE" true || fail infrastructure "cannot make a network namespace"
	# Made over there, where the peer, which busybox cannot name, becomes veth0; one end comes back to process 1's side.
	in_namespace ip link add "$LINK" type veth 2>"$WORK/veth.log" ||
		{ echo "this kernel makes no veth pair (CONFIG_VETH): $(tail -n 1 "$WORK/veth.log")"; return 1; }
	in_namespace ip link set "$LINK" netns 1 && ip address add "$CLIENT/30" dev "$LINK" && ip link set "$LINK" up &&
		in_namespace ip address add "$SERVER/30" dev veth0 && in_namespace ip link set veth0 up && in_namespace ip link set lo up ||
		fail infrastructure "cannot join two network namespaces by a veth pair"
}

setup() {
	need netperf netserver nsenter unshare ip killall
	record fact netperf "$(netperf -V 2>&1 | head -n 1)"
	serve env
	rm -f "$LACKING"
	join_namespace >"$LACKING" || return 0
	rm -f "$LACKING"
	serve in_namespace
}

is_in() { # CPU LIST
	listed "$2" | grep -qx "$1"
}

node_of() { # CPU
	for node in $(nodes); do
		if is_in "$1" "$(node_cpus "$node")"; then echo "$node" && return; fi
	done
	echo 0
}

other_cores() { # CPU_LIST: print its CPUs that are online and not on the client's core
	for cpu in $(listed "$1"); do
		! is_in "$cpu" "$online" || is_in "$cpu" "$siblings" || echo "$cpu"
	done
}

find_endpoints() { # set client and server to the CPUs of setting `endpoints`, and where to what was found; the client's is in the last domain, far from CPU 0, which takes most interrupts
	client='' server='' where=${SETTING_ENDPOINTS:-unbound}
	case $where in
	unbound) return 0 ;;
	same_l3 | other_l3 | other_node) ;;
	*) fail infrastructure "endpoints=$where is not unbound, same_l3, other_l3 or other_node" ;;
	esac
	online=$(cat "$SYS/devices/system/cpu/online")
	for cpu in $(listed "$online"); do last=$cpu; done
	domain=$(last_level "$last")
	client=$(listed "$domain" | head -n 1)
	siblings=$(cat "$SYS/devices/system/cpu/cpu$client/topology/thread_siblings_list" 2>/dev/null || echo "$client")
	if [ "$where" = same_l3 ]; then find_near_server; else find_far_server; fi
}

find_near_server() { # on another core of the domain; where each core has its own, of the package, or of the device
	server=$(other_cores "$domain" | head -n 1)
	[ -z "$server" ] || return 0
	where='same package (no second core shares the last-level cache)'
	package=$(cat "$SYS/devices/system/cpu/cpu$client/topology/package_cpus_list" 2>/dev/null)
	server=$(other_cores "$package" | tail -n 1)
	[ -z "$server" ] || return 0
	server=$(other_cores "$online" | tail -n 1)
	[ -n "$server" ] || { where=same_l3 && no_endpoints; return 1; }
	where='any core (the package has no second one)'
}

find_far_server() { # outside the domain, on the same node for other_l3
	for cpu in $(other_cores "$online"); do
		! is_in "$cpu" "$domain" || continue
		place=other_l3
		[ "$(node_of "$cpu")" = "$(node_of "$client")" ] || place=other_node
		[ "$place" = "$where" ] || continue
		server=$cpu
		return 0
	done
	no_endpoints
}

no_endpoints() { # report that this device has no such CPUs
	record unsupported '*' "endpoints=$where: this device has no second CPU there"
	return 1
}

choose_endpoints() { # apply setting `endpoints`; false, with a record, if this device has no such CPUs
	find_endpoints || return 1
	[ -z "$client" ] || [ -e "$WORK/checked.$client.$server" ] || { check_endpoints && : >"$WORK/checked.$client.$server"; }
	[ -z "$client" ] || record fact endpoints "$where: netperf on CPU $client, netserver on CPU $server, read back from both"
	record setting endpoints "$SETTING_ENDPOINTS"
	record setting_after endpoints "$SETTING_ENDPOINTS"
}

check_endpoints() { # start a stream, and fail unless both programs may soon use exactly the CPUs of find_endpoints
	[ -n "$client" ] || return 0
	listening=$(pidof netserver) client_may='' server_may=''
	netperf -4 -H 127.0.0.1 -t TCP_STREAM -l "$BINDS_S" -T "$client,$server" >"$WORK/netperf.out" 2>&1 3>&- &
	stream=$!
	# Each binds itself after the connection is made, and a child of netserver does the work.
	while kill -0 "$stream" 2>/dev/null; do
		client_may=$(may_use "$stream" "$client_may")
		for pid in $(pidof netserver); do
			case " $listening " in *" $pid "*) ;; *) server_may=$(may_use "$pid" "$server_may") ;; esac
		done
		if [ "$client_may,$server_may" = "$client,$server" ]; then
			kill "$stream"
			wait "$stream"
			until [ "$(pidof netserver)" = "$listening" ]; do sleep 0.2; done # its child ends with the connection
			return 0
		fi
		sleep 0.2
	done
	wait "$stream" || fail infrastructure "netperf does not run on CPU $client with netserver on CPU $server: $(tail -n 1 "$WORK/netperf.out")"
	check_allowed netperf "$client" "$client_may"
	check_allowed netserver "$server" "$server_may"
}

may_use() { # PID LIST: print the CPUs that a process may use, or LIST if it has ended
	found=$($AWK '$1 == "Cpus_allowed_list:" { print $2 }' "/proc/$1/status" 2>/dev/null)
	echo "${found:-$2}"
}

workload() { # SECONDS: by time, since a UDP stream ended by a count hangs if its final empty datagrams are dropped
	host=127.0.0.1
	[ "$NETWORK" = lo ] || host=$SERVER
	set -- -4 -H "$host" -t "$TEST" -l "$1" -f m ${client:+-T "$client,$server"} -- -m "$SIZE" -M "$SIZE" -k "$KEYS"
	record command "netperf $*"
	window begin
	status=0
	netperf "$@" >"$WORK/netperf.out" 2>&1 || status=$?
	window end
	[ "$status" = 0 ] || fail infrastructure "netperf ended with exit status $status: $(tail -n 1 "$WORK/netperf.out")"
}

result() { frame netperf <"$WORK/netperf.out"; } # printed last, so that truncated output has no result

# Architectures abbreviate inter-processor interrupts differently (CAL, IPI1), but describe them in the same words.
interrupts() { # print function calls and reschedules so far, of all CPUs; - for a kind that this kernel does not list
	$AWK '
	function all(  i, n) { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i; return sprintf("%.0f", n) }
	BEGIN { calls = reschedules = "-" }
	/Function call interrupts *$/ { calls = all() }
	/Rescheduling interrupts *$/ { reschedules = all() }
	END { print calls, reschedules }' "${INTERRUPTS:-/proc/interrupts}"
}

interrupt_records() { # BEFORE AFTER, each from interrupts
	echo "$1 $2" | $AWK '
	function print_value(name, what, before, after) {
		if (before == "-") printf "unsupported\t%s\t/proc/interrupts of this kernel lists no %s interrupts\n", name, what
		else printf "value\t%s\t%.0f\n", name, after - before
	}
	{ print_value("call_function_interrupts", "function call", $1, $3); print_value("reschedule_interrupts", "rescheduling", $2, $4) }' >&3
}

wakeups() { # print all wakeups so far, and those of a task on the waker's own CPU
	$AWK '$1 ~ /^cpu[0-9]/ { count += $6; own += $7 } END { printf "%.0f %.0f\n", count, own }' "${SCHEDSTAT:-/proc/schedstat}"
}

wakeup_records() { # BEFORE AFTER, each from wakeups
	echo "$1 $2" | $AWK '{ printf "value\twakeups\t%.0f\nvalue\tremote_wakeups\t%.0f\n", $3 - $1, $3 - $1 - ($4 - $2) }' >&3
}

lacking() { # REASON METRIC...
	reason=$1
	shift
	for metric; do record unsupported "$metric" "$reason"; done
}

schedstats_on() { # counting wakeups costs time, so only traced repetitions do
	case $(head -n 1 /proc/schedstat 2>/dev/null) in
	'version 15' | 'version 16' | 'version 17') [ -w "$SCHEDSTATS" ] && cat "$SCHEDSTATS" >"$WORK/schedstats" && echo 1 >"$SCHEDSTATS" ;;
	*) false ;;
	esac || { lacking "this kernel counts no wakeups in /proc/schedstat as expected (CONFIG_SCHEDSTATS)" wakeups remote_wakeups; return 1; }
}

trace_start() {
	trace_reset && [ -d "$TRACING/events/csd/csd_queue_cpu" ] ||
		{ lacking "this kernel has no event csd_queue_cpu" queued_wakeups; return 1; }
	trace_write buffer_size_kb "$TRACE_KIB"
	# Kernels that cannot filter by a function's name record the other calls as well; they are separated below.
	trace_write events/csd/csd_queue_cpu/filter 'func.function == sched_ttwu_pending' ||
		trace_write events/csd/csd_queue_cpu/filter 0
	trace_write events/csd/csd_queue_cpu/enable 1
	trace_write tracing_on 1
}

reduce_trace() { # count the wakeups among the calls that were queued for another CPU
	$AWK '
	/^#/ { next }
	/ csd_queue_cpu: / && / func=0x/ { hidden = 1 }
	/ csd_queue_cpu: / && / func=sched_ttwu_pending / { queued++ }
	END {
		if (hidden) print "unsupported\tqueued_wakeups\tthis kernel does not name the functions in its trace"
		else printf "value\tqueued_wakeups\t%d\n", queued
	}' "$TRACING/trace" >&3
}

traced() {
	counted=no queues=no
	# Trace within the counted interval, so that all traced calls are counted too.
	if schedstats_on; then counted=yes before=$(wakeups); fi
	! trace_start || queues=yes
	if [ "$counted$queues" = nono ]; then
		record unsupported traced "this kernel counts neither wakeups nor what is queued for other CPUs"
		return 0
	fi
	workload "$TRACED_RUNTIME_S"
	[ "$queues" = no ] || trace_write tracing_on 0
	if [ "$counted" = yes ]; then
		wakeup_records "$before" "$(wakeups)"
		cat "$WORK/schedstats" >"$SCHEDSTATS"
	fi
	if [ "$queues" = yes ]; then
		trace_losses
		reduce_trace
		trace_write events/csd/csd_queue_cpu/filter 0
		trace_reset
		trace_write buffer_size_kb 1
	fi
	result
}

measure() {
	if [ "$NETWORK" = netns ] && [ -e "$LACKING" ]; then
		record unsupported '*' "$(cat "$LACKING")"
		return 0
	fi
	choose_endpoints || return 0
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		traced
	else
		times=$(cpu_times) counts=$(interrupts)
		workload "$RUNTIME_S"
		interrupt_records "$counts" "$(interrupts)"
		cpu_records "$times" "$(cpu_times)"
		result
	fi
}

teardown() {
	killall -q netserver
	[ ! -e "/sys/class/net/$LINK" ] || ip link delete "$LINK" || fail infrastructure "cannot remove $LINK"
	! grep -q " $NAMESPACE " /proc/mounts || umount "$NAMESPACE" || fail infrastructure "cannot remove the network namespace"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
