#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# netperf sends through a WireGuard tunnel between two network namespaces. A traced repetition takes where the works of
# WireGuard's workqueues were queued and where they started; an untraced one the throughput and the packets that got lost.
# usage: wireguard.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"
# shellcheck source=../common/events.sh
. "$(dirname "$0")/events.sh"

SYS=${SYS:-/sys}
MASK=$SYS/devices/virtual/workqueue/cpumask
INITIAL=$WORK/initial-cpumask
NAMESPACE=$WORK/wireguard-netns # the namespace of the server, kept by a mount on this file
NEAR=wqlab-wg0
FAR=wqlab-wg1
CLIENT=198.51.100.1 # addresses that the Internet never routes
SERVER=198.51.100.2
NEAR_PORT=51820 # of the tunnel's ends, on the loopback of the first namespace
FAR_PORT=51821
LISTENS=' 00000000:3241 00000000:0000 0A ' # in /proc/net/tcp: netperf's own port, 12865, on every address
KEYS=THROUGHPUT_UNITS,ELAPSED_TIME,LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,LOCAL_SEND_THROUGHPUT,REMOTE_BYTES_RECVD,REMOTE_RECV_THROUGHPUT

in_namespace() { nsenter --net="$NAMESPACE" "$@"; }

# --- the tunnel ---

# A WireGuard device sends and receives its encrypted packets in the namespace that it was made in. Both ends are made
# in the first, whose loopback carries these packets, and one is then moved.
make_tunnel() {
	umask 077
	for end in near far; do
		wg genkey >"$WORK/$end.key" && wg pubkey <"$WORK/$end.key" >"$WORK/$end.pub" || fail infrastructure "wg makes no keys"
	done
	ip link add "$NEAR" type wireguard 2>"$WORK/ip.log" && ip link add "$FAR" type wireguard 2>>"$WORK/ip.log" ||
		fail infrastructure "the kernel makes no WireGuard device: $(tail -n 1 "$WORK/ip.log")"
	wg set "$NEAR" listen-port "$NEAR_PORT" private-key "$WORK/near.key" &&
		wg set "$FAR" listen-port "$FAR_PORT" private-key "$WORK/far.key" ||
		fail infrastructure "wg refuses a port or a key"
	: >"$NAMESPACE"
	unshare --net="$NAMESPACE" true || fail infrastructure "cannot make a network namespace"
	in_namespace ip link set lo up
	in_namespace netserver -4 </dev/null >"$WORK/netserver.log" 2>&1 3>&- && in_namespace grep -q "$LISTENS" /proc/net/tcp ||
		fail infrastructure "netserver does not listen: $(tail -n 1 "$WORK/netserver.log")"
	# The server names its namespace: an interface is moved to that of a process.
	ip link set lo up
	ip link set "$FAR" netns "$(pidof netserver | cut -d' ' -f1)" && ip address add "$CLIENT/30" dev "$NEAR" &&
		ip link set "$NEAR" mtu "$MTU" && ip link set "$NEAR" up && in_namespace ip address add "$SERVER/30" dev "$FAR" &&
		in_namespace ip link set "$FAR" mtu "$MTU" && in_namespace ip link set "$FAR" up ||
		fail infrastructure "cannot set up the tunnel between two network namespaces"
}

introduce() { # make both ends forget each other, so that this repetition begins with a handshake
	near=$(cat "$WORK/near.pub") far=$(cat "$WORK/far.pub")
	wg set "$NEAR" peer "$far" remove
	in_namespace wg set "$FAR" peer "$near" remove
	wg set "$NEAR" peer "$far" endpoint "127.0.0.1:$FAR_PORT" allowed-ips "$SERVER/32" &&
		in_namespace wg set "$FAR" peer "$near" endpoint "127.0.0.1:$NEAR_PORT" allowed-ips "$CLIENT/32" ||
		fail infrastructure "wg refuses a peer"
}

shook_hands() { [ "$(wg show "$NEAR" latest-handshakes | $AWK '{ print $2 }')" -gt 0 ]; }

