#!/bin/sh
# Start a watchdog that keeps running across kexec: sh -s SECONDS MODULE... Print the module that drives it.
# A driver stops its watchdog at a restart. So the driver is loaded with nowayout, and taken off the device afterwards: the device
# counts on until the kernel under test feeds it. Exit status 1 if none of the modules drives a watchdog; why is the last line on
# standard error.
seconds=$1
shift
reason="the machine has none of $*"
dogs() { for each in /sys/class/watchdog/watchdog*; do [ ! -e "$each" ] || printf '%s ' "${each##*/}"; done; }
# A watchdog that the firmware started is fed by the kernel, and its driver cannot be unloaded until it is stopped.
for dog in $(dogs); do printf V >"/dev/$dog"; done
for module; do
	modprobe -r "$module" || reason="$module cannot be unloaded"
	before=" $(dogs)"
	modprobe "$module" nowayout=1 heartbeat="$seconds" || continue
	for dog in $(dogs); do
		case $before in *" $dog "*) continue ;; esac
		reason="$module cannot keep its watchdog running for $seconds s"
		[ "$(cat "/sys/class/watchdog/$dog/timeout")" -ge "$seconds" ] || continue
		# Not every driver names its device in /sys/class/watchdog.
		for unbind in "/sys/module/$module/drivers"/*/*/driver/unbind; do
			[ -w "$unbind" ] || continue
			device=${unbind%/driver/unbind}
			# Opening it starts it, and closing it cannot stop it.
			printf w >"/dev/$dog" || continue
			echo "${device##*/}" >"$unbind"
			echo "$module"
			exit 0
		done
	done
	modprobe -r "$module"
done
echo "$reason" >&2
exit 1
