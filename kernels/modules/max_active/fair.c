// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several workqueues whose works execute in one worker pool. All works are issued
 * on one CPU, by a work that is not preempted. Each is busy until all of them are
 * issued, and then for burn_us: otherwise the first ones would end meanwhile where a
 * pool has many CPUs, and workqueues that are issued later would seem to starve.
 *
 * shape=fair: one workqueue has `works` works at once. Each of the others has one
 * work at a time, `polite` times: a work queues the next one when it ends. The works
 * of the greedy workqueue that start between queueing and start of a polite work
 * have overtaken it. Polite works count that are queued before the last greedy one
 * starts. Delays are from queueing a polite work to its start.
 *
 * shape=shares: each workqueue has `works` works at once, one workqueue after the
 * other. When the first workqueue has executed all of them, the workqueue that has
 * executed fewest counts. Delays are from queueing to start.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/time64.h>

#include "max_active.h"

static void burn(const struct active_run *run)
{
	u64 until;

	while (!READ_ONCE(run->issued) && !READ_ONCE(run->aborted))
		cpu_relax();
	until = ktime_get_ns() + (u64)run->request.burn_us * NSEC_PER_USEC;
	while (ktime_get_ns() < until && !READ_ONCE(run->aborted))
		cpu_relax();
}

static void greedy_body(struct item *item)
{
	struct active_run *run = item->run;

	raw_spin_lock(&run->lock);
	run->greedy++;
	raw_spin_unlock(&run->lock);
	burn(run);
}

static void polite_body(struct item *item);

static void queue_polite(struct active_run *run, struct group *group,
			 unsigned int cpu, unsigned int level)
{
	struct item *item = item_take(run, group, cpu, polite_body);

	if (item) {
		item->level = level;
		item_queue(item);
	}
}

static void note_overtaking(struct item *item)
{
	struct active_run *run = item->run;
	struct active_result *result = run->result;
	unsigned int overtaken;

	raw_spin_lock(&run->lock);
	overtaken = run->greedy - item->seen;
	if (item->seen < run->request.works) {
		result->polite++;
		result->overtaken += overtaken;
		result->overtaken_max = max(result->overtaken_max, overtaken);
	}
	delay_add(&result->delays, ktime_get_ns() - item->queued_ns);
	raw_spin_unlock(&run->lock);
}

static void polite_body(struct item *item)
{
	struct active_run *run = item->run;

	note_overtaking(item);
	burn(run);
	if (item->level + 1 < run->request.polite)
		queue_polite(run, item->group, item->cpu, item->level + 1);
}

static void share_body(struct item *item)
{
	struct active_run *run = item->run;
	unsigned int i, queue = item->group->queue;
	unsigned int least = run->request.works;

	raw_spin_lock(&run->lock);
	delay_add(&run->result->delays, ktime_get_ns() - item->queued_ns);
	raw_spin_unlock(&run->lock);
	burn(run);
	raw_spin_lock(&run->lock);
	if (++run->done[queue] == run->request.works && !run->one_is_done) {
		run->one_is_done = true;
		for (i = 0; i < run->nr_queues; i++)
			least = min(least, run->done[i]);
		run->result->least_served = least;
	}
	raw_spin_unlock(&run->lock);
}

static void issue_queue(struct active_run *run, unsigned int queue,
			unsigned int cpu, void (*body)(struct item *item))
{
	unsigned int i;

	for (i = 0; i < run->request.works; i++) {
		struct item *item = item_take(run, group_of(run, 0, queue), cpu, body);

		if (item)
			item_queue(item);
	}
}

static void issue_fair(struct item *item)
{
	unsigned int queue;

	preempt_disable();
	issue_queue(item->run, 0, item->cpu, greedy_body);
	for (queue = 1; queue < item->run->nr_queues; queue++)
		queue_polite(item->run, group_of(item->run, 0, queue), item->cpu, 0);
	WRITE_ONCE(item->run->issued, true);
	preempt_enable();
}

static void issue_shares(struct item *item)
{
	unsigned int queue;

	preempt_disable();
	for (queue = 0; queue < item->run->nr_queues; queue++)
		issue_queue(item->run, queue, item->cpu, share_body);
	WRITE_ONCE(item->run->issued, true);
	preempt_enable();
}

unsigned int fair_items(const struct active_run *run)
{
	const struct request *request = &run->request;

	if (request->shape == SHAPE_SHARES)
		return 1 + request->queues * request->works;
	return 1 + request->works + (request->queues - 1) * request->polite;
}

static int issue(struct active_run *run, void (*body)(struct item *item))
{
	struct item *item = item_take(run, group_of(run, 0, 0),
				      run->domains[0].cpus[0], body);
	int error;

	if (item)
		item_queue(item);
	error = await(run, all_ended);
	return error == -EINTR ? error : 0;
}

int fair(struct active_run *run)
{
	return issue(run, issue_fair);
}

int shares(struct active_run *run)
{
	return issue(run, issue_shares);
}
