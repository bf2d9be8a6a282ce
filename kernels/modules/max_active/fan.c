// SPDX-License-Identifier: GPL-2.0-only
/*
 * shape=fan: a work queues `works` others on its workqueue, on each CPU that its
 * limit applies to, together more than the limit. They hold their places until all
 * that the limit allows are in execution. Then one work of each limit after the
 * other ends, `steps` times, and another one has to start each time. Then all end,
 * each after hold_us.
 *
 * Nothing of that depends on how fast the CPUs are. Delays are from the end of a
 * work to the start of the one that takes its place, in the steps.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/minmax.h>

#include "max_active.h"

/* For how long works may start that the limit does not allow. */
#define GRACE_MS	50

static void fan_body(struct item *item)
{
	struct active_run *run = item->run;

	raw_spin_lock(&run->lock);
	if (run->draining) {
		raw_spin_unlock(&run->lock);
	} else {
		list_add_tail(&item->held, &item->group->held);
		raw_spin_unlock(&run->lock);
		wait_for_completion(&item->released);
	}
	if (!READ_ONCE(run->stepping) && !READ_ONCE(run->aborted))
		hold(run);
}

static void issue_body(struct item *item)
{
	struct active_run *run = item->run;
	const struct domain *domain = &run->domains[item->group - run->result->groups];
	unsigned int i, cpu;

	for (i = 0; i < run->request.works; i++) {
		for (cpu = 0; cpu < domain->nr_cpus; cpu++) {
			struct item *child = item_take(run, item->group,
						       domain->cpus[cpu], fan_body);

			if (child)
				item_queue(child);
		}
	}
}

unsigned int fan_items(const struct active_run *run)
{
	unsigned int domain, items = 0;

	for (domain = 0; domain < run->nr_domains; domain++)
		items += 1 + run->domains[domain].nr_cpus * run->request.works;
	return items;
}

/* One issuer for each limit: a second one would have to wait for a place. */
static void issue_all(struct active_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_domains; i++) {
		const struct domain *domain = &run->domains[i];
		struct group *group = group_of(run, i, 0);
		struct item *item;

		group->wanted = min(group->limit, domain->nr_cpus * run->request.works);
		item = item_take(run, group, domain->cpus[0], issue_body);
		if (item)
			item_queue(item);
	}
}

/* Each issuer has ended, and as many works as possible hold their places. */
static bool is_full(struct active_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_domains; i++) {
		const struct group *group = group_of(run, i, 0);

		if (!group->ended || group->running < group->wanted)
			return false;
	}
	return true;
}

static bool places_are_taken(struct active_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_domains; i++) {
		const struct group *group = group_of(run, i, 0);

		if (group->ended < group->due ||
		    group->running < min(group->reached, group->queued - group->ended))
			return false;
	}
	return true;
}

static void note_reached(struct active_run *run)
{
	unsigned int i;

	raw_spin_lock(&run->lock);
	for (i = 0; i < run->nr_domains; i++) {
		struct group *group = group_of(run, i, 0);

		group->reached = min(group->running, group->wanted);
		if (group->running < group->wanted)
			run->result->deficit += group->wanted - group->running;
	}
	raw_spin_unlock(&run->lock);
}

/* End the work of a group that has held its place longest. False: no work waits for it. */
static bool free_place(struct active_run *run, struct group *group)
{
	struct item *item = NULL;

	raw_spin_lock(&run->lock);
	group->freed_ns = 0;
	if (group->queued > group->started)
		item = list_first_entry_or_null(&group->held, struct item, held);
	if (item) {
		list_del_init(&item->held);
		group->due = group->ended + 1;
	}
	raw_spin_unlock(&run->lock);
	if (!item)
		return false;
	run->result->slots++;
	complete(&item->released);
	return true;
}

static int take_steps(struct active_run *run)
{
	unsigned int step, i;
	int error = 0;

	WRITE_ONCE(run->stepping, true);
	for (step = 0; step < run->request.steps && !error; step++) {
		for (i = 0; i < run->nr_domains && !error; i++)
			if (free_place(run, group_of(run, i, 0)))
				error = await(run, places_are_taken);
	}
	WRITE_ONCE(run->stepping, false);
	if (error == -ETIME) {
		run->result->slots_lost++;
		return 0;
	}
	return error;
}

static void drain(struct active_run *run)
{
	struct item *item, *next;
	u64 now = ktime_get_ns();
	unsigned int i;

	raw_spin_lock(&run->lock);
	run->draining = true;
	for (i = 0; i < run->nr_domains; i++) {
		struct group *group = group_of(run, i, 0);

		group->counted_ns = now;
		list_for_each_entry_safe(item, next, &group->held, held) {
			list_del_init(&item->held);
			complete(&item->released);
		}
	}
	raw_spin_unlock(&run->lock);
}

int fan(struct active_run *run)
{
	int error;

	issue_all(run);
	error = await(run, is_full);
	if (error == -EINTR)
		return error;
	msleep(GRACE_MS);
	note_reached(run);
	error = take_steps(run);
	if (error)
		return error;
	drain(run);
	error = await(run, all_ended);
	return error == -EINTR ? error : 0;
}
