#!/bin/sh
# Asks DHCP for an address of every Ethernet interface with a link. Says on standard output what each got, or why none.
# udhcpc calls it too, with what a server answered in the environment.
# Asked once a boot: a process that renews leases would run beside what is measured.
SYS=${SYS:-/sys}
PROC=${PROC:-/proc}
RUN=${RUN:-/run/wqlab-network}
WAIT_S=${WAIT_S:-30}    # a USB adapter takes seconds to be found, a link seconds to be negotiated
OTHERS_S=${OTHERS_S:-5} # for the other interfaces, when one has its address
export RUN

take() { # what DHCP gave: kept last, because its file says that all is done
	ip address flush dev "$interface"
	ip address add "$ip/${mask:-24}" dev "$interface"
	set -- ${router:-}
	[ $# -eq 0 ] || ip route add default via "$1" dev "$interface" 2>/dev/null
	echo "$ip/${mask:-24}${1:+, router $1}, from ${serverid:-an unnamed server}" >"$RUN/$interface"
}

is_ethernet() { # FOLDER: of a device, not virtual and not wireless
	kind=
	{ read -r kind <"$1/type"; } 2>/dev/null
	[ "$kind" = 1 ] && [ -e "$1/device" ] && [ ! -e "$1/phy80211" ]
}

has_link() { # an interface that is down cannot say
	link=
	{ read -r link <"$1/carrier"; } 2>/dev/null
	[ "$link" = 1 ]
}

bring_up() {
	flags=0
	{ read -r flags <"$1/flags"; } 2>/dev/null
	[ $((flags & 1)) = 1 ] || ip link set "${1##*/}" up
}

uptime_s() { # sets now
	read -r now _ <"$PROC/uptime"
	now=${now%.*}
}

ask() {
	rm -rf "$RUN"
	mkdir -p "$RUN"
	asked=' ' clients='' hurry=
	uptime_s
	end=$((now + WAIT_S))
	while :; do
		found= missing= got=
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
			case $asked in *" $name "*) continue ;; esac
			asked="$asked$name "
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
	[ -z "$missing" ] || [ -z "$clients" ] || kill $clients 2>/dev/null
	report
}

report() {
	[ -n "$found" ] ||
		echo "network: no Ethernet interface in $WAIT_S s: not plugged in, or this kernel lacks its driver or firmware"
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
