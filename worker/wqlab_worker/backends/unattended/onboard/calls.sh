# shellcheck shell=sh
# Probe the kernel and run the calls of a boot, whose results go to files in $out. A backend's own script reads this file:
# it sets boot, block, arm and out, defines `finish_call NUMBER ACTION STARTED`, which runs after each call, and then
# calls run_calls. Afterwards `failed` is not empty if a call failed.
# shellcheck disable=SC2034,SC2154,SC2317  # the backend's script sets out and reads failed; the list calls `call`
lab=/lab
mkdir -p "$out"

now() { cut -d' ' -f1 /proc/uptime; }

failed='' unsupported='' skipped=''
run_calls() {
	sh $lab/probe >"$out/probe" 2>"$out/probe.err"
	# Beside $out, because /run cannot be written on every golden system, and the archive needs no second copy.
	changes=$out.conditions
	RECORD=$changes sh $lab/conditions >"$out/conditions" 2>"$out/conditions.err"
	# Status 75 (TOO_HOT) says that a required condition is not met: the worker reads which one. After another failure it
	# sees in the output what was not set, so the boot is measured.
	[ $? != 75 ] || failed=1
	[ ! -d "$lab/for/$arm" ] || cp -R "$lab/for/$arm/." $lab/plan/
	# shellcheck source=/dev/null
	. "$lab/calls/$block"
	[ ! -s $lab/restore ] || RECORD=$changes sh $lab/restore >"$out/restored" 2>&1
}

call() { # NUMBER LIMIT_S MONITORED CELL ACTION [NAME=VALUE...]: script_calls.py lists the calls
	number=$1 limit=$2 monitored=$3 cell=$4 action=$5
	shift 5
	[ -z "$failed$unsupported" ] && [ "$cell" != "$skipped" ] || return 0
	script=$lab/plan/$(cat $lab/script)
	[ "$monitored" = 0 ] || script="$lab/plan/monitor.sh $script"
	started=$(now)
	# Full path: for `sh`, busybox's env would run its own applet, which would use busybox's awk.
	# shellcheck disable=SC2086  # the monitor and the script are two words
	(cd $lab/plan && exec timeout -s KILL "$limit" env "$@" /bin/sh $script "$action") >"$out/$number.out" 2>"$out/$number.err"
	status=$?
	echo "$status $started $(now)" >"$out/$number.status"
	if [ $status = 137 ]; then
		dmesg -c >/dev/null
		echo w >/proc/sysrq-trigger
		dmesg | tail -n 200 >"$out/$number.blocked"
	fi
	if grep -q '^unsupported	\*	' "$out/$number.out"; then
		[ "$action" = setup ] && unsupported=1 || skipped=$cell
	fi
	# An unsupported setup is not a failure, whatever its exit status.
	[ $status = 0 ] || [ -n "$unsupported" ] || failed=1
	! grep -q '^failed	' "$out/$number.out" || failed=1
	finish_call "$number" "$action" "$started"
}
