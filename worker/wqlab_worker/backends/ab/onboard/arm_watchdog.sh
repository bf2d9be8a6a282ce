#!/bin/sh
# Start a watchdog that keeps running across kexec: sh -s SECONDS MODULE... Print the module that drives it.
# A driver stops its watchdog at a restart. So the driver is loaded with nowayout, and taken off the device afterwards: the device
# counts on until the kernel under test feeds it. Exit status 1 if none of the modules drives a watchdog.
seconds=$1
shift
for module; do
	modprobe -r "$module" 2>/dev/null
	modprobe "$module" nowayout=1 heartbeat="$seconds" 2>/dev/null || continue
	for dog in /sys/class/watchdog/watchdog*; do
		device=$(readlink -f "$dog/device") && driver=$(readlink -f "$device/driver/module") || continue
		[ "${driver##*/}" = "$module" ] && [ "$(cat "$dog/timeout")" -ge "$seconds" ] || continue
		# Opening it starts it; closing it cannot stop it.
		printf w >"/dev/${dog##*/}" && echo "${device##*/}" >"$device/driver/unbind" && echo "$module" && exit 0
	done 2>/dev/null
	modprobe -r "$module" 2>/dev/null
done
exit 1
