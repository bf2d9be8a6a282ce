# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# awk functions that read the tracer's `trace` file, for scripts that reduce a trace of works.
# usage: $AWK "$TRACE_FUNCTIONS"'PROGRAM' "$TRACING/trace"
# Linux prints a line as `TASK-PID [CPU] FLAGS SECONDS: EVENT: FIELDS`.
# shellcheck disable=SC2016,SC2034  # $0 is awk's; the scripts use the variable

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
