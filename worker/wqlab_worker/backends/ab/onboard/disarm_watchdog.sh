#!/bin/sh
# Keep a watchdog that arm_watchdog.sh started from restarting the machine: sh -s SECONDS MODULE. Not all hardware can stop it, so
# it is fed until the machine restarts.
modprobe -r "$2"
modprobe "$2" heartbeat="$1"
for dog in /sys/class/watchdog/watchdog*; do
	[ "$(cat "$dog/timeout")" != "$1" ] ||
		setsid sh -c "while printf w; do sleep 20; done >/dev/${dog##*/}" </dev/null >/dev/null 2>&1 &
done
