// SPDX-License-Identifier: GPL-2.0-only
/*
 * The workqueues of a request, made anew for each so that no earlier limit has
 * an effect, and to which works their limit applies. They remain until the next
 * request, for their files in sysfs.
 *
 * The limit of a per-CPU workqueue applies to each CPU. That of an unbound one
 * applies, since Linux 6.9, to the system: each node has a share of it according
 * to its CPUs, but at least 8 (or all of it, if it is less). Since Linux 6.6 it
 * applied to each CPU that queues, and before to each node. There, an unbound
 * workqueue with max_active 1 is ordered: one work in the whole system.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/topology.h>

#include "max_active.h"

#ifdef HAVE_WQ_PERCPU
#define PER_CPU WQ_PERCPU
#else
#define PER_CPU 0
#endif

const char * const kind_names[NR_KINDS] = {
	[KIND_PERCPU] = "percpu",
	[KIND_UNBOUND] = "unbound",
};

static struct workqueue_struct *queues[MAX_QUEUES];

#ifdef HAVE_MIN_ACTIVE
static unsigned int node_share(unsigned int limit, int node)
{
	unsigned int cpu, cpus = 0;

	for_each_online_cpu(cpu)
		cpus += cpu_to_node(cpu) == node;
	return clamp_t(unsigned int,
		       DIV_ROUND_UP(limit * cpus, num_online_cpus()),
		       min_t(unsigned int, limit, WQ_DFL_MIN_ACTIVE), limit);
}
#endif

/* Set the place to which the limit of works applies that are queued on a CPU. */
static const char *place_of(const struct request *request, unsigned int limit,
			    unsigned int cpu, struct domain *domain)
{
	domain->limit = limit;
	domain->place = -1;
	if (request->kind == KIND_PERCPU) {
		domain->place = cpu;
		return "each CPU";
	}
#ifdef HAVE_MIN_ACTIVE
	if (request->spans)
		return "the system";
	domain->place = cpu_to_node(cpu);
	domain->limit = node_share(limit, domain->place);
	return "the system, divided between its nodes";
#else
	if (limit == 1)
		return "the system";
#ifdef HAVE_AFFINITY_SCOPES
	domain->place = cpu;
	return "each CPU that queues";
#else
	domain->place = cpu_to_node(cpu);
	return "each node";
#endif
#endif
}

/* Add an issuing CPU to the domain that has the same limit, or to a new one. */
static void add_issuer(struct active_run *run, unsigned int limit, unsigned int cpu)
{
	struct domain found = { .place = -1 };
	struct domain *domain;
	unsigned int i;

	run->result->applies_to = place_of(&run->request, limit, cpu, &found);
	for (i = 0; i < run->nr_domains; i++)
		if (run->domains[i].place == found.place)
			break;
	domain = &run->domains[i];
	if (i == run->nr_domains) {
		*domain = found;
		run->nr_domains++;
	}
	if (run->request.limit)
		domain->limit = run->request.limit;
	domain->cpus[domain->nr_cpus++] = cpu;
}

/* Take CPUs at equal distances, so that all nodes have some. */
static void find_issuers(struct active_run *run)
{
	unsigned int online = num_online_cpus();
	unsigned int wanted = min3(run->request.cpus, online, (unsigned int)MAX_ISSUERS);
	unsigned int limit = run->request.max_active ?: WQ_DFL_ACTIVE;
	unsigned int cpu, seen = 0, taken = 0;

	for_each_online_cpu(cpu) {
		if (taken < wanted && seen >= taken * online / wanted) {
			add_issuer(run, limit, cpu);
			taken++;
		}
		seen++;
	}
}

void queues_destroy(void)
{
	unsigned int i;

	for (i = 0; i < MAX_QUEUES; i++) {
		if (queues[i])
			destroy_workqueue(queues[i]);
		queues[i] = NULL;
	}
}

int queues_create(struct active_run *run)
{
	const struct request *request = &run->request;
	unsigned int flags = WQ_SYSFS;
	unsigned int i;

	flags |= request->kind == KIND_UNBOUND ? WQ_UNBOUND : PER_CPU;
	if (request->shape == SHAPE_CROSSED)
		flags |= WQ_MEM_RECLAIM;
	queues_destroy();
	for (i = 0; i < run->nr_queues; i++) {
		queues[i] = alloc_workqueue("max_active-%u", flags,
					    request->max_active, i);
		if (!queues[i]) {
			pr_err("cannot create workqueue %u\n", i);
			queues_destroy();
			return -ENOMEM;
		}
		run->wq[i] = queues[i];
	}
	find_issuers(run);
	return 0;
}

void queues_widen(struct active_run *run)
{
	unsigned int i;

	raw_spin_lock(&run->lock);
	for (i = 0; i < run->result->nr_groups; i++)
		run->result->groups[i].unlimited = true;
	raw_spin_unlock(&run->lock);
	for (i = 0; i < run->nr_queues; i++)
		workqueue_set_max_active(run->wq[i], WQ_MAX_ACTIVE);
}

void queues_restore(struct active_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_queues; i++)
		workqueue_set_max_active(run->wq[i],
					 run->request.max_active ?: WQ_DFL_ACTIVE);
	raw_spin_lock(&run->lock);
	for (i = 0; i < run->result->nr_groups; i++)
		run->result->groups[i].unlimited = false;
	raw_spin_unlock(&run->lock);
}
