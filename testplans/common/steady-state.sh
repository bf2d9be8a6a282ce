# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# From which interval on a rate is stable, by the rule in docs/plans/queue-rate.md. Sourced after device.sh.

steady_state() { # read lines `NUMBER NS WORKS`; print DROPPED STABLE WORKS NS ALL_WORKS
	$AWK '
		function rate(from, to,  i, ns, works) {
			for (i = from; i < to; i++) { ns += length_ns[i]; works += done[i] }
			return works / ns
		}
		{ length_ns[$1] = $2; done[$1] = $3; all += $3 }
		END {
			n = NR
			for (dropped = 0; dropped <= n / 2 && dropped + 3 < n && !stable; dropped++) {
				later = rate(dropped + 3, n)
				difference = rate(dropped, dropped + 3) - later
				stable = (difference < 0 ? -difference : difference) <= 0.05 * later
			}
			dropped = stable ? dropped - 1 : int(n / 2)
			for (i = dropped; i < n; i++) { ns += length_ns[i]; works += done[i] }
			printf "%d %d %.0f %.0f %.0f\n", dropped, stable, works, ns, all
		}'
}

steady_rate() { # UNIT FILE: set steady to what steady_state prints of a file of intervals, and record each interval's rate as a fact
	# shellcheck disable=SC2034  # for the scripts
	steady=$(steady_state <"$2")
	record fact "rate $(cell)" "$(echo "$steady" | $AWK -v unit="$1" '
		FNR == NR { dropped = $1; stable = $2; next }
		{ rates = rates sprintf(" %.0f", 1e9 * $3 / $2); n++ }
		END { print (stable ? "stable after " dropped : "not stable; figures of the last " n - dropped) " of " n " intervals, " unit ":" rates }' - "$2")"
}
