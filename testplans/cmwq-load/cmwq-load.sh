#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A load on many per-CPU workqueues (the lab's module cmwq_load), and an encoder that competes for the same CPU.
# usage: cmwq-load.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

LOAD=${LOAD:-/sys/kernel/debug/cmwq_load}
CLIP=$WORK/clip

make_clip() { # make CLIP_FRAMES raw pictures of a scrolling texture, with the same bytes on every device
	mkdir -p "$WORK"
	# A fixed generator over a pattern, so that there is detail to encode; never 0, which some awks do not print.
	LC_ALL=C $AWK -v width="$WIDTH" -v height="$HEIGHT" 'BEGIN {
		noise = 1
		for (y = 0; y < height; y++) for (x = 0; x < width; x++) {
			noise = (noise * 16807) % 2147483647
			printf "%c", 16 + (x * y + 3 * x + 5 * y + noise % 32) % 219
		} }' >"$WORK/plane"
	pixels=$((WIDTH * HEIGHT))
	[ "$(wc -c <"$WORK/plane")" -eq "$pixels" ] || fail infrastructure "$AWK does not print bytes"
	head -c $((pixels / 4)) "$WORK/plane" >"$WORK/colour"
	i=0
	while [ "$i" -lt "$CLIP_FRAMES" ]; do
		echo FRAME
		scrolled "$WORK/plane" $((2 * i * WIDTH % pixels))
		scrolled "$WORK/colour" $((i * WIDTH / 2 % (pixels / 4)))
		scrolled "$WORK/colour" 0
		i=$((i + 1))
	done >"$CLIP"
	rm "$WORK/plane" "$WORK/colour"
}

scrolled() { # FILE BYTES: print the file rotated by BYTES
	tail -c +$(($2 + 1)) "$1"
	head -c "$2" "$1"
}

feed() { # print the clip repeatedly
	echo "YUV4MPEG2 W$WIDTH H$HEIGHT F25:1 Ip A1:1 C420jpeg"
	i=0
	while [ "$i" -lt "$CLIP_TIMES" ]; do
		cat "$CLIP"
		i=$((i + 1))
	done
}

encode() { # CPU
	feed | taskset -c "$1" mpeg2enc -v 0 -M 0 -f 3 -b 4000 -o "$WORK/encoded" || fail infrastructure "mpeg2enc ended with status $?"
}

check_encoded() { # fail unless each repetition of this boot encodes the same clip to the same bytes
	[ -s "$WORK/encoded" ] || fail infrastructure "mpeg2enc wrote nothing"
	sum=$(sha256sum <"$WORK/encoded" | cut -c1-16)
	record fact encoded "$sum"
	[ -e "$WORK/first-sum" ] || echo "$sum" >"$WORK/first-sum"
	[ "$sum" = "$(cat "$WORK/first-sum")" ] ||
		fail kernel "the encoder's output is not that of this boot's first repetition: sum $sum, and $(cat "$WORK/first-sum") before"
}

start_load() { # REQUEST: write it by busybox, whose echo prints the error; returns at the end of the load
	busybox echo "$1" >"$LOAD/start"
}

refuses() { # REQUEST
	! start_load "$1" 2>/dev/null || fail infrastructure "module cmwq_load accepted the bad request '$1'"
}

last_cpu() { sed 's/.*[-,]//' /sys/devices/system/cpu/online; }

setup() {
	need mpeg2enc taskset busybox insmod
	make_clip
	record fact clip "$((CLIP_FRAMES * CLIP_TIMES)) pictures of ${WIDTH}x$HEIGHT"
	record fact encoder "mpeg2enc (mjpegtools), one thread, MPEG-2"
	record fact loaded_cpu "$(last_cpu)"
	check_allowed "a program started by taskset" "$(last_cpu)" \
		"$(taskset -c "$(last_cpu)" $AWK '$1 == "Cpus_allowed_list:" { print $2 }' /proc/self/status)"
	# Each measurement reports whether the module is available.
	load_module cmwq_load || return 0
	[ -w "$LOAD/start" ] || mount -t debugfs debugfs /sys/kernel/debug
	[ -w "$LOAD/start" ] || lack "this kernel has no debugfs (CONFIG_DEBUG_FS)"
	# Check that the module refuses invalid requests and still accepts a valid one afterwards.
	for bad in "" workload=2 "workload=6 burn=S duration_ms=9" "workload=0 burn=M duration_ms=9" \
		"workload=0 burn=S duration_ms=0" "workload=0 burn=S duration_ms=9 cpu=100000" "workload=0 burn=S duration_ms=9 sleeps=3" "pace=1"; do
		refuses "$bad"
	done
	start_load "workload=5 burn=S duration_ms=1" || fail infrastructure "module cmwq_load refuses a good request after bad ones"
}

sleeps_of() { # once|twice: print how often a work sleeps
	case $1 in twice) echo 2 ;; *) echo 1 ;; esac
}

measure() {
	load_module cmwq_load || return 0
	cpu=$(last_cpu)
	request="workload=$WORKLOAD burn=$BURN duration_ms=$DURATION_MS cpu=$cpu seed=$SEED sleeps=$(sleeps_of "$SETTING_SLEEPS")"
	record command "echo '$request' >$LOAD/start & taskset -c $cpu mpeg2enc -v 0 -M 0 -f 3 -b 4000 -o encoded <clip"
	settle
	before=$(cpu_times)
	window begin
	start_load "$request" &
	load=$!
	began=$(seconds)
	encode "$cpu"
	ended=$(seconds)
	wait "$load" || fail infrastructure "module cmwq_load refused '$request': $(dmesg | grep cmwq_load | tail -n 1)"
	window end
	cpu_records "$before" "$(cpu_times)"
	frame load <"$LOAD/result"
	# The module's result says what its works did.
	case $(sed -n 's/^sleeps //p' "$LOAD/result") in 1) slept=once ;; 2) slept=twice ;; *) slept=unknown ;; esac
	record setting sleeps "$slept"
	record setting_after sleeps "$slept"
	echo "$began $ended" | $AWK '{ printf "value\tencode_seconds\t%.2f\n", $2 - $1 }' >&3
	check_encoded
	record value kworkers "$(cat /proc/[0-9]*/comm 2>/dev/null | grep '^kworker/' | grep -vc '^kworker/R-')"
	rm "$WORK/encoded"
}

teardown() {
	rm -f "$CLIP"
	[ ! -d /sys/module/cmwq_load ] || rmmod cmwq_load || fail infrastructure "cannot remove module cmwq_load"
}

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
