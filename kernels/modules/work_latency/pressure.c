// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory pressure, for rescuers: a pool whose workers all sleep needs a new
 * worker, and creating one needs memory.
 *
 * Take all memory above the reserves, then put works to sleep on one CPU until
 * the pool needs a worker that kthreadd has no memory for. As nothing can be
 * reclaimed, its allocation reaches the OOM killer. A notifier there keeps
 * kthreadd until the end of the pressure (at most PRESSURE_MS), so that nobody
 * creates a thread, and then returns the memory. Other tasks that come there
 * retry, so no process is killed.
 *
 * Requests are serialized by the caller.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "work_latency.h"

/* The longest time for which memory is held, once all of it is taken. */
#define PRESSURE_MS	20000
/* More workers than caches of tasks and stacks have room for. */
#define NR_BLOCKERS	256
/* How long to wait for a worker that is being created. */
#define CREATION_MS	10000
#define LARGEST_ORDER	9

/* Neither waits nor is retried nor warns; may use a part of the reserves. */
#define TAKE_FLAGS (__GFP_IO | __GFP_FS | __GFP_NORETRY | __GFP_NOWARN)

struct blocker {
	struct work_struct work;
	bool started;
};

static struct blocker blockers[NR_BLOCKERS];
static unsigned int nr_queued;
static DECLARE_WAIT_QUEUE_HEAD(changed);	/* one of the following */
static bool released;
static bool kthreadd_is_stuck;
static struct list_head taken[LARGEST_ORDER + 1];
static DEFINE_SPINLOCK(taken_lock);	/* protects taken */
static unsigned long deadline;

static void block(struct work_struct *item)
{
	WRITE_ONCE(container_of(item, struct blocker, work)->started, true);
	wake_up_all(&changed);
	wait_event(changed, READ_ONCE(released));
}

static void take_memory(void)
{
	int order;

	for (order = LARGEST_ORDER; order >= 0; order--) {
		struct page *page;

		while ((page = alloc_pages(TAKE_FLAGS, order))) {
			spin_lock(&taken_lock);
			list_add(&page->lru, &taken[order]);
			spin_unlock(&taken_lock);
			cond_resched();
		}
	}
}

static void return_memory(void)
{
	int order;

	for (order = 0; order <= LARGEST_ORDER; order++) {
		struct page *page, *next;
		LIST_HEAD(these);

		spin_lock(&taken_lock);
		list_splice_init(&taken[order], &these);
		spin_unlock(&taken_lock);
		list_for_each_entry_safe(page, next, &these, lru) {
			list_del(&page->lru);
			__free_pages(page, order);
		}
	}
}

static int out_of_memory_notice(struct notifier_block *block,
				unsigned long unused, void *freed)
{
	long left = READ_ONCE(deadline) - jiffies;

	if (left > 0 && !strcmp(current->comm, "kthreadd")) {
		WRITE_ONCE(kthreadd_is_stuck, true);
		wake_up_all(&changed);
		wait_event_timeout(changed, READ_ONCE(released), left);
		return_memory();
	} else if (left > 0) {
		schedule_timeout_uninterruptible(1);
	} else {
		return_memory();
	}
	/* Also if no memory was returned: nobody is to be killed. */
	*(unsigned long *)freed += 1;
	return NOTIFY_OK;
}

static struct notifier_block oom_notifier = {
	.notifier_call = out_of_memory_notice,
};

static bool registered;

static bool is_settled(const struct blocker *blocker)
{
	return READ_ONCE(blocker->started) || READ_ONCE(kthreadd_is_stuck);
}

int pressure_begin(unsigned int cpu)
{
	int order, error;

	for (order = 0; order <= LARGEST_ORDER; order++)
		INIT_LIST_HEAD(&taken[order]);
	nr_queued = 0;
	WRITE_ONCE(released, false);
	WRITE_ONCE(kthreadd_is_stuck, false);
	WRITE_ONCE(deadline, jiffies + msecs_to_jiffies(PRESSURE_MS));
	error = register_oom_notifier(&oom_notifier);
	if (error)
		return error;
	registered = true;
	take_memory();
	/* To take and clear hundreds of GiB can last longer than the pressure may. */
	WRITE_ONCE(deadline, jiffies + msecs_to_jiffies(PRESSURE_MS));
	while (nr_queued < NR_BLOCKERS) {
		struct blocker *blocker = &blockers[nr_queued++];

		INIT_WORK(&blocker->work, block);
		WRITE_ONCE(blocker->started, false);
		queue_work_on(cpu, blocker_queue(), &blocker->work);
		/* Memory that was freed meanwhile. */
		take_memory();
		wait_event_timeout(changed, is_settled(blocker),
				   msecs_to_jiffies(CREATION_MS));
		if (READ_ONCE(kthreadd_is_stuck))
			return nr_queued - 1;
		if (!READ_ONCE(blocker->started))
			break;
	}
	return -EAGAIN;
}

void pressure_end(void)
{
	unsigned int i;

	if (!registered)
		return;
	WRITE_ONCE(released, true);
	wake_up_all(&changed);
	return_memory();
	for (i = 0; i < nr_queued; i++)
		flush_work(&blockers[i].work);
	unregister_oom_notifier(&oom_notifier);
	registered = false;
}
