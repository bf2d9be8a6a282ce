#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Check that this device is fit to measure: detectors, topology, clock, memory, kexec, and one tiny verified workload.
# usage: health-check.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

lack() { fail infrastructure "$1"; } # overrides device.sh: what a plan may lack, a fit device must have
SYS=${SYS:-/sys}
PROC=${PROC:-/proc}

setting_of() { # OPTION: print its value in this kernel's configuration
	zcat /proc/config.gz 2>/dev/null | sed -n "s/^$1=//p"
}

check_detectors() {
	[ -r /proc/config.gz ] || fail infrastructure "this kernel does not show its configuration (CONFIG_IKCONFIG_PROC)"
	for option in SOFTLOCKUP_DETECTOR DETECT_HUNG_TASK WQ_WATCHDOG; do
		[ "$(setting_of CONFIG_$option)" = y ] || fail infrastructure "this kernel does not detect stalls: CONFIG_$option is off"
	done
	for file in /proc/sys/kernel/soft_watchdog /proc/sys/kernel/hung_task_timeout_secs \
		/sys/module/workqueue/parameters/watchdog_thresh /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout; do
		value=$(cat "$file" 2>/dev/null) || fail infrastructure "detector $file is not readable"
		[ "$value" -gt 0 ] || fail infrastructure "detector $file is switched off"
		record fact "$(basename "$file")" "$value"
	done
	# Detectors are useless without a console: the worker looks for this error message on it.
	[ -z "${WQLAB_WORD:-}" ] || echo "<3>wqlab: console check $WQLAB_WORD" >/dev/kmsg ||
		fail infrastructure "cannot write to the kernel's log (/dev/kmsg)"
	record step detectors ok "soft lockup, hung task, workqueue watchdog and RCU stall are compiled in and on"
}

check_topology() {
	online=$(cat "$SYS/devices/system/cpu/online")
	present=$(cat "$SYS/devices/system/cpu/present")
	each="every CPU is online and"
	if [ "$online" != "$present" ]; then
		# nosmt boots with one thread of each core; the worker checks that these are the declared cores.
		case $(cat "$SYS/devices/system/cpu/smt/control" 2>/dev/null) in
		off | forceoff) each="SMT is off, so of CPUs $present only $online are online: each" ;;
		*) fail infrastructure "CPUs $present are present, only $online online" ;;
		esac
	fi
	for cpu in "$SYS"/devices/system/cpu/cpu[0-9]*; do
		state=1 # a CPU that cannot be switched off has no such file
		[ ! -r "$cpu/online" ] || read -r state <"$cpu/online"
		[ "$state" = 1 ] || continue
		for file in topology/core_id topology/physical_package_id topology/thread_siblings_list; do
			[ -r "$cpu/$file" ] || fail infrastructure "${cpu##*/} reports no $file"
		done
	done
	record fact cpus "$(nproc)"
	record fact l3_domains "$(cat "$SYS"/devices/system/cpu/cpu[0-9]*/cache/index3/shared_cpu_list 2>/dev/null | sort -u | wc -l)"
	# shellcheck disable=SC2012  # the kernel's names: node0, node1 ...
	record fact nodes "$(ls -d "$SYS"/devices/system/node/node[0-9]* 2>/dev/null | wc -l)"
	record step topology ok "$each reports its core, package and siblings"
}

check_clock() { # compare uptime with a sleep of one second
	record fact clocksource "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	# A clock without a century shows 1970 as 2070: both mean that the board's battery is empty.
	now=$(date +%s)
	if [ "$now" -lt 1577836800 ] || [ "$now" -ge 2840140800 ]; then
		fail infrastructure "the clock says $(date), which is not between 2020 and 2059. Set it in the firmware, and replace the board's battery if it is lost again"
	fi
	before=$($AWK '{ print $1 }' /proc/uptime)
	sleep 1 # the interval to compare
	$AWK -v before="$before" -v longest="$LONGEST_SECOND_S" '{ exit !($1 - before >= 0.95 && $1 - before < longest) }' /proc/uptime ||
		fail infrastructure "one second took from $before to $(cut -d' ' -f1 /proc/uptime) s of uptime"
}

check_memory() {
	free_mib=$(memory_available_mib)
	record fact memory_available_mib "$free_mib"
	[ "$free_mib" -ge "$MEMORY_MIB" ] || fail infrastructure "$free_mib MiB of memory available, less than $MEMORY_MIB"
}

