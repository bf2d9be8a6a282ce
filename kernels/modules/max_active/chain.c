// SPDX-License-Identifier: GPL-2.0-only
/*
 * shape=nested: chains of works. Each work queues `fillers` works that end after
 * hold_us, then the next work of its chain on the same workqueue, and sleeps until
 * that one has ended. There is one chain for each limit, and the works of a chain
 * are queued on the CPUs of the limit in turn. By default a chain is as deep as
 * the kernel guarantees: max_active, or 8 (WQ_DFL_MIN_ACTIVE) if that is less.
 *
 * shape=crossed: the same over two workqueues with WQ_MEM_RECLAIM in turn, with
 * as many works of the chain on each.
 *
 * A chain has to end. If nothing starts or ends for stall_ms, it is deadlocked: the
 * limits are raised so that it ends, and it counts as revived if that helps.
 *
 * Delays are from queueing a work of the chain to its start.
 */
#include <linux/completion.h>
#include <linux/errno.h>
#include <linux/minmax.h>

#include "max_active.h"

/* Enough deadlocks to tell; each takes stall_ms. */
#define MOST_DEADLOCKS	3
/* The depth that Linux 6.9 and later guarantee to unbound workqueues. */
#define GUARANTEED	8

static void filler_body(struct item *item)
{
	if (!READ_ONCE(item->run->aborted))
		hold(item->run);
}

static void link_body(struct item *item);

static struct domain *domain_of(const struct item *item)
{
	struct active_run *run = item->run;

	return &run->domains[(item->group - run->result->groups) / run->nr_queues];
}

/* Take the work of this level of a chain; it alternates between CPUs and workqueues. */
static struct item *take_link(struct active_run *run, unsigned int domain,
			      unsigned int level)
{
	const struct domain *issuers = &run->domains[domain];
	struct item *item;

	item = item_take(run, group_of(run, domain, level % run->nr_queues),
			 issuers->cpus[level % issuers->nr_cpus], link_body);
	if (item)
		item->level = level;
	return item;
}

static void link_body(struct item *item)
{
	struct active_run *run = item->run;
	unsigned int domain = domain_of(item) - run->domains;
	struct item *next;
	unsigned int i;

	raw_spin_lock(&run->lock);
	delay_add(&run->result->delays, ktime_get_ns() - item->queued_ns);
	raw_spin_unlock(&run->lock);
	if (READ_ONCE(run->aborted) || item->level + 1 == run->result->depth)
		goto end;
	next = take_link(run, domain, item->level + 1);
	if (!next)
		goto end;
	/* The fillers compete with the next work for the same places. */
	for (i = 0; i < run->request.fillers; i++) {
		struct item *filler = item_take(run, next->group, next->cpu,
						filler_body);

		if (filler)
			item_queue(filler);
	}
	item_queue(next);
	wait_for_completion(&next->released);
end:
	complete(&item->released);
}

static unsigned int depth_of(const struct active_run *run)
{
	unsigned int limit = run->request.max_active ?: WQ_DFL_ACTIVE;

	if (run->request.depth)
		return run->request.depth;
	return run->nr_queues * min_t(unsigned int, limit, GUARANTEED);
}

unsigned int chain_items(const struct active_run *run)
{
	return run->nr_domains * depth_of(run) * (run->request.fillers + 1);
}

static int run_round(struct active_run *run)
{
	struct active_result *result = run->result;
	struct item *heads[MAX_ISSUERS];
	unsigned int domain, stuck = 0;
	int error;

	for (domain = 0; domain < run->nr_domains; domain++) {
		heads[domain] = take_link(run, domain, 0);
		if (!heads[domain])
			return -EINTR;
	}
	for (domain = 0; domain < run->nr_domains; domain++)
		item_queue(heads[domain]);
	result->chains += run->nr_domains;
	error = await(run, all_ended);
	if (error != -ETIME)
		return error;
	for (domain = 0; domain < run->nr_domains; domain++)
		stuck += !READ_ONCE(heads[domain]->ended);
	result->deadlocks += stuck;
	queues_widen(run);
	error = await(run, all_ended);
	if (!error)
		result->revived += stuck;
	queues_restore(run);
	return error;
}

int chains(struct active_run *run)
{
	unsigned int round;
	int error = 0;

	run->result->depth = depth_of(run);
	for (round = 0; round < run->request.rounds && !error; round++) {
		error = run_round(run);
		if (run->result->deadlocks >= MOST_DEADLOCKS)
			break;
		if (!error)
			items_return(run);
	}
	return error == -EINTR ? error : 0;
}
