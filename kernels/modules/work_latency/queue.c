// SPDX-License-Identifier: GPL-2.0-only
/*
 * A workqueue for each kind of work. They exist as long as the module, so that
 * the affinity scope of the unbound one can be set in sysfs before a request.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/printk.h>

#include "work_latency.h"

#ifdef HAVE_WQ_PERCPU
#define PER_CPU WQ_PERCPU
#else
#define PER_CPU 0
#endif
#ifdef HAVE_WQ_BH_PERCPU
#define BH_FLAGS (WQ_BH | WQ_PERCPU)
#else
#define BH_FLAGS WQ_BH
#endif

const char * const kind_names[NR_KINDS] = {
	[KIND_PERCPU] = "percpu",
	[KIND_HIGHPRI] = "highpri",
	[KIND_CPU_INTENSIVE] = "cpu_intensive",
	[KIND_BH] = "bh",
	[KIND_UNBOUND] = "unbound",
	[KIND_ORDERED] = "ordered",
	[KIND_DELAYED] = "delayed",
	[KIND_RESCUER] = "rescuer",
};

static struct workqueue_struct *queues[NR_KINDS];
static struct workqueue_struct *blockers;

struct workqueue_struct *queue_of(enum kind kind)
{
	return queues[kind];
}

bool kind_is_bound(enum kind kind)
{
	return kind != KIND_UNBOUND && kind != KIND_ORDERED;
}

struct workqueue_struct *blocker_queue(void)
{
	return blockers;
}

static struct workqueue_struct *create(enum kind kind)
{
	switch (kind) {
	case KIND_PERCPU:
	case KIND_DELAYED:
		return alloc_workqueue("work_latency-%s", PER_CPU, 0,
				       kind_names[kind]);
	case KIND_HIGHPRI:
		return alloc_workqueue("work_latency-%s", PER_CPU | WQ_HIGHPRI,
				       0, kind_names[kind]);
	case KIND_CPU_INTENSIVE:
		return alloc_workqueue("work_latency-%s",
				       PER_CPU | WQ_CPU_INTENSIVE, 0,
				       kind_names[kind]);
	case KIND_RESCUER:
		return alloc_workqueue("work_latency-%s",
				       PER_CPU | WQ_MEM_RECLAIM, 0,
				       kind_names[kind]);
	case KIND_UNBOUND:
		/* Its name in sysfs. */
		return alloc_workqueue("work_latency", WQ_UNBOUND | WQ_SYSFS, 0);
	case KIND_ORDERED:
		return alloc_ordered_workqueue("work_latency-%s", 0,
					       kind_names[kind]);
	case KIND_BH:
#ifdef HAVE_WQ_BH
		return alloc_workqueue("work_latency-%s", BH_FLAGS, 0,
				       kind_names[kind]);
#endif
	default:
		return NULL;
	}
}

static bool is_optional(enum kind kind)
{
#ifdef HAVE_WQ_BH
	return false;
#else
	return kind == KIND_BH;
#endif
}

void queues_destroy(void)
{
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++) {
		if (queues[kind])
			destroy_workqueue(queues[kind]);
		queues[kind] = NULL;
	}
	if (blockers)
		destroy_workqueue(blockers);
	blockers = NULL;
}

int queues_create(void)
{
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++) {
		queues[kind] = create(kind);
		if (!queues[kind] && !is_optional(kind)) {
			pr_err("cannot create the workqueue of kind %s\n",
			       kind_names[kind]);
			goto fail;
		}
	}
	blockers = alloc_workqueue("work_latency-blockers", PER_CPU, 0);
	if (blockers)
		return 0;
	pr_err("cannot create the workqueue of blockers\n");
fail:
	queues_destroy();
	return -ENOMEM;
}
