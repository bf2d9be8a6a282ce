# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Traces of works, and awk functions that read the tracer's `trace` file, for scripts that reduce such a trace.
# Sourced after device.sh. usage: $AWK "$TRACE_FUNCTIONS"'PROGRAM' "$TRACING/trace"
# Linux prints a line as `TASK-PID [CPU] FLAGS SECONDS: EVENT: FIELDS`.
# shellcheck disable=SC2016,SC2034  # $0 is awk's; the scripts use the variable

trace_works() { # METRIC FILTER EVENT...: trace these events, and the queueing (if it passes the filter) and start of works.
	# Tracing is not on yet. False, with a record of the metric (`traced`: all), if this kernel lacks something.
	lacking=$1 filter=$2
	shift 2
	trace_reset || { record unsupported "$lacking" "this kernel has no tracefs"; return 1; }
	trace_write buffer_size_kb "$TRACE_KIB"
	trace_write trace_clock mono # one clock for all CPUs: a work's events can be on different ones
	trace_write options/hash-ptr 0
	trace_write events/workqueue/workqueue_queue_work/filter "$filter" ||
		{ record unsupported "$lacking" "this kernel's workqueue_queue_work names no workqueue"; return 1; }
	for event in workqueue/workqueue_queue_work workqueue/workqueue_execute_start "$@"; do
		trace_write "events/$event/enable" 1 ||
			{ record unsupported "$lacking" "this kernel has no event ${event#*/}"; return 1; }
	done
}

TRACE_FUNCTIONS='
	# Task names are arbitrary: the CPU is the bracket followed by flags and time.
	function find_place() { match($0, /\[[0-9]+\] [^ ]+ +[0-9]+\.[0-9]+: /) }
	function cpu(  text) { # without leading zeros: some awks read 010 as eight
		find_place(); text = substr($0, RSTART + 1); sub(/^0+/, "", text); return text + 0
	}
	function task(  text) { find_place(); text = substr($0, 1, RSTART - 1); sub(/ +$/, "", text); return text }
	function pid(  text) { text = task(); match(text, /[0-9]+$/); return substr(text, RSTART) }
	function time(  text) { find_place(); text = substr($0, RSTART, RLENGTH - 2); sub(/.* /, "", text); return text + 0 }
	function field(name) { # the value of NAME=VALUE
		if (!match($0, " " name "=[^ ]+")) return ""
		return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
	}
	function item(  text) { # the address of a work
		match($0, /work struct[ =][^ ]+/); text = substr($0, RSTART + 12, RLENGTH - 12); sub(/:$/, "", text)
		if (text ~ /ptrval/) hidden = 1
		return text
	}

	# Works that wait for their start: the CPU that queued them in `from`, the time in `at`. A work may be queued again
	# before the event of its start, because the kernel clears its pending flag shortly before it prints that event.
	function queue(w) { if (w in from) { next_from[w] = cpu(); next_at[w] = time() } else { from[w] = cpu(); at[w] = time() } }
	function end_wait(w) {
		delete from[w]
		if (w in next_from) { from[w] = next_from[w]; at[w] = next_at[w]; delete next_from[w] }
	}
	# Microseconds since a work or an inode was queued, rounded to three significant digits from 1 ms. Clocks of CPUs may
	# disagree.
	function waited_us(w,  us) {
		us = (time() - at[w]) * 1e6; if (us < 0) us = 0
		return us < 1000 ? int(us + 0.5) : int(sprintf("%.2e", us))
	}

	function print_counts(name, counts,  key) { print "begin\t" name; for (key in counts) printf "%s %d\n", key, counts[key]; print "end\t" name }
	function unreadable(unnamed) { # true, with a record, if this kernel does not say in its trace what the works are
		if (hidden) print "unsupported\ttraced\tthis kernel hides the work pointers in its trace"
		else if (unnamed) print "unsupported\ttraced\tthis kernel does not name the functions in its trace"
		return hidden || unnamed
	}'

# --- CPU time that was idle while work waited -------------------------------------------------------------------------
# The sum over the CPUs of the time in which a CPU was idle and a work item that could have run on it waited. An item waits
# from its activation, when `max_active` does not hold it back any more, until it starts. CPUs on which it could have run are
# those of its workqueue; `in scope` only those where its scope lets it run, which differ if the scope is strict.
# The kernel must have the events below, and their order in the trace must be that of their times.

