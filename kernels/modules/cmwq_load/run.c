// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run a load: create the works, wait for them and collect the result.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include "cmwq_load.h"

#ifdef HAVE_WQ_PERCPU
#define PER_CPU WQ_PERCPU
#else
#define PER_CPU 0
#endif
/* Each load workqueue has a rescuer, so it makes progress without memory. */
#define LOAD_FLAGS (PER_CPU | WQ_MEM_RECLAIM)
/* No rescuer: it would hide that the pool starts too few workers. */
#define MEETING_FLAGS PER_CPU

/* A run without progress for this long has lost works. */
#define STALL_MS	30000

/* Groups of workqueues with the same works. */
static const struct group {
	unsigned int queues;
	unsigned int works[NR_SHAPES];
} workloads[NR_WORKLOADS][4] = {
	{ { 12, { 4 } }, { 2, { 2, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
	{ {  8, { 4 } }, { 2, { 2, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
	{ {  4, { 4 } }, { 2, { 2, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
	{ {  2, { 4 } }, { 2, { 2, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
	{ {  2, { 4 } }, { 2, { 0, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
	{ {  2, { 0, 2 } }, { 4, { 0, 2, 1 } }, { 8, { 0, 0, 1 } } },
};

static void free_run(struct load_state *run)
{
	unsigned int i;

	if (run->meeting_wq)
		destroy_workqueue(run->meeting_wq);
	for (i = 0; run->queues && i < run->nr_queues; i++) {
		if (run->queues[i].wq)
			destroy_workqueue(run->queues[i].wq);
		kfree(run->queues[i].inside);
	}
	xa_destroy(&run->seen);
	kvfree(run->lanes);
	kvfree(run->works);
	kfree(run->queues);
	kfree(run);
}

static void init_work(struct load_state *run, unsigned int index,
		      struct load_queue *queue, enum shape shape)
{
	unsigned int cycle_ms = load_shapes[shape].mean_sleep_ms +
				load_shapes[shape].mean_resched_ms;
	struct load_work *work = &run->works[index];

	INIT_DELAYED_WORK(&work->dwork, load_work_fn);
	work->run = run;
	work->queue = queue;
	work->shape = shape;
	work->cycles_left = max(1U, run->request.duration_ms / cycle_ms /
				    load_shapes[shape].factor);
	/* Own random numbers per work, so that they do not depend on the order. */
	prandom_seed_state(&work->random, ((u64)run->request.seed << 32) + index);
}

/* How often each work exists, so that a load of all CPUs has one for each CPU. */
static unsigned int copies_of_works(const struct request *request,
				    unsigned int nr_works)
{
	if (request->cpu != CPU_ALL)
		return 1;
	return DIV_ROUND_UP(num_online_cpus(), nr_works);
}

static struct load_state *make_run(const struct request *request)
{
	const struct group *groups = workloads[request->workload];
	struct load_state *run = kzalloc(sizeof(*run), GFP_KERNEL);
	unsigned int g, i, j, s, cpu, copies, q = 0, w = 0;

	if (!run)
		return NULL;
	run->request = *request;
	init_completion(&run->done);
	init_waitqueue_head(&run->meeting);
	xa_init(&run->seen);
	for (g = 0; g < ARRAY_SIZE(workloads[0]); g++) {
		run->nr_queues += groups[g].queues;
		for (s = 0; s < NR_SHAPES; s++)
			run->nr_works += groups[g].queues * groups[g].works[s];
	}
	copies = copies_of_works(request, run->nr_works);
	run->nr_works *= copies;
	run->queues = kcalloc(run->nr_queues, sizeof(*run->queues), GFP_KERNEL);
	run->works = kvcalloc(run->nr_works, sizeof(*run->works), GFP_KERNEL);
	run->lanes = kvcalloc(nr_cpu_ids, sizeof(*run->lanes), GFP_KERNEL);
	run->meeting_wq = alloc_workqueue("cmwq_load-meeting", MEETING_FLAGS,
					  run->nr_queues);
	if (!run->queues || !run->works || !run->lanes || !run->meeting_wq)
		goto fail;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		spin_lock_init(&run->lanes[cpu].lock);
	for (g = 0; g < ARRAY_SIZE(workloads[0]); g++) {
		for (i = 0; i < groups[g].queues; i++, q++) {
			struct load_queue *queue = &run->queues[q];

			queue->run = run;
			INIT_WORK(&queue->guest, load_guest_fn);
			queue->inside = kcalloc(nr_cpu_ids, sizeof(atomic_t),
						GFP_KERNEL);
			queue->wq = alloc_workqueue("cmwq_load-%02u", LOAD_FLAGS,
						    1, q);
			if (!queue->inside || !queue->wq)
				goto fail;
			for (s = 0; s < NR_SHAPES; s++)
				for (j = 0; j < groups[g].works[s] * copies; j++)
					init_work(run, w++, queue, s);
		}
	}
	return run;

fail:
	free_run(run);
	return NULL;
}

/* Assign a CPU to every work and queue all works. False: the CPU is offline. */
static bool begin(struct load_state *run)
{
	unsigned int i, cpu = run->request.cpu;

	cpus_read_lock();
	if (cpu != CPU_ALL && !cpu_online(cpu)) {
		cpus_read_unlock();
		return false;
	}
	if (cpu == CPU_ALL)
		cpu = cpumask_first(cpu_online_mask);
	for (i = 0; i < run->nr_works; i++) {
		run->works[i].cpu = cpu;
		if (run->request.cpu == CPU_ALL) {
			cpu = cpumask_next(cpu, cpu_online_mask);
			if (cpu >= nr_cpu_ids)
				cpu = cpumask_first(cpu_online_mask);
		}
	}
	cpus_read_unlock();
	atomic_set(&run->unfinished, run->nr_works);
	for (i = 0; i < run->nr_works; i++)
		load_queue_after(&run->works[i], 0);
	return true;
}

/* Return 0 when the load has ended, even with lost works; -EINTR if killed. */
static int await(struct load_state *run)
{
	long left;
	int before;

	do {
		before = atomic_read(&run->executed);
		left = wait_for_completion_killable_timeout(&run->done,
							    msecs_to_jiffies(STALL_MS));
	} while (!left && atomic_read(&run->executed) != before);
	return left < 0 ? -EINTR : 0;
}

static void stop(struct load_state *run)
{
	unsigned int i;

	WRITE_ONCE(run->stopping, true);
	for (i = 0; i < run->nr_works; i++)
		cancel_delayed_work_sync(&run->works[i].dwork);
}

/* Start a guest per queue on one CPU; return how many were there at once. */
static unsigned int meet(struct load_state *run)
{
	unsigned int i, met;

	for (i = 0; i < run->nr_queues; i++)
		queue_work_on(run->works[0].cpu, run->meeting_wq,
			      &run->queues[i].guest);
	wait_event_timeout(run->meeting,
			   atomic_read(&run->guests) >= run->nr_queues,
			   msecs_to_jiffies(MEETING_MS));
	/* The meeting is over: guests leave, and late guests do not wait. */
	met = atomic_xchg(&run->guests, run->nr_queues);
	wake_up_all(&run->meeting);
	for (i = 0; i < run->nr_queues; i++)
		cancel_work_sync(&run->queues[i].guest);
	return met;
}

static void fill_result(struct load_state *run, struct load_result *result)
{
	unsigned int cpu, entered = 0;
	u64 wait_ns = 0;

	result->request = run->request;
	result->queues = run->nr_queues;
	result->works = run->nr_works;
	result->queued = atomic_read(&run->queued);
	result->executed = atomic_read(&run->executed);
	result->refused = atomic_read(&run->refused);
	result->reentered = atomic_read(&run->reentered);
	result->misplaced = atomic_read(&run->misplaced);
	result->workers = atomic_read(&run->workers);
	result->rescued = atomic_read(&run->rescued);
	result->queue_peak = atomic_read(&run->queue_peak);
	for (cpu = 0; cpu < nr_cpu_ids; cpu++) {
		const struct lane *lane = &run->lanes[cpu];

		entered += lane->entered;
		wait_ns += lane->wait_ns;
		result->starved += lane->starved;
		result->cpu_peak = max(result->cpu_peak, lane->peak);
		result->wait_max_ns = max(result->wait_max_ns, lane->wait_max_ns);
	}
	if (entered)
		result->wait_mean_ns = div_u64(wait_ns, entered);
}

int load_run(const struct request *request, struct load_result *result)
{
	struct load_state *run = make_run(request);
	unsigned int i;
	u64 started;
	int error;

	if (!run)
		return -ENOMEM;
	*result = (struct load_result) {};
	for (i = 0; i < run->nr_works; i++)
		result->planned += run->works[i].cycles_left;
	started = ktime_get_ns();
	if (!begin(run)) {
		pr_warn("cpu=%u is not online\n", request->cpu);
		error = -EINVAL;
		goto out;
	}
	error = await(run);
	result->elapsed_ns = ktime_get_ns() - started;
	stop(run);
	if (!error) {
		result->met = meet(run);
		fill_result(run, result);
	}
out:
	free_run(run);
	return error;
}
