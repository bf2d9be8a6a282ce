# shellcheck shell=sh
# Functions that set, show and restore the conditions of a boot. condition_commands.py appends the calls.
# Each prints lines of path, old and new value, separated by tabs. POSIX sh; only built-in commands per file, because a
# server has thousands of these files.
# shellcheck disable=SC2034,SC2317  # condition_commands.py calls the functions and sets RECORD
RECORD=${RECORD:-/run/wqlab-conditions}
CPUS=/sys/devices/system/cpu

read_file() { # FILE: set found to its first line, or to the chosen word of a list as `always [madvise] never`
	found=
	read -r found 2>/dev/null <"$1" || [ -n "$found" ] || return 1 # some files end without a line feed
	case $found in *\[*\]*) found=${found#*\[} found=${found%%\]*} ;; esac
}

show_files() { # FILE...
	for file; do
		if read_file "$file"; then printf '%s\t%s\t%s\n' "$file" "$found" "$found"; fi
	done
}

set_files() { # VALUE FILE...: write where the value differs, and read again what the kernel made of it
	value=$1
	shift
	for file; do
		read_file "$file" || continue
		was=$found
		[ "$was" = "$value" ] || printf '%s\n' "$value" 2>/dev/null >"$file"
		read_file "$file"
		printf '%s\t%s\t%s\n' "$file" "$was" "$found"
	done
}

limit_idle() { # MICROSECONDS: disable all idle states with a longer exit latency, and enable the others
	for state in "$CPUS"/cpu[0-9]*/cpuidle/state[0-9]*; do
		read_file "$state/latency" || continue
		disabled=0
		[ "$found" -le "$1" ] || disabled=1
		show_files "$state/name" "$state/latency"
		set_files "$disabled" "$state/disable"
	done
}

show_counters() { # how often CPUs were throttled, and memory errors
	show_files "$CPUS"/cpu[0-9]*/thermal_throttle/core_throttle_count /sys/devices/system/edac/mc/mc[0-9]*/[cu]e_count
}

read_banks() { # have the kernel report corrected machine checks, whose banks it reads every five minutes without an interrupt
	interval=/sys/devices/system/machinecheck/machinecheck0/check_interval
	[ -w "$interval" ] || return 0
	echo 1 >"$interval"
	sleep 2 # no event reports that all banks were read
}

restore_files() { # write the old values of RECORD back
	[ -r "$RECORD" ] || return 0
	while IFS='	' read -r path was now; do
		case $path in /*) [ "$was" = "$now" ] || set_files "$was" "$path" ;; esac
	done <"$RECORD"
}

cool() { # BELOW_C SECONDS: wait until the hottest CPU is cooler; then print the sensors, and the seconds waited
	began=$(cut -d. -f1 /proc/uptime)
	while :; do
		read_sensors >"$RECORD.sensors"
		waited=$(($(cut -d. -f1 /proc/uptime) - began))
		hottest=$(hottest_sensor "$RECORD.sensors")
		if [ -z "$hottest" ] || [ "$waited" -ge "$2" ] || is_below "$hottest" "$1"; then break; fi
		sleep 5 # no event reports that a device has cooled down
	done
	cat "$RECORD.sensors"
	printf 'waited\t%d\n' "$waited"
}

is_below() { # MILLIDEGREES BELOW_C
	awk -v t="$1" -v limit="$2" 'BEGIN { exit !(t < limit * 1000) }'
}

hottest_sensor() { # FILE: print the same as temperature.hottest_celsius, in thousandths of a degree; nothing without a sensor
	awk -v cpu_names="$CPU_SENSORS" '
	{
		at = index($0, ":"); path = substr($0, 1, at - 1); text = substr($0, at + 1)
		folder = path; sub(/\/[^\/]*$/, "", folder)
	}
	path ~ /\/(type|name)$/ { if (tolower(text) ~ cpu_names) { cpu[folder] = 1; named = 1 } next }
	text ~ /^-?[0-9]+$/ && text + 0 >= -20000 && text + 0 <= 150000 { n++; folder_of[n] = folder; reading[n] = text }
	END {
		for (i = 1; i <= n; i++)
			if ((!named || folder_of[i] in cpu) && (most == "" || reading[i] + 0 > most + 0)) most = reading[i]
		print most
	}' "$1"
}
