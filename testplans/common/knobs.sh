# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Functions for the knobs of a workqueue in sysfs: set them, read them back, and leave them as the kernel set them.
# Sourced after device.sh.

INITIAL=${INITIAL:-$WORK/initial} # prefix of the files with the knobs as the kernel set them

keep_initial() { # FOLDER: remember the workqueue's affinity knobs as the kernel set them
	for file in affinity_scope affinity_strict; do
		[ ! -r "$1/$file" ] || cat "$1/$file" >"$INITIAL.$file"
	done
}

read_knob() {
	value=
	read -r value <"$1"
	case $value in 'default ('*')') value=default ;; esac
	printf '%s\n' "$value"
}

choose() { # FOLDER KNOB VALUE SYSFS_NAME: set it, read it back, and report if the kernel uses another value
	echo "$3" >"$1/$4" 2>/dev/null || refused=yes
	now=$(read_knob "$1/$4")
	record setting "$2" "$now"
	[ "$now" = "$3" ] && return 0
	if [ "${refused:-}" = yes ]; then
		record unsupported '*' "kernel $(uname -r) refuses $4 $3"
	else
		record unsupported '*' "kernel $(uname -r) silently uses $4 $now when $3 is requested"
	fi
	return 1
}

leave() { # FOLDER KNOB SYSFS_NAME: the knob as the kernel set it
	initial=$(cat "$INITIAL.$3")
	# Also if it has that value: a write makes the workqueue's pools anew, and other settings are written too.
	echo "${initial%% (*}" >"$1/$3"
	now=$(cat "$1/$3")
	record fact "$3 by default" "$now"
	if [ "$now" = "$initial" ]; then
		record setting "$2" default
		return 0
	fi
	record setting "$2" "$now"
	record unsupported '*' "kernel $(uname -r) does not return $3 from a setting to its default, $initial: it is $now"
	return 1
}

apply() { # FOLDER KNOB VALUE SYSFS_NAME: apply the setting of a knob; false, with a record, if the kernel does not
	case $3 in
	default) leave "$1" "$2" "$4" ;;
	*) choose "$1" "$2" "$3" "$4" ;;
	esac
}

after() { # FOLDER KNOB VALUE SYSFS_NAME: report the knob after the workload
	if [ "$3" = default ] && [ "$(cat "$1/$4")" = "$(cat "$INITIAL.$4")" ]; then
		record setting_after "$2" default
	else
		record setting_after "$2" "$(read_knob "$1/$4")"
	fi
}
