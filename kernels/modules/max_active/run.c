// SPDX-License-Identifier: GPL-2.0-only
/*
 * A run: its works, and the count of those in execution at once. A work counts
 * from the begin to the end of its function, which is within the time for which
 * the kernel counts it as active, so more than the limit are never counted
 * unless the kernel exceeded the limit.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "max_active.h"

struct group *group_of(struct active_run *run, unsigned int domain,
		       unsigned int queue)
{
	return &run->result->groups[domain * run->nr_queues + queue];
}

void delay_add(struct delays *delays, u64 ns)
{
	delays->sum_ns += ns;
	delays->max_ns = max(delays->max_ns, ns);
	delays->works++;
}

void hold(const struct active_run *run)
{
	unsigned int us = run->request.hold_us;

	if (us)
		usleep_range(us, us + us / 8 + 1);
}

/* Count the time since the last change. */
static void count_time(struct active_run *run, struct group *group, u64 now)
{
	if (run->draining && group->queued > group->started) {
		group->waiting_ns += now - group->counted_ns;
		if (group->running >= group->wanted)
			group->full_ns += now - group->counted_ns;
	}
	group->counted_ns = now;
}

static void begin(struct item *item)
{
	struct active_run *run = item->run;
	struct group *group = item->group;
	u64 now;

	raw_spin_lock(&run->lock);
	now = ktime_get_ns();
	count_time(run, group, now);
	item->started = true;
	group->started++;
	group->running++;
	if (!group->unlimited)
		group->peak = max(group->peak, group->running);
	if (run->stepping && group->freed_ns) {
		delay_add(&run->result->delays, now - group->freed_ns);
		group->freed_ns = 0;
	}
	run->events++;
	raw_spin_unlock(&run->lock);
	wake_up(&run->changed);
}

static void end(struct item *item)
{
	struct active_run *run = item->run;
	struct group *group = item->group;

	raw_spin_lock(&run->lock);
	group->freed_ns = ktime_get_ns();
	count_time(run, group, group->freed_ns);
	item->ended = true;
	group->running--;
	group->ended++;
	run->events++;
	raw_spin_unlock(&run->lock);
	wake_up(&run->changed);
}

static void execute(struct work_struct *work)
{
	struct item *item = container_of(work, struct item, work);

	begin(item);
	item->body(item);
	end(item);
}

struct item *item_take(struct active_run *run, struct group *group,
		       unsigned int cpu, void (*body)(struct item *item))
{
	struct item *item = NULL;

	raw_spin_lock(&run->lock);
	/* The shapes say beforehand how many they need. */
	if (!run->aborted && !WARN_ON_ONCE(run->used >= run->nr_items)) {
		item = &run->items[run->used++];
		memset(item, 0, sizeof(*item));
		INIT_WORK(&item->work, execute);
		init_completion(&item->released);
		INIT_LIST_HEAD(&item->held);
		item->run = run;
		item->group = group;
		item->cpu = cpu;
		item->body = body;
	}
	raw_spin_unlock(&run->lock);
	return item;
}

void item_queue(struct item *item)
{
	struct active_run *run = item->run;

	raw_spin_lock(&run->lock);
	item->queued_ns = ktime_get_ns();
	item->seen = run->greedy;
	count_time(run, item->group, item->queued_ns);
	item->group->queued++;
	raw_spin_unlock(&run->lock);
	/* Also for unbound workqueues: the CPU decides which limit applies. */
	queue_work_on(item->cpu, run->wq[item->group->queue], &item->work);
}

bool all_ended(struct active_run *run)
{
	unsigned int i;

	for (i = 0; i < run->result->nr_groups; i++)
		if (run->result->groups[i].ended != run->result->groups[i].queued)
			return false;
	return true;
}

static bool is_done(struct active_run *run, bool (*done)(struct active_run *run),
		    unsigned int *events)
{
	bool found;

	raw_spin_lock(&run->lock);
	found = done(run);
	*events = run->events;
	raw_spin_unlock(&run->lock);
	return found;
}

