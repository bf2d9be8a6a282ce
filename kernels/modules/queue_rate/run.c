// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run producers, and collect what they counted in each interval.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/topology.h>

#include "queue_rate.h"

/* A work that was not executed for this long is lost. */
#define LOST_MS		30000
/* Two lines, because x86 CPUs prefetch the neighbour of a line. */
#define OWN_LINES	__aligned(128)

struct rate_run {
	/*
	 * The number of the current interval: below 0 before the first one, and
	 * the number of intervals when the producers have to stop. The producers
	 * read it for each work, and it changes once an interval.
	 */
	int interval OWN_LINES;
	int intervals;
	struct workqueue_struct *wq;

	struct completion ready OWN_LINES;	/* once for each producer */
	struct completion go;
	struct completion ended;		/* once for each producer */
	struct producer **producers;
	unsigned int nr_producers;
};

struct producer {
	struct rate_run *run OWN_LINES;
	struct task_struct *task;
	bool has_ended;

	/* Written by the worker too. */
	struct work_struct work OWN_LINES;
	u64 started_ns;
	struct completion done;

	/* Written by the producer only, until it has ended. */
	struct interval intervals[] OWN_LINES;
};

/*
 * Instructions that do nothing, by which the lab's instrumented devices know
 * that a window begins or ends (worker/wqlab_bench/guest/wqmark.h). Here they
 * leave the start and the end of the threads out of the window.
 */
static void mark_begin(void)
{
#if defined(CONFIG_X86_64)
	asm volatile(".byte 0x0f, 0x1f, 0x80, 2, 'L', 'Q', 'W'" ::: "memory");
#elif defined(CONFIG_ARM64)
	asm volatile("movz xzr, #0x5702" ::: "memory");
#endif
}

static void mark_end(void)
{
#if defined(CONFIG_X86_64)
	asm volatile(".byte 0x0f, 0x1f, 0x80, 3, 'L', 'Q', 'W'" ::: "memory");
#elif defined(CONFIG_ARM64)
	asm volatile("movz xzr, #0x5703" ::: "memory");
#endif
}

static void execute(struct work_struct *work)
{
	struct producer *producer = container_of(work, struct producer, work);

	producer->started_ns = ktime_get_ns();
	complete(&producer->done);
}

static void queue_until_stopped(struct producer *producer)
{
	struct rate_run *run = producer->run;

	for (;;) {
		struct interval *counts;
		u64 before, after;
		int interval;

		before = ktime_get_ns();
		queue_work(run->wq, &producer->work);
		after = ktime_get_ns();
		wait_for_completion(&producer->done);
		interval = READ_ONCE(run->interval);
		if (interval >= run->intervals)
			return;
		if (interval < 0)
			continue;
		counts = &producer->intervals[interval];
		counts->items++;
		histogram_add(&counts->queue, after - before);
		histogram_add(&counts->queue_to_start,
			      max(producer->started_ns, before) - before);
	}
}