setup() {
	need netperf netserver nsenter unshare ip wg killall
	[ -e /proc/self/ns/net ] || lack "this kernel has no network namespaces (CONFIG_NET_NS)"
	[ ! -r "$MASK" ] || cat "$MASK" >"$INITIAL"
	record fact netperf "$(netperf -V 2>&1 | head -n 1)"
	# Each measurement reports whether the module is available.
	load_module wireguard || return 0
	make_tunnel
	introduce
	ping -c 3 -W 20 "$SERVER" >"$WORK/ping.log" 2>&1 && shook_hands ||
		fail kernel "no packet passes the WireGuard tunnel: $(tail -n 2 "$WORK/ping.log" | tr '\n' ' ')"
	for queue in "$SYS"/devices/virtual/workqueue/wg-*; do
		[ ! -e "$queue/affinity_scope" ] || record fact 'workqueue in sysfs' "${queue##*/}, $(cat "$queue/affinity_scope")"
	done
}

# --- CPUs of unbound workqueues ---

half_mask() { # print the first half of the CPUs that are online, as the kernel's bitmaps are written
	count=$(listed "$(cat "$SYS/devices/system/cpu/online")" | wc -l)
	listed "$(cat "$SYS/devices/system/cpu/online")" | head -n $(((count + 1) / 2)) | $AWK '
		BEGIN { last = 0 } { on[int($1 / 4)] += 2 * ($1 % 4 == 1) + 4 * ($1 % 4 == 2) + 8 * ($1 % 4 == 3) + ($1 % 4 == 0)
			if (int($1 / 4) > last) last = int($1 / 4) }
		END { for (n = last; n >= 0; n--) printf "%s%s", substr("0123456789abcdef", on[n] + 1, 1), (n && n % 8 == 0) ? "," : "" }'
}

plain() { # MASK: print it without commas and leading zeros
	echo "$1" | tr -d ',' | sed 's/^0*\(.\)/\1/'
}

has_mask() { [ "$(plain "$(cat "$MASK")")" = "$(plain "$1")" ]; }

place() { # apply SETTING_UNBOUND_CPUS; false, with a record, if the kernel does not
	if [ ! -w "$MASK" ]; then
		[ "$SETTING_UNBOUND_CPUS" != default ] || { record setting unbound_cpus default; return 0; }
		record unsupported '*' "kernel $(uname -r) has no cpumask of all unbound workqueues in sysfs"
		return 1
	fi
	wanted=$(cat "$INITIAL")
	[ "$SETTING_UNBOUND_CPUS" != half ] || wanted=$(half_mask)
	has_mask "$wanted" || echo "$wanted" >"$MASK" || :
	has_mask "$wanted" && record setting unbound_cpus "$SETTING_UNBOUND_CPUS" && return 0
	record unsupported '*' "kernel $(uname -r) has cpumask $(cat "$MASK") for unbound workqueues when $wanted is requested"
	return 1
}

placed() { # report the mask after the workload
	[ "$SETTING_UNBOUND_CPUS" != default ] || [ -r "$MASK" ] || { record setting_after unbound_cpus default; return 0; }
	if has_mask "$wanted"; then record setting_after unbound_cpus "$SETTING_UNBOUND_CPUS"; else record setting_after unbound_cpus "$(cat "$MASK")"; fi
}

# --- load ---

# Packets of the tunnel's ends so far, and what they refused to send. Encrypted packets count: also handshakes.
packets() { # print sent and refused by the near end, received by it, and the same of the far end; then bytes sent by the near end
	for end in near far; do
		if [ "$end" = near ]; then statistics "$NEAR"; else in_namespace cat /proc/net/dev | statistics "$FAR"; fi
	done | tr '\n' ' '
}

statistics() { # INTERFACE: of /proc/net/dev: packets sent, refused, received, and bytes sent
	if [ "$1" = "$NEAR" ]; then cat "${NETDEV:-/proc/net/dev}"; else cat; fi | $AWK -v name="$1:" '
		{ sub(/:/, ": ") } $1 == name { printf "%.0f %.0f %.0f %.0f\n", $11, $12 + $13, $3, $10 }'
}

packet_records() { # BEFORE AFTER, each from packets
	echo "$1 $2" | $AWK '{
		sent = $9 - $1 + $13 - $5
		lost = ($9 - $1) - ($15 - $7) + ($13 - $5) - ($11 - $3)
		refused = $10 - $2 + $14 - $6
		printf "value\ttunnel_packets\t%.0f\nvalue\tpackets_lost\t%.0f\nvalue\ttunnel_bytes\t%.0f\n", sent, lost + refused, $12 - $4
		printf "value\tpackets_refused\t%.0f\n", refused
	}' >&3
}

