#!/bin/sh
# Print what a machine is and who uses it, as NAME=VALUE, one a line; a name may come several times. Run it as root by SSH.
# shellcheck disable=SC1091  # os-release
say() { printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr '\n' ' ')"; }
module() { [ ! -e "$1/driver/module" ] || basename "$(readlink -f "$1/driver/module")"; } # DEVICE: empty if it is built in
say user "$(id -u)"
say arch "$(uname -m)"
say release "$(uname -r)"
say system "$(. /etc/os-release 2>/dev/null; printf '%s' "$PRETTY_NAME")"
say init "$(cat /proc/1/comm)"
say memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say shm_kib "$(df -Pk /dev/shm | tail -n 1 | tr -s ' ' | cut -d' ' -f4)"
say boot_id "$(cat /proc/sys/kernel/random/boot_id)"
who 2>/dev/null | while read -r name terminal rest; do say login "$name on $terminal $rest"; done
! grep -qw hypervisor /proc/cpuinfo || say virtual "$(cat /sys/class/dmi/id/sys_vendor 2>/dev/null)"
for file in /proc/[0-9]*/comm; do
	read -r name <"$file" || continue
	case $name in qemu-system* | qemu-kvm | VBoxHeadless | vmware-vmx | firecracker) say guest "$name" ;; esac
done 2>/dev/null
for supply in /sys/class/power_supply/*; do
	[ -e "$supply/type" ] || continue
	say supply "$(cat "$supply/type") $(cat "$supply/online" "$supply/status" 2>/dev/null)"
done
secure=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
[ ! -r "$secure" ] || say secure_boot "$(od -An -tu1 -j4 -N1 "$secure" | tr -d ' ')"
[ ! -r /sys/kernel/security/lockdown ] || say lockdown "$(cat /sys/kernel/security/lockdown)"
[ ! -r /proc/sys/kernel/kexec_load_disabled ] || say kexec_disabled "$(cat /proc/sys/kernel/kexec_load_disabled)"
[ ! -e /sys/kernel/kexec_loaded ] || say kexec yes
! grep -q " /dev/shm [^ ]* [^ ]*noexec" /proc/mounts || say noexec yes
for dog in /sys/class/watchdog/watchdog*; do
	[ -e "$dog" ] || continue
	module=$(module "$dog/device")
	say watchdog "${dog##*/} ${module:-built-in} $(cat "$dog/identity" 2>/dev/null)"
done
[ ! -r /sys/module/pstore/parameters/backend ] || say pstore "$(cat /sys/module/pstore/parameters/backend)"
lsblk -dno NAME,TYPE,SIZE,MODEL 2>/dev/null | while read -r name type rest; do
	[ "$type" != disk ] || say disk "$name $rest"
done
# shellcheck disable=SC2086  # four words
set -- $SSH_CONNECTION
say address "$3"
card=$(ip -4 -o addr show | sed -n "s|^[0-9]*: *\([^ @]*\)[^ ]* *inet $3/.*|\1|p" | head -n 1)
say card "$card"
if [ -n "$card" ]; then
	say prefix "$(ip -4 -o addr show dev "$card" | sed -n "s|.*inet $3/\([0-9]*\).*|\1|p" | head -n 1)"
	say mac "$(cat "/sys/class/net/$card/address")"
	say router "$(ip -4 route show default | sed -n 's/^default via \([0-9.]*\).*/\1/p' | head -n 1)"
	[ ! -e "/sys/class/net/$card/device" ] || say physical yes
	[ ! -e "/sys/class/net/$card/phy80211" ] || say wireless yes
	[ ! -e "/sys/class/net/$card/master" ] || say master "$(basename "$(readlink "/sys/class/net/$card/master")")"
	say driver "$(basename "$(readlink -f "/sys/class/net/$card/device/driver" 2>/dev/null)")"
	# After the card's own module those of what it is connected to, such as a USB controller.
	device=$(readlink -f "/sys/class/net/$card/device")
	while [ "${device#/sys/devices/}" != "$device" ]; do
		module=$(module "$device")
		[ -z "$module" ] || say driver_module "$module"
		device=${device%/*}
	done
fi