static int produce(void *argument)
{
	struct producer *producer = argument;
	struct rate_run *run = producer->run;

	/* Move the lines of the counts into this CPU's cache. */
	memset(producer->intervals, 0,
	       array_size(run->intervals, sizeof(*producer->intervals)));
	complete(&run->ready);
	wait_for_completion(&run->go);
	queue_until_stopped(producer);
	WRITE_ONCE(producer->has_ended, true);
	complete(&run->ended);
	/* A thread that spins here would keep its CPU from the works of others. */
	set_current_state(TASK_IDLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_IDLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/*
 * Choose the producers' CPUs: the first ones, or at even steps in the order of
 * numbers. These do not share a core if there are enough cores.
 */
static int choose_cpus(const struct request *request, struct cpumask *chosen)
{
	unsigned int cpu, number = 0, taken = 0, all = num_online_cpus();
	unsigned int producers = request->producers ?: all;
	const struct cpumask *from = cpu_online_mask;
	cpumask_var_t cores;

	if (producers > all) {
		pr_warn("producers=%u: only %u CPUs are online\n", producers,
			all);
		return -EINVAL;
	}
	if (!zalloc_cpumask_var(&cores, GFP_KERNEL))
		return -ENOMEM;
	for_each_online_cpu(cpu)
		if (cpumask_first_and(topology_sibling_cpumask(cpu),
				      cpu_online_mask) == cpu)
			cpumask_set_cpu(cpu, cores);
	if (request->first) {
		all = producers;
	} else if (producers <= cpumask_weight(cores)) {
		from = cores;
		all = cpumask_weight(cores);
	}
	for_each_cpu(cpu, from) {
		if (taken == producers || number++ * producers / all != taken)
			continue;
		cpumask_set_cpu(cpu, chosen);
		taken++;
	}
	free_cpumask_var(cores);
	return 0;
}

static struct producer *make_producer(struct rate_run *run, unsigned int cpu)
{
	struct producer *producer;
	struct task_struct *task;

	producer = kvzalloc_node(struct_size(producer, intervals, run->intervals),
				 GFP_KERNEL, cpu_to_node(cpu));
	if (!producer)
		return NULL;
	producer->run = run;
	INIT_WORK(&producer->work, execute);
	init_completion(&producer->done);
	task = kthread_create_on_node(produce, producer, cpu_to_node(cpu),
				      "queue_rate/%u", cpu);
	if (IS_ERR(task)) {
		kvfree(producer);
		return NULL;
	}
	kthread_bind(task, cpu);
	producer->task = task;
	return producer;
}

static int make_producers(struct rate_run *run, const struct cpumask *cpus)
{
	unsigned int cpu;

	run->producers = kvcalloc(cpumask_weight(cpus), sizeof(*run->producers),
				  GFP_KERNEL);
	if (!run->producers)
		return -ENOMEM;
	for_each_cpu(cpu, cpus) {
		struct producer *producer = make_producer(run, cpu);

		if (!producer)
			return -ENOMEM;
		run->producers[run->nr_producers++] = producer;
	}
	return 0;
}

static void free_run(struct rate_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr_producers; i++) {
		kthread_stop(run->producers[i]->task);
		kvfree(run->producers[i]);
	}
	kvfree(run->producers);
	kfree(run);
}

/* Begin each interval at its time; return 0, or -EINTR if killed. */
static int count_intervals(struct rate_run *run, const struct request *request,
			   struct rate_result *result)
{
	ktime_t due = ktime_get();
	u64 began = 0;
	int i;

	for (i = 0; i <= run->intervals; i++) {
		u64 now;

		if (i) {
			due = ktime_add_us(due, request->interval_us);
			set_current_state(TASK_KILLABLE);
			schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS);
			__set_current_state(TASK_RUNNING);
			if (fatal_signal_pending(current))
				return -EINTR;
		} else if (request->mark) {
			mark_begin();
		}
		WRITE_ONCE(run->interval, i);
		now = ktime_get_ns();
		if (i)
			result->ns[i - 1] = now - began;
		began = now;
	}
	if (request->mark)
		mark_end();
	return 0;
}

/* Stop the producers, and return the number of works that were lost. */
static unsigned int stop_producers(struct rate_run *run)
{
	unsigned long end = jiffies + msecs_to_jiffies(LOST_MS);
	unsigned int i, ended, lost = 0;

	WRITE_ONCE(run->interval, run->intervals);
	for (ended = 0; ended < run->nr_producers; ended++) {
		long left = max_t(long, end - jiffies, 0);

		if (!wait_for_completion_timeout(&run->ended, left))
			break;
	}
	if (ended == run->nr_producers)
		return 0;
	for (i = 0; i < run->nr_producers; i++) {
		struct producer *producer = run->producers[i];

		if (READ_ONCE(producer->has_ended))
			continue;
		lost++;
		cancel_work_sync(&producer->work);
		complete(&producer->done);
	}
	for (; ended < run->nr_producers; ended++)
		wait_for_completion(&run->ended);
	return lost;
}

static void add_counts(struct interval *sum, const struct interval *counts)
{
	unsigned int i;

	sum->items += counts->items;
	for (i = 0; i < NR_BUCKETS; i++) {
		sum->queue.counts[i] += counts->queue.counts[i];
		sum->queue_to_start.counts[i] += counts->queue_to_start.counts[i];
	}
}

int rate_run(const struct request *request, struct workqueue_struct *wq,
	     struct rate_result *result)
{
	struct rate_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	unsigned int i, j;
	int error;

	if (!run)
		return -ENOMEM;
	run->wq = wq;
	run->interval = -1;
	run->intervals = request->intervals;
	init_completion(&run->ready);
	init_completion(&run->go);
	init_completion(&run->ended);
	cpus_read_lock();
	error = choose_cpus(request, &result->cpus);
	if (!error)
		error = make_producers(run, &result->cpus);
	cpus_read_unlock();
	if (error) {
		free_run(run);
		return error;
	}
	for (i = 0; i < run->nr_producers; i++)
		wake_up_process(run->producers[i]->task);
	for (i = 0; i < run->nr_producers; i++)
		wait_for_completion(&run->ready);
	complete_all(&run->go);
	error = count_intervals(run, request, result);
	result->lost = stop_producers(run);
	for (i = 0; i < run->nr_producers; i++)
		for (j = 0; j < request->intervals; j++)
			add_counts(&result->intervals[j],
				   &run->producers[i]->intervals[j]);
	free_run(run);
	return error;
}
