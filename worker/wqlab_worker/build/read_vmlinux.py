"""Print the offsets that `wqmon` needs for the kernel whose vmlinux is the first argument. Runs inside the sandbox.

The output is one JSON object: key -> offset in bytes, count or index; or `{"lacking": REASON}` for a kernel without
counters. drgn reads them from the debug information of this build, because offsets differ between versions and
configurations.
"""

from __future__ import annotations

import json
import sys

import drgn

STATS = {
    "started": "PWQ_STAT_STARTED",
    "completed": "PWQ_STAT_COMPLETED",
    "cpu_us": "PWQ_STAT_CPU_TIME",
    "cpu_intensive": "PWQ_STAT_CPU_INTENSIVE",
    "cm_wakeups": "PWQ_STAT_CM_WAKEUP",
    "repatriated": "PWQ_STAT_REPATRIATED",
    "mayday": "PWQ_STAT_MAYDAY",
    "rescued": "PWQ_STAT_RESCUED",
}
"""Our names for `enum pool_workqueue_stats` of kernel/workqueue.c (since Linux 6.5; some members came later)."""


def read_layout(vmlinux: str) -> dict[str, int | str]:
    """Return the offsets by key, or the reason under the key "lacking"."""
    program = drgn.Program()
    module = program.extra_module("vmlinux", create=True)
    module.try_file(vmlinux, force=True)
    try:
        enumerators = program.type("enum pool_workqueue_stats").enumerators
    except LookupError:
        return {"lacking": "this kernel counts nothing per workqueue (before Linux 6.5, or no debug information)"}
    known = dict(enumerators or ())
    workqueue, pool = program.type("struct workqueue_struct"), program.type("struct pool_workqueue")
    found: dict[str, int | str] = {}
    for kind, struct, names in (
        ("workqueue_struct", workqueue, ("list", "pwqs", "name")),
        ("pool_workqueue", pool, ("pwqs_node", "stats", "nr_in_flight")),
    ):
        for name in names:
            found[f"{kind}.{name}"] = struct.member(name).bit_offset // 8
    found["workqueue_struct.name.size"] = drgn.sizeof(workqueue.member("name").type)
    for name in ("stats", "nr_in_flight"):
        found[f"pool_workqueue.{name}.count"] = pool.member(name).type.length or 0
    for name, enumerator in STATS.items():
        if enumerator in known:
            found[f"stat.{name}"] = known[enumerator]
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(read_layout(sys.argv[1])))
    except Exception as error:  # debug information that drgn cannot read does not fail the build
        print(json.dumps({"lacking": f"its debug information cannot be read: {error}"[:300]}))
