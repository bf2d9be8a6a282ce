# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# A dm-crypt device on a scratch device (or on a memory disk when the device has none), the number of its issuers, and the
# affinity knobs of its workqueue kcryptd. For plans that read and write through it.
# Sourced after device.sh and knobs.sh. Parameters: DISK_MIB, DISK_NODES, JOB_CPUS, ISSUERS_PER_CPU or ISSUERS_POWER,
# REGION_MIB; settings SETTING_SCOPE, SETTING_STRICT and, if the plan has that axis, SETTING_LOCAL.

PROC=${PROC:-/proc}
AIO_LIMIT=${AIO_LIMIT:-/proc/sys/fs/aio-max-nr}
NAME=wqlab-crypt
DEVICE=/dev/mapper/$NAME

knob_folder() { # print the sysfs folder of this device's kcryptd (not kcryptd_io); older kernels name it kcryptd!MAJ:MIN
	for folder in /sys/devices/virtual/workqueue/kcryptd[-!]*; do
		[ -d "$folder" ] && echo "$folder" && return 0
	done
	return 1
}

free_device() { # DEVICE: true if it is not in use
	name=$(basename "$(readlink -f "$1")")
	! grep -q "^$(readlink -f "$1")[0-9p]* " /proc/mounts && [ -z "$(ls "/sys/class/block/$name/holders" 2>/dev/null)" ]
}

size_memory_disk() { # set disk_mib; set scaled to the reason if it is less than the plan requests
	disk_mib=$DISK_MIB scaled=
	most=$(issuers) # of any scenario: setup has the profile's number, which is that of the largest
	if [ "$disk_mib" -lt "$most" ]; then
		disk_mib=$most
		scaled=" (1 MiB for each of $most issuers; the plan asks for $DISK_MIB MiB)"
	fi
	budget=$(($(memory_available_mib) / 2)) # all of it is written; the other half is for everything else
	[ "$disk_mib" -gt "$budget" ] || return 0
	scaled=" (scaled to this device's memory; the plan asks for $DISK_MIB MiB)"
	disk_mib=$budget
	[ "$disk_mib" -ge "$(nproc)" ] ||
		lack "not enough memory: a memory disk of $disk_mib MiB has no region of 1 MiB for each of $(nproc) CPUs"
}

make_crypt_device() { # in setup
	check_jobs # here already, so that the plan is unsupported without these CPUs
	# fio's jobs take 64 of 65,536 asynchronous I/Os each, too few for four jobs on each of 256 CPUs.
	[ ! -w "$AIO_LIMIT" ] || echo 1048576 >"$AIO_LIMIT"
	scratch=${WQLAB_SCRATCH:-}
	scratch=${scratch%% *}
	if [ -n "$scratch" ]; then
		[ -b "$scratch" ] || fail infrastructure "scratch device $scratch does not exist"
		free_device "$scratch" || fail infrastructure "scratch device $scratch is in use"
		record fact disk "$scratch"
	else
		size_memory_disk
		node=$(disk_node 0) || exit 1
		scratch=$(memory_disk wqlab-plain "$disk_mib" "$(nproc)" 0 "$node") || exit 1
		# Pages are allocated by the first write: write all of it now, so that no measured write does.
		if [ -n "$node" ]; then
			fill_on_node "$scratch" "$node" "$disk_mib"
		else
			dd if=/dev/zero of="$scratch" bs=1M count="$disk_mib" || fail infrastructure "cannot fill the memory disk"
		fi
		record fact disk "null_blk memory_backed, $disk_mib MiB, $(nproc) queues, prewritten${node:+ on node $node}$scaled"
	fi
	sectors=$(blockdev --getsz "$scratch")
	key=$(od -An -v -N64 -tx1 /dev/urandom | tr -d ' \n')
	table="0 $sectors crypt aes-xts-plain64"
	dmsetup create "$NAME" --table "$table $key 0 $scratch 0" || fail infrastructure "dmsetup refuses a dm-crypt table"
	[ -b "$DEVICE" ] || dmsetup mknodes
	[ -b "$DEVICE" ] || fail infrastructure "no device node $DEVICE"
	record fact dm_table "$table <key> 0 $scratch 0 (no flags)"
	folder=$(knob_folder) || return 0
	keep_initial "$folder"
}

remove_crypt_device() { # in teardown
	[ ! -e "$DEVICE" ] || dmsetup remove "$NAME" || fail infrastructure "cannot remove $DEVICE"
	drop_memory_disk wqlab-plain
}

describe() { # record facts about the environment
	record fact crypto_driver "$($AWK '$1 == "name" { n = $3 } $1 == "driver" { d = $3 }
		$1 == "priority" && n == "xts(aes)" && $3 >= best { best = $3; found = d } END { print found }' /proc/crypto)"
	record fact workqueue "$(basename "$1")"
	for file in max_active cpumask; do [ -r "$1/$file" ] && record fact "workqueue_$file" "$(cat "$1/$file")"; done
	shard=$(cat "${SYS:-/sys}/module/workqueue/parameters/cache_shard_size" 2>/dev/null) || return 0
	record fact cache_shard_size "$shard cores" # of a shard, chosen at boot by workqueue.cache_shard_size (Linux 7.1)
}