int await(struct active_run *run, bool (*done)(struct active_run *run))
{
	unsigned long stall = msecs_to_jiffies(run->request.stall_ms);
	unsigned int events;
	long left;

	while (!is_done(run, done, &events)) {
		left = wait_event_killable_timeout(run->changed,
						   READ_ONCE(run->events) != events,
						   stall);
		if (left < 0)
			return -EINTR;
		if (!left)
			return is_done(run, done, &events) ? 0 : -ETIME;
	}
	return 0;
}

/* Let all works end, and forget those that have not started. */
static void stop(struct active_run *run)
{
	unsigned int i;

	raw_spin_lock(&run->lock);
	run->draining = true;
	run->aborted = true;
	raw_spin_unlock(&run->lock);
	/* No item is taken from here on. */
	for (i = 0; i < run->used; i++)
		complete_all(&run->items[i].released);
	/* In this order: a work queues only items that were taken after its own. */
	for (i = 0; i < run->used; i++)
		cancel_work_sync(&run->items[i].work);
}

void items_return(struct active_run *run)
{
	unsigned int i;

	/* The functions have ended; wait until their workers know. */
	for (i = 0; i < run->used; i++)
		flush_work(&run->items[i].work);
	run->used = 0;
}

static void sum_up(struct active_run *run)
{
	struct active_result *result = run->result;
	unsigned int i;

	for (i = 0; i < result->nr_groups; i++) {
		struct group *group = &result->groups[i];

		group->executed = group->ended;
		result->queued += group->queued;
		result->executed += group->executed;
		if (group->peak > group->limit)
			result->excess += group->peak - group->limit;
		result->waiting_ns += group->waiting_ns;
		result->full_ns += group->full_ns;
	}
	result->lost = result->queued - result->executed;
}

static void make_groups(struct active_run *run)
{
	unsigned int domain, queue;

	run->result->nr_groups = run->nr_domains * run->nr_queues;
	for (domain = 0; domain < run->nr_domains; domain++) {
		for (queue = 0; queue < run->nr_queues; queue++) {
			struct group *group = group_of(run, domain, queue);

			group->place = run->domains[domain].place;
			group->limit = run->domains[domain].limit;
			group->wanted = group->limit;
			group->queue = queue;
			INIT_LIST_HEAD(&group->held);
		}
	}
}

static const struct shape_functions {
	unsigned int (*items)(const struct active_run *run);
	int (*perform)(struct active_run *run);
} shapes[NR_SHAPES] = {
	[SHAPE_FAN] = { fan_items, fan },
	[SHAPE_NESTED] = { chain_items, chains },
	[SHAPE_CROSSED] = { chain_items, chains },
	[SHAPE_FAIR] = { fair_items, fair },
	[SHAPE_SHARES] = { fair_items, shares },
};

static unsigned int queues_of(const struct request *request)
{
	switch (request->shape) {
	case SHAPE_CROSSED:
		return 2;
	case SHAPE_FAIR:
	case SHAPE_SHARES:
		return request->queues;
	default:
		return 1;
	}
}

static int perform(struct active_run *run)
{
	const struct shape_functions *shape = &shapes[run->request.shape];
	u64 began;
	int error;

	error = queues_create(run);
	if (error)
		return error;
	make_groups(run);
	run->nr_items = shape->items(run);
	run->items = kvcalloc(run->nr_items, sizeof(*run->items), GFP_KERNEL);
	if (!run->items)
		return -ENOMEM;
	began = ktime_get_ns();
	error = shape->perform(run);
	run->result->elapsed_ns = ktime_get_ns() - began;
	sum_up(run);
	stop(run);
	return error;
}

int active_run(const struct request *request, struct active_result *result)
{
	struct active_run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
	int error;

	if (!run)
		return -ENOMEM;
	run->request = *request;
	run->result = result;
	run->nr_queues = queues_of(request);
	/* One worker pool. */
	if (request->shape == SHAPE_FAIR || request->shape == SHAPE_SHARES)
		run->request.cpus = 1;
	result->request = *request;
	raw_spin_lock_init(&run->lock);
	init_waitqueue_head(&run->changed);
	error = perform(run);
	kvfree(run->items);
	kvfree(run);
	return error;
}
