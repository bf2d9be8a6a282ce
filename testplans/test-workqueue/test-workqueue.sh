#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel's own workqueue benchmark, lib/test_workqueue.c: a thread on each CPU queues works to one unbound workqueue,
# in each affinity scope. It runs while it is loaded, prints to the kernel's log and refuses to stay.
# usage: test-workqueue.sh setup|measure|teardown
set -u
# shellcheck source=../common/device.sh
. "$(dirname "$0")/device.sh"

setup() {
	need insmod dmesg
	if [ -f test_workqueue.absent ]; then record fact test_workqueue "$(cat test_workqueue.absent)"; fi
}

# Print the module's output in the kernel's log from its last run. It ends with EAGAIN, "temporarily unavailable", and
# busybox's insmod then tries a second way to load it: it runs twice there. With CONFIG_PRINTK_CALLER a second bracket
# stands right behind that of the time: "[    1.234567][    T1] ".
benchmark() {
	dmesg -c >/dev/null
	insmod ./test_workqueue.ko wq_items="$ITEMS" 2>"$WORK/refusal"
	dmesg | sed -n 's/^\(\[[^]]*\] *\)*\(test_workqueue: .*\)$/\2/p' |
		$AWK '/ running [0-9]+ threads/ { said = "" } { said = said $0 "\n" } END { printf "%s", said }'
}

measure() {
	if [ ! -f test_workqueue.ko ]; then
		record unsupported '*' "this tree has no lib/test_workqueue.c ($(cat test_workqueue.absent))"
		return 0
	fi
	record command "insmod test_workqueue.ko wq_items=$ITEMS"
	settle
	before=$(cpu_times)
	window begin
	benchmark >"$WORK/benchmark"
	window end
	cpu_records "$before" "$(cpu_times)"
	if [ ! -s "$WORK/benchmark" ]; then
		record unsupported '*' "kernel $(uname -r) does not run module test_workqueue: $(cat "$WORK/refusal")"
		return 0
	fi
	frame benchmark <"$WORK/benchmark"
}

teardown() { [ ! -d /sys/module/test_workqueue ] || rmmod test_workqueue; }

case ${1:-} in
setup | measure | teardown) "$1" ;;
*) fail infrastructure "usage: $0 setup|measure|teardown" ;;
esac
