// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work functions and what they count.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "cmwq_load.h"

/* How long a work may wait while no other work of the load makes progress. */
#define STARVED_NS	(5ULL * NSEC_PER_SEC)

const struct shape_spec load_shapes[NR_SHAPES] = {
	[SHORT]  = { { 50, 1 },   1,  10, 3 },
	[MEDIUM] = { { 50, 2 },  10,  50, 2 },
	[LONG]   = { { 50, 4 }, 100, 250, 1 },
};

static unsigned int random_up_to(struct load_work *work, unsigned int limit)
{
	return prandom_u32_state(&work->random) % (limit + 1);
}

void load_queue_after(struct load_work *work, unsigned int delay_ms)
{
	struct workqueue_struct *wq = work->queue->wq;
	unsigned long delay = msecs_to_jiffies(delay_ms);
	bool steady = cpus_read_trylock();
	bool queued;

	work->due_ns = ktime_get_ns() + jiffies_to_nsecs(delay);
	atomic_inc(&work->run->queued);
	/* A timer on a CPU that has gone offline would not fire. */
	if (steady && cpu_online(work->cpu))
		queued = queue_delayed_work_on(work->cpu, wq, &work->dwork, delay);
	else
		queued = queue_delayed_work(wq, &work->dwork, delay);
	if (steady)
		cpus_read_unlock();
	if (!queued)
		atomic_inc(&work->run->refused);
}

static void raise_to(atomic_t *peak, int value)
{
	int old = atomic_read(peak);

	while (value > old && !atomic_try_cmpxchg(peak, &old, value))
		;
}

static bool is_rescuer(const struct task_struct *task)
{
	/* Before Linux 6.8 a rescuer had the name of its workqueue. */
	return strncmp(task->comm, "kworker/", 8) ||
	       !strncmp(task->comm, "kworker/R-", 10);
}

static void count_worker(struct load_state *run)
{
	if (is_rescuer(current))
		atomic_inc(&run->rescued);
	else if (!xa_insert(&run->seen, current->pid, xa_mk_value(1),
			    GFP_KERNEL))
		atomic_inc(&run->workers);
}

static void enter(struct load_work *work)
{
	struct lane *lane = &work->run->lanes[work->cpu];
	u64 now = ktime_get_ns();
	u64 wait = now > work->due_ns ? now - work->due_ns : 0;

	spin_lock(&lane->lock);
	/* No other work of the load used the CPU, and still this one waited. */
	if (now > max(work->due_ns, lane->progress_ns) + STARVED_NS)
		lane->starved++;
	lane->progress_ns = now;
	lane->peak = max(lane->peak, ++lane->inside);
	lane->entered++;
	lane->wait_ns += wait;
	lane->wait_max_ns = max(lane->wait_max_ns, wait);
	spin_unlock(&lane->lock);
}

static void note_progress(struct load_work *work, bool leave)
{
	struct lane *lane = &work->run->lanes[work->cpu];

	spin_lock(&lane->lock);
	lane->progress_ns = ktime_get_ns();
	if (leave)
		lane->inside--;
	spin_unlock(&lane->lock);
}

void load_work_fn(struct work_struct *item)
{
	struct load_work *work = container_of(to_delayed_work(item),
					      struct load_work, dwork);
	struct load_state *run = work->run;
	unsigned int burn_us = load_shapes[work->shape].burn_us[run->request.burn];
	unsigned int first_us = random_up_to(work, burn_us);
	unsigned int sleep_ms, resched_ms;

	sleep_ms = random_up_to(work, 2 * load_shapes[work->shape].mean_sleep_ms);
	resched_ms = random_up_to(work, 2 * load_shapes[work->shape].mean_resched_ms);

	if (atomic_inc_return(&work->inside) > 1)
		atomic_inc(&run->reentered);
	raise_to(&run->queue_peak,
		 atomic_inc_return(&work->queue->inside[work->cpu]));
	if (raw_smp_processor_id() != work->cpu)
		atomic_inc(&run->misplaced);
	enter(work);
	count_worker(run);

	if (run->request.sleeps == 1) {
		udelay(first_us);
		msleep(sleep_ms);
		note_progress(work, false);
		udelay(burn_us - first_us);
	} else {
		unsigned int first_ms = random_up_to(work, sleep_ms);

		msleep(first_ms);
		note_progress(work, false);
		udelay(burn_us);
		msleep(sleep_ms - first_ms);
	}

	note_progress(work, true);
	atomic_dec(&work->queue->inside[work->cpu]);
	atomic_dec(&work->inside);
	atomic_inc(&run->executed);
	if (--work->cycles_left) {
		if (!READ_ONCE(run->stopping))
			load_queue_after(work, resched_ms);
	} else if (atomic_dec_and_test(&run->unfinished)) {
		complete(&run->done);
	}
}

void load_guest_fn(struct work_struct *item)
{
	struct load_queue *queue = container_of(item, struct load_queue, guest);
	struct load_state *run = queue->run;

	count_worker(run);
	atomic_inc(&run->guests);
	wake_up_all(&run->meeting);
	/* Wait for meet(): a free worker would take another guest. */
	wait_event(run->meeting, atomic_read(&run->guests) >= run->nr_queues);
}