settled_packets() { # print packets once what was sent has arrived, at most a second after nothing changes any more
	last='' tries=0
	while [ "$tries" -lt 10 ]; do
		now=$(packets)
		if [ "$now" = "$last" ]; then
			[ "$(echo "$now" | $AWK '{ print ($1 == $7 && $5 == $3) }')" != 1 ] || break
			tries=$((tries + 1))
		else
			tries=0
		fi
		last=$now
		sleep 0.1
	done
	echo "$now"
}

workload() { # SECONDS
	set -- -4 -H "$SERVER" -t "$TEST" -l "$1" -f m -- -m "$SIZE" -M "$SIZE" -k "$KEYS"
	record command "netperf $*"
	record value streams "$STREAMS"
	introduce
	rm -f "$WORK"/netperf.*.out "$WORK"/netperf.*.failed
	sent=$(packets)
	window begin
	streams=
	i=0
	while [ "$i" -lt "$STREAMS" ]; do
		i=$((i + 1))
		{ netperf "$@" >"$WORK/netperf.$i.out" 2>&1 || : >"$WORK/netperf.$i.failed"; } 3>&- &
		streams="$streams $!"
	done
	# shellcheck disable=SC2086 # several processes; the tracer's, if any, are not waited for
	wait $streams
	window end
	for failed in "$WORK"/netperf.*.failed; do
		[ ! -e "$failed" ] || fail infrastructure "netperf failed: $(tail -n 1 "${failed%failed}out")"
	done
	shook_hands || fail kernel "netperf ran without a handshake of the tunnel"
}

result() { # printed last, so that truncated output has no result
	i=0
	while [ "$i" -lt "$STREAMS" ]; do
		i=$((i + 1))
		frame "netperf $i" <"$WORK/netperf.$i.out"
	done
}

# --- trace ---

trace_start() {
	trace_works traced 'workqueue ~ "wg-*"' || return 1
	trace_write tracing_on 1
}

# What starts without having been queued on one of WireGuard's workqueues belongs to another one.
reduce_trace() {
	$AWK "$TRACE_FUNCTIONS"'
	function of(worker) { return worker in works ? works[worker] : 0 }
	/^#/ { next }
	/ workqueue_queue_work: / {
		w = item(); what[w] = field("function")
		if (what[w] ~ /^0x/) unnamed = 1
		queue(w); works[what[w]]++; queued++; next
	}
	/ workqueue_execute_start: / {
		w = item()
		if (!(w in from)) next
		started++
		if (what[w] ~ /^wg_packet_(en|de)crypt_worker/) {
			n[from[w] " " cpu()]++
			wait[waited_us(w)]++
		}
		end_wait(w); next
	}
	END {
		if (unreadable(unnamed)) exit
		print_counts("pairs", n); print_counts("histogram queue_to_start_us", wait)
		printf "value\tencrypt_works\t%d\nvalue\tdecrypt_works\t%d\nvalue\ttransmit_works\t%d\n", of("wg_packet_encrypt_worker"), of("wg_packet_decrypt_worker"), of("wg_packet_tx_worker")
		printf "value\thandshake_works\t%d\nvalue\tworks_queued\t%d\nvalue\tworks_started\t%d\n", of("wg_packet_handshake_send_worker") + of("wg_packet_handshake_receive_worker"), queued, started
	}' "$TRACING/trace" >&3
}

# --- measuring ---

measure() {
	load_module wireguard || return 0
	place || return 0
	settle
	if [ "${TRACE:-0}" = 1 ]; then
		trace_start || return 0
		workload "$TRACED_RUNTIME_S"
		now=$(settled_packets)
		trace_end
		trace_write events/workqueue/workqueue_queue_work/filter 0
	else
		times=$(cpu_times)
		workload "$RUNTIME_S"
		cpu_records "$times" "$(cpu_times)"
		now=$(settled_packets)
	fi
	packet_records "$sent" "$now"
	placed
	result
}

teardown() {
	[ ! -w "$MASK" ] || has_mask "$(cat "$INITIAL")" || cat "$INITIAL" >"$MASK" || fail infrastructure "the kernel refuses its own cpumask of unbound workqueues"
	[ -z "$(pidof netserver)" ] || killall netserver
	if [ -s "$NAMESPACE" ] || grep -q " $NAMESPACE " /proc/mounts; then
		in_namespace ip link del "$FAR"
		umount "$NAMESPACE"
	fi
	rm -f "$NAMESPACE" "$WORK"/near.* "$WORK"/far.*
	[ ! -e "$SYS/class/net/$NEAR" ] || ip link del "$NEAR"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
