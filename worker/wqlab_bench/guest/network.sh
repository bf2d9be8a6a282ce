#!/bin/sh
# Configure every Ethernet interface with a link by DHCP, and print the address of each interface or why it has none.
# udhcpc calls this script too, with the server's answer in the environment.
# Leases are not renewed: a process that renews them would disturb measurements.
# shellcheck disable=SC2154  # udhcpc sets interface, ip and the other variables of an answer
SYS=${SYS:-/sys}
PROC=${PROC:-/proc}
RUN=${RUN:-/run/wqlab-network}
WAIT_S=${WAIT_S:-30}    # detecting a USB adapter and negotiating a link take seconds
OTHERS_S=${OTHERS_S:-5} # for other interfaces once one has its address
export RUN

take() { # apply the DHCP lease; the file comes last, because it shows that the interface is configured
	ip address flush dev "$interface"
	ip address add "$ip/${mask:-24}" dev "$interface"
	# shellcheck disable=SC2086  # a list of addresses
	set -- ${router:-}
	[ $# -eq 0 ] || ip route add default via "$1" dev "$interface" 2>/dev/null
	echo "$ip/${mask:-24}${1:+, router $1}, from ${serverid:-an unnamed server}" >"$RUN/$interface"
}

is_ethernet() { # FOLDER: true for Ethernet, but not for virtual or wireless interfaces
	kind=
	{ read -r kind <"$1/type"; } 2>/dev/null
	[ "$kind" = 1 ] && [ -e "$1/device" ] && [ ! -e "$1/phy80211" ]
}

has_link() { # FOLDER: true with a link; unknown while the interface is down
	link=
	{ read -r link <"$1/carrier"; } 2>/dev/null
	[ "$link" = 1 ]
}

bring_up() {
	flags=0
	{ read -r flags <"$1/flags"; } 2>/dev/null
	[ $((flags & 1)) = 1 ] || ip link set "${1##*/}" up
}

uptime_s() { # set now to the uptime
	read -r now _ <"$PROC/uptime"
	now=${now%.*}
}

ask() {
	rm -rf "$RUN"
	mkdir -p "$RUN"
	started=' ' clients='' hurry=
	uptime_s
	end=$((now + WAIT_S))
	while :; do
		found='' missing='' got=''
		for folder in "$SYS"/class/net/*; do
			is_ethernet "$folder" || continue
			name=${folder##*/}
			found="$found $name"
			if [ -s "$RUN/$name" ]; then
				got="$got $name"
				continue
			fi
			missing="$missing $name"
			bring_up "$folder"
			has_link "$folder" || continue
			case $started in *" $name "*) continue ;; esac
			started="$started$name "
			udhcpc -f -q -n -t "$WAIT_S" -T 2 -i "$name" -s "$0" >/dev/null 2>&1 &
			clients="$clients $!"
		done
		[ -n "$missing" ] || [ -z "$got" ] || break
		uptime_s
		if [ -n "$got" ] && [ -z "$hurry" ]; then
			hurry=yes
			[ $((now + OTHERS_S)) -ge "$end" ] || end=$((now + OTHERS_S))
		fi
		[ "$now" -lt "$end" ] || break
		sleep 0.2
	done
	# shellcheck disable=SC2086  # a list of process ids
	[ -z "$missing" ] || [ -z "$clients" ] || kill $clients 2>/dev/null
	report
}

report() {
	[ -n "$found" ] ||
		echo "network: no Ethernet interface found in $WAIT_S s: not plugged in, or this kernel lacks its driver or firmware"
	for name in $found; do
		if [ -s "$RUN/$name" ]; then
			echo "network: $name: $(cat "$RUN/$name")"
		elif has_link "$SYS/class/net/$name"; then
			echo "network: $name: no address: no DHCP server answered"
		else
			echo "network: $name: no address: no link"
		fi
	done
}

case ${1:-} in
'') ask ;;
bound | renew) take ;;
esac