# The CPUs of each pod, as its workers are allowed them while the scope is strict: "0-3 4-7". Pools that are shared with
# other workqueues outlive a change of scope, and their idle workers keep our name: lists of all CPUs, when not strict.
# Pods have no CPU in common, so a list is none when a shorter one has a CPU of it.
pods() {
	$AWK '$1 == "Name:" { ours = $2 ~ /^kworker\/u.*kcryptd[-\/]/ }
		$1 != "Cpus_allowed_list:" || !ours || $2 in size { next }
		{
			list = $2; size[list] = 0
			for (n = split(list, ranges, ","); n; n--) {
				last = split(ranges[n], ends, "-")
				for (cpu = ends[1] + 0; cpu <= ends[last] + 0; cpu++) { size[list]++; cpus[list] = cpus[list] " " cpu }
			}
			n = split(cpus[list], each, " ")
			for (; n; n--) if (!(each[n] in least) || size[list] < least[each[n]]) least[each[n]] = size[list]
		}
		END {
			for (list in size) {
				pod = 1
				for (n = split(cpus[list], each, " "); n; n--) if (least[each[n]] < size[list]) pod = 0
				if (pod) print list
			}
		}' "$PROC"/[0-9]*/status 2>/dev/null | sort -n | tr '\n' ' '
}

issuers() { # print the number of issuers: a share of the CPUs (ISSUERS_PER_CPU=1/3) or a root of their number (ISSUERS_POWER=1/3)
	cpus=$(nproc)
	if [ -n "${ISSUERS_POWER:-}" ]; then
		count=$($AWK "BEGIN { printf \"%d\", $cpus ^ ($ISSUERS_POWER) + 0.5 }")
	else
		count=$((cpus * ${ISSUERS_PER_CPU%/*} / ${ISSUERS_PER_CPU#*/}))
	fi
	[ "$count" -ge 1 ] || count=1
	echo "$count"
}

regions() { # set jobs and region_k, a job's share of the disk; false, with a record, if the disk is too small
	jobs=$(issuers)
	bytes=$(blockdev --getsize64 "$DEVICE")
	region=$((bytes / jobs / 1048576))
	[ "${REGION_MIB:-0}" -gt 0 ] && [ "$region" -gt "$REGION_MIB" ] && region=$REGION_MIB
	# shellcheck disable=SC2034  # for the scripts
	region_k=$((region * 1024))
	[ "$region" -ge 1 ] && return 0
	record unsupported '*' "a disk of $((bytes / 1048576)) MiB is too small for a region of 1 MiB for each of $jobs issuers"
	return 1
}

localize() { # FOLDER: workers moved to the CPU that issued the work; posted with the affinity scopes, and not taken
	[ "${SETTING_LOCAL:-0}" = 0 ] && [ ! -e "$1/localize" ] && return 0
	if [ ! -w "$1/localize" ]; then
		record unsupported '*' "localization was never merged: kernel $(uname -r) cannot turn it on"
		return 1
	fi
	choose "$1" local "$SETTING_LOCAL" localize
}

settings() { # FOLDER: apply the settings; false, with a record, if the kernel does not
	describe "$1"
	for knob in scope strict; do
		if [ ! -w "$1/affinity_$knob" ]; then
			record unsupported '*' "kernel $(uname -r) has no affinity_$knob for $(basename "$1")"
			return 1
		fi
	done
	localize "$1" && apply "$1" scope "$SETTING_SCOPE" affinity_scope && apply "$1" strict "$SETTING_STRICT" affinity_strict
}

use_settings() { # apply the settings, and set folder to kcryptd's, or to nothing; false, with a record, if the kernel does not
	[ -b "$DEVICE" ] || fail infrastructure "the dm-crypt device $DEVICE does not exist"
	if folder=$(knob_folder); then
		settings "$folder"
	elif [ "$SETTING_SCOPE,$SETTING_STRICT" = default,default ]; then
		record setting scope default # nothing to write, so this needs no sysfs
		record setting strict default
	else # before 6.10 kcryptd has no folder; before 6.5 none has scopes
		record unsupported '*' "kernel $(uname -r) has no affinity_scope for kcryptd: that workqueue is not in sysfs"
		return 1
	fi
}

check_settings() { # report the pods, and the settings after the workload
	[ "$SETTING_STRICT" != 1 ] || record fact "${SETTING_SCOPE}_pods" "$(pods)"
	if [ -z "$folder" ]; then
		record setting_after scope default
		record setting_after strict default
		return 0
	fi
	after "$folder" scope "$SETTING_SCOPE" affinity_scope
	after "$folder" strict "$SETTING_STRICT" affinity_strict
	[ ! -e "$folder/localize" ] || record setting_after local "$(read_knob "$folder/localize")"
}
