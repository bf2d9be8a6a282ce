# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# For plans that measure something while each CPU executes works of per-CPU workqueues (the lab's module cmwq_load).
# Sourced after device.sh. Parameters: WORKLOAD and SEED of the module; LOAD_MS, the time of one load.

LOAD=${LOAD:-/sys/kernel/debug/cmwq_load}
OVER=$WORK/over # exists when what is measured has ended

prepare_load() { # in setup; each measurement with a load reports whether the module is available
	[ -f cmwq_load.ko ] && load_module cmwq_load || return 0
	[ -w "$LOAD/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$LOAD/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
}

start_load() { # DURATION_MS: load all online CPUs; returns at the end of the load. Busybox's echo prints the error
	request="workload=$WORKLOAD burn=S duration_ms=$1 cpu=all seed=$SEED"
	busybox echo "$request" >"$LOAD/start" || fail infrastructure "module cmwq_load refused '$request': $(dmesg | grep cmwq_load | tail -n 1)"
}

under_load() { # loads of LOAD_MS, one after the other, until OVER exists: their results follow one another
	: >"$WORK/loads"
	while [ ! -e "$OVER" ]; do
		start_load "$LOAD_MS"
		cat "$LOAD/result" >>"$WORK/loads"
	done
}

begin_load() { # load all CPUs in the background
	rm -f "$OVER"
	under_load &
	load=$!
	sleep 0.2 # nothing reports that the load has begun
}

end_load() {
	: >"$OVER"
	wait "$load" || exit 1
}

load_result() { frame loads <"$WORK/loads"; }

remove_load() { # in teardown
	[ ! -d /sys/module/cmwq_load ] || rmmod cmwq_load || fail infrastructure "cannot remove module cmwq_load"
}