trace_idle() { # also trace what idle_times needs; false, with a record, if this kernel lacks it
	for event in workqueue/workqueue_activate_work sched/sched_switch; do
		[ -d "$TRACING/events/$event" ] && continue
		record unsupported idle_while_work_waits_us "this kernel has no event ${event#*/}"
		record unsupported idle_in_scope_while_work_waits_us "this kernel has no event ${event#*/}"
		return 1
	done
	trace_write events/sched/sched_switch/filter 'prev_pid == 0 || next_pid == 0'
	trace_write events/workqueue/workqueue_activate_work/enable 1
	trace_write events/sched/sched_switch/enable 1
}

# awk: the program calls idle_activate(w) at an activation, idle_start(w) before end_wait(w) at a start, idle_switch() at a
# switch, and idle_records() at the end. Variables: `mask`, cpumask of the workqueue as sysfs has it; `online`, a list of CPUs;
# `pods`, lists of CPUs to which the scope confines items that their CPUs queue, or nothing if it confines none.
IDLE_FUNCTIONS='
	function cpu_list(text, set,  each, ends, i, c) { # 0-3,8
		for (i = split(text, each, ","); i; i--) {
			split(each[i] "-" each[i], ends, "-")
			for (c = ends[1] + 0; c <= ends[2] + 0; c++) set[c] = 1
		}
	}
	function in_mask(c,  digits, digit, bit) { # ffff,ffffffff
		digits = mask; gsub(/,/, "", digits)
		if (c + 0 >= 4 * length(digits)) return 0
		digit = index("0123456789abcdef", substr(digits, length(digits) - int(c / 4), 1)) - 1
		for (bit = c % 4; bit; bit--) digit = int(digit / 2)
		return digit % 2
	}
	function idle_setup(  all, c, i, each, list) {
		cpu_list(online, all)
		for (c in all) if (in_mask(c)) idle_cpus[c] = 1
		confined = split(pods, each, " ")
		for (i = 1; i <= confined; i++) {
			split("", list); cpu_list(each[i], list)
			for (c in list) idle_pod[c] = each[i]
		}
	}
	function idle_waited(p) { return idle_total[p] + (idle_waiting[p] > 0 ? idle_now - idle_since[p] : 0) }
	function idle_begin_wait(p) { if (!idle_waiting[p]++) idle_since[p] = idle_now }
	function idle_end_wait(p) { if (!--idle_waiting[p]) idle_total[p] += idle_now - idle_since[p] }
	function idle_activate(w,  c, k) {
		if (!(w in from)) return
		idle_now = time(); k = idle_items[w]++
		c = k && w in next_from ? next_from[w] : from[w]
		idle_of[w, k] = idle_pod[c]
		if (confined && idle_pod[c] == "") idle_lacking = 1
		idle_begin_wait("all"); idle_begin_wait(idle_of[w, k] " ")
	}
	function idle_start(w,  k) {
		if (!idle_items[w]) return
		idle_now = time(); idle_end_wait("all"); idle_end_wait(idle_of[w, 0] " ")
		k = --idle_items[w]
		if (k) idle_of[w, 0] = idle_of[w, 1]
	}
	function idle_ends(c) {
		if (!(c in idle_cpus)) return
		idle_sum += idle_waited("all") - idle_from[c]
		idle_scope_sum += idle_waited(idle_pod[c] " ") - idle_scope_from[c]
	}
	function idle_switch(  c) { # a CPU whose first switch is from its idle task was idle before
		c = cpu(); idle_now = time()
		if (field("prev_pid") == 0 && field("next_pid") != 0) {
			if (!(c in is_busy) || !is_busy[c]) idle_ends(c)
			is_busy[c] = 1
		} else if (field("next_pid") == 0) {
			is_busy[c] = 0; idle_from[c] = idle_waited("all"); idle_scope_from[c] = idle_waited(idle_pod[c] " ")
		}
	}
	function idle_records(  c) { # the trace ends with its last event
		for (c in idle_cpus) if (!(c in is_busy) || !is_busy[c]) idle_ends(c)
		printf "value\tidle_while_work_waits_us\t%.0f\n", idle_sum * 1e6
		if (idle_lacking) print "unsupported\tidle_in_scope_while_work_waits_us\tit is not known to which CPUs the scope confines all work"
		else printf "value\tidle_in_scope_while_work_waits_us\t%.0f\n", idle_scope_sum * 1e6
	}'