check_kexec() {
	[ -e /sys/kernel/kexec_loaded ] || fail infrastructure "this kernel cannot kexec (CONFIG_KEXEC)"
	[ "$(cat /proc/sys/kernel/kexec_load_disabled 2>/dev/null || echo 0)" = 0 ] || fail infrastructure "kexec is disabled on this device"
}

check_scratch() { # the contents of scratch devices do not change here
	# shellcheck disable=SC2086  # a list of devices
	set -- ${WQLAB_SCRATCH:-}
	if [ $# -eq 0 ]; then
		record step scratch skipped "no device is listed as scratch: plans use memory disks and write to no disk of this device"
		return
	fi
	sizes=
	for device; do
		case $device in /dev/disk/by-id/*) ;; *) fail infrastructure "scratch device $device is not named by /dev/disk/by-id" ;; esac
		[ -b "$device" ] || fail infrastructure "scratch device $device does not exist: the disk is missing or was replaced; the disks of this device are $(present_disks)"
		scratch_is_free "$device"
		mib=$(($(cat "$disk/size") / 2048)) # in sectors of 512 bytes, independent of the device's sector size
		[ "$mib" -ge "$SCRATCH_MIB" ] || fail infrastructure "scratch device $device has $mib MiB, less than $SCRATCH_MIB"
		[ "$(cat "$disk/ro")" = 0 ] || fail infrastructure "scratch device $device is read-only: the disk protects itself at the end of its life, or a switch or its firmware does"
		rewrite_block "$device"
		sizes="$sizes${sizes:+, }${device##*/}: $mib MiB"
	done
	record step scratch ok "$sizes; present and free; the first block could be written, with what it contained"
}

rewrite_block() { # DEVICE: write its first block with what it contains: a worn disk refuses only writes
	mkdir -p "$WORK"
	said=$(dd if="$1" of="$WORK/block" bs=4096 count=1 2>&1) ||
		fail infrastructure "scratch device $1 cannot be read: $(echo "$said" | sed -n 's,^dd: ,,p' | head -n 1)"
	said=$(dd if="$WORK/block" of="$1" bs=4096 count=1 conv=notrunc,fsync 2>&1) ||
		fail infrastructure "scratch device $1 cannot be written, though it is not marked read-only: $(echo "$said" | sed -n 's,^dd: ,,p' | head -n 1). The disk may be worn out, full (thin provisioning) or write-protected: read its health (smartctl), and replace it"
	rm -f "$WORK/block"
}

present_disks() { # print a name of each whole disk, or "none"
	names='' seen=' '
	for link in "${DISKS:-/dev/disk/by-id}"/*; do
		case $link in */'*' | *-part[0-9]*) continue ;; esac
		disk=$(readlink -f "$link")
		case $seen in *" $disk "*) continue ;; esac
		seen="$seen$disk "
		names="$names${names:+, }${link##*/}"
	done
	echo "${names:-none}"
}

scratch_is_free() { # DEVICE: fail if it or a partition of it is mounted, used as swap or part of another device; sets disk
	name=$(basename "$(readlink -f "$1")")
	disk=$SYS/class/block/$name
	for part in "$disk" "$disk/$name"*; do
		[ -e "$part/size" ] || continue
		node=/dev/${part##*/}
		! grep -q "^$node " "$PROC/mounts" || fail infrastructure "scratch device $1 is in use: $node is mounted"
		! grep -qs "^$node " "$PROC/swaps" || fail infrastructure "scratch device $1 is in use: $node is swap"
		for holder in "$part"/holders/*; do
			[ ! -e "$holder" ] || fail infrastructure "scratch device $1 is in use: ${holder##*/} is made of $node"
		done
	done
}

check_storage() {
	need fio dmsetup mkfs.xfs "$AWK"
	disk=$(memory_disk wqlab-health 32 1) || exit 1
	run_fio --name=health --filename="$disk" --direct=1 --rw=randwrite --bs=4k --size=4m --ioengine=libaio --iodepth=8 \
		--group_reporting --verify=crc32c
	drop_memory_disk wqlab-health
}

measure() {
	check_topology
	check_detectors
	check_clock
	check_memory
	check_kexec
	check_storage
	record step fitness ok "clock, memory and kexec are fit, and 4 MiB written to a memory disk came back verified"
	check_scratch
	record fact healthy yes
}

case ${1:-} in
setup) need cat sed sort ;;
measure) measure ;;
teardown) drop_memory_disk wqlab-health ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
