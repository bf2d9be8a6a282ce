// SPDX-License-Identifier: GPL-2.0-only
/*
 * Issue the works one after the other, from a thread on the requested CPU, and
 * find those whose worker was not woken.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "work_latency.h"

/* A work that has not ended by then was lost. */
#define LOST_MS		30000
/* Enough lost works to tell; each takes LOST_MS. */
#define MOST_LOST	3
/*
 * A rescuer looks for work every 100 ms (MAYDAY_INTERVAL in kernel/workqueue.c),
 * so its works wait longer.
 */
#define RESCUER_LATE_MS	2000
/* How often a CPU must run a thread of the lowest priority, to have had time for a worker. */
#define SPARE_TURNS	5

static bool is_rescuer(const struct task_struct *task)
{
	/* Before Linux 6.8 a rescuer had the name of its workqueue. */
	return strncmp(task->comm, "kworker/", 8) ||
	       !strncmp(task->comm, "kworker/R-", 10);
}

/* Return the entry of the current worker, or a free one, or NULL if there is none. */
static struct seen_worker *find_worker(struct latency_run *run)
{
	unsigned int i;

	for (i = 0; i < NR_SEEN; i++) {
		struct seen_worker *seen = &run->seen[(current->pid + i) % NR_SEEN];

		if (!seen->pid || seen->pid == current->pid)
			return seen;
	}
	return NULL;
}

/* Count how often the worker has slept, and so was woken, since its previous work. */
static void count_wakeups(struct latency_run *run)
{
	struct seen_worker *seen;

	if (is_rescuer(current))
		run->result->rescued++;
	seen = find_worker(run);
	if (seen && seen->pid) {
		run->result->wakeups += current->nvcsw - seen->switches;
	} else {
		run->result->wakeups++;
		run->result->workers++;
	}
}

static void note_switches(struct latency_run *run)
{
	struct seen_worker *seen;

	seen = find_worker(run);
	if (seen) {
		seen->pid = current->pid;
		seen->switches = current->nvcsw;
	}
}

static void check_context(struct latency_run *run, const struct latency_work *work)
{
	struct latency_result *result = run->result;
	enum kind kind = run->request.kind;

	if (kind == KIND_BH) {
		if (!in_serving_softirq())
			result->wrong_context++;
		if (!strncmp(current->comm, "ksoftirqd/", 10))
			result->in_ksoftirqd++;
	} else if (!in_task() ||
		   (kind == KIND_HIGHPRI && task_nice(current) != MIN_NICE)) {
		result->wrong_context++;
	}
	if (run->target != WORK_CPU_UNBOUND && work->ran_on != run->target)
		result->misplaced++;
	if (kind == KIND_DELAYED && time_before(jiffies, run->due_jiffies))
		result->early++;
}

/* Without cond_resched(), a kernel that preempts nothing could run no other worker. */
static void burn(unsigned int us)
{
	u64 end = ktime_get_ns() + us * NSEC_PER_USEC;

	while (ktime_get_ns() < end) {
		cpu_relax();
		cond_resched();
	}
}

/*
 * A rescuer and a worker can execute works of a batch at the same time, BH works
 * only one at a time.
 */
static void execute(struct latency_work *work)
{
	struct latency_run *run = work->run;
	bool bh = run->request.kind == KIND_BH;
	unsigned long sum = 0;
	unsigned int i;

	work->started_ns = ktime_get_ns();
	work->ran_on = raw_smp_processor_id();
	WRITE_ONCE(work->started, true);
	if (bh) {
		check_context(run, work);
	} else {
		spin_lock(&run->lock);
		count_wakeups(run);
		check_context(run, work);
		spin_unlock(&run->lock);
	}
	/* Read what the issuer wrote: the cache lines come from its CPU. */
	for (i = 0; i < run->request.bytes; i++)
		sum += READ_ONCE(run->data[i]);
	if (work == run->works && run->request.burn_us)
		burn(run->request.burn_us);
	WRITE_ONCE(run->sum, sum);
	if (!bh) {
		spin_lock(&run->lock);
		note_switches(run);
		spin_unlock(&run->lock);
	}
	WRITE_ONCE(work->ended_ns, ktime_get_ns());
	if (atomic_dec_and_test(&run->unfinished))
		complete(&run->ended);
}

static void execute_work(struct work_struct *item)
{
	execute(container_of(item, struct latency_work, item));
}

static void execute_delayed(struct work_struct *item)
{
	execute(container_of(to_delayed_work(item), struct latency_run, dwork)->works);
}

static void do_nothing(struct work_struct *item)
{
}

/* Queue works at once, `number` being that of the first. */
static void issue(struct latency_run *run, unsigned int number, unsigned int works)
{
	const struct request *request = &run->request;
	unsigned int i;

	reinit_completion(&run->ended);
	atomic_set(&run->unfinished, works);
	for (i = 0; i < works; i++) {
		WRITE_ONCE(run->works[i].started, false);
		WRITE_ONCE(run->works[i].ended_ns, 0);
	}
	run->target = WORK_CPU_UNBOUND;
	if (kind_is_bound(request->kind))
		run->target = request->target == TARGET_LOCAL ? run->cpu :
							       request->target;
	memset(run->data, number, request->bytes);
	if (request->kind == KIND_DELAYED) {
		unsigned long delay = max(1UL, msecs_to_jiffies(request->delay_ms));

		/* The current tick counts as one of the delay. */
		run->works->due_ns = ktime_get_ns() + jiffies_to_nsecs(delay - 1);
		run->due_jiffies = jiffies + delay;
		queue_delayed_work_on(run->target, run->wq, &run->dwork, delay);
	} else {
		/* A worker that preempts the issuer would run between two works of a batch. */
		preempt_disable();
		for (i = 0; i < works; i++) {
			run->works[i].due_ns = ktime_get_ns();
			queue_work_on(run->target, run->wq, &run->works[i].item);
		}
		preempt_enable();
	}
	run->result->queued += works;
}

static unsigned int count_unstarted(const struct latency_run *run, unsigned int works)
{
	unsigned int i, unstarted = 0;

	for (i = 0; i < works; i++)
		unstarted += !READ_ONCE(run->works[i].started);
	return unstarted;
}

static unsigned int count_unended(const struct latency_run *run, unsigned int works)
{
	unsigned int i, unended = 0;

	for (i = 0; i < works; i++)
		unended += !READ_ONCE(run->works[i].ended_ns);
	return unended;
}

static bool turn_on(unsigned int cpu)
{
	return !set_cpus_allowed_ptr(current, cpumask_of(cpu));
}

/*
 * True if no further work has started although each CPU that may execute it has
 * run this thread, at the lowest priority, in several turns: a worker that had
 * been woken would have run before. This does not depend on how fast the CPUs are.
 */
static bool had_spare_time(struct latency_run *run, unsigned int works)
{
	unsigned int unstarted = count_unstarted(run, works);
	const struct cpumask *cpus = run->target == WORK_CPU_UNBOUND ?
				     cpu_online_mask : cpumask_of(run->target);
	unsigned int cpu, turns;

	sched_set_normal(current, MAX_NICE);
	for_each_cpu(cpu, cpus) {
		if (!turn_on(cpu))
			continue;
		for (turns = 0; turns < SPARE_TURNS &&
				count_unstarted(run, works) == unstarted; turns++)
			schedule_timeout_uninterruptible(1);
	}
	sched_set_normal(current, 0);
	turn_on(run->cpu);
	return unstarted && count_unstarted(run, works) == unstarted;
}

/* Wait for the end of a batch. Works that have not ended then are lost. */
static void await_end(struct latency_run *run, unsigned int works)
{
	struct latency_result *result = run->result;
	unsigned int late_ms = run->request.late_ms;
	unsigned int i, unstarted, stuck = 0;

	if (run->request.kind == KIND_DELAYED)
		late_ms += run->request.delay_ms;
	if (run->request.kind == KIND_RESCUER)
		late_ms = max(late_ms, RESCUER_LATE_MS);
	late_ms += DIV_ROUND_UP(run->request.burn_us, USEC_PER_MSEC);
	if (wait_for_completion_timeout(&run->ended, msecs_to_jiffies(late_ms)))
		return;
	result->late += count_unended(run, works);
	unstarted = count_unstarted(run, works);
	if (unstarted && had_spare_time(run, works)) {
		stuck = unstarted;
		result->lost_wakeups += unstarted;
		/* Another work wakes a worker of the pool, which finds these first. */
		queue_work_on(run->target, run->wq, &run->nudge);
	}
	if (!wait_for_completion_timeout(&run->ended, msecs_to_jiffies(LOST_MS))) {
		for (i = 0; i < works; i++)
			cancel_work_sync(&run->works[i].item);
		cancel_delayed_work_sync(&run->dwork);
		/* Some may have ended just before. */
		result->lost += count_unended(run, works);
	}
	if (stuck)
		result->revived += stuck - min(stuck, count_unended(run, works));
}

static void record_work(struct latency_run *run, const struct latency_work *work)
{
	struct latency_result *result = run->result;
	u64 executed_ns = work->ended_ns - work->started_ns;
	struct pair *pair = &result->pairs[run->cpu * result->nr_cpus + work->ran_on];

	result->executed++;
	pair->works++;
	pair->exec_ns += executed_ns;
	if (run->request.burn_us && work->started_ns < run->works->ended_ns)
		result->beside_long++;
	histogram_add(&result->queue_to_start, work->started_ns > work->due_ns ?
					       work->started_ns - work->due_ns : 0);
	histogram_add(&result->start_to_end, executed_ns);
}

/* Count the works of a batch that have ended; the long one only holds up the others. */
static void record(struct latency_run *run, unsigned int works)
{
	unsigned int i = 0;

	if (run->request.burn_us && run->works->ended_ns) {
		run->result->queued--;
		i = 1;
	}
	for (; i < works; i++)
		if (run->works[i].ended_ns)
			record_work(run, &run->works[i]);
}

/* Return the CPU that issues a work: each online CPU issues as many, one CPU after the other. */
static unsigned int issuer_of(const struct request *request, unsigned int number)
{
	unsigned int cpu, place;

	if (request->cpu != CPU_ALL)
		return request->cpu;
	place = (u64)number * num_online_cpus() / request->works;
	for_each_online_cpu(cpu)
		if (!place--)
			return cpu;
	return cpumask_first(cpu_online_mask);
}

static int issue_all(void *argument)
{
	struct latency_run *run = argument;
	const struct request *request = &run->request;
	struct latency_result *result = run->result;
	u64 began;
	unsigned int i, works;

	run->cpu = issuer_of(request, 0);
	turn_on(run->cpu);
	if (request->kind == KIND_RESCUER) {
		int blocked = pressure_begin(request->target == TARGET_LOCAL ?
					     run->cpu : request->target);

		if (blocked < 0)
			run->error = blocked;
		else
			result->blocked = blocked;
	}
	began = ktime_get_ns();
	for (i = 0; i < request->works; i += works) {
		unsigned int cpu = issuer_of(request, i);

		if (run->error || READ_ONCE(run->stopping) ||
		    result->lost >= MOST_LOST)
			break;
		if (cpu != run->cpu && turn_on(cpu))
			run->cpu = cpu;
		works = min(request->batch, request->works - i);
		issue(run, i, works);
		await_end(run, works);
		record(run, works);
		if (request->gap_us)
			usleep_range(request->gap_us,
				     request->gap_us + request->gap_us / 8 + 1);
	}
	result->elapsed_ns = ktime_get_ns() - began;
	if (request->kind == KIND_RESCUER)
		pressure_end();
	cancel_work_sync(&run->nudge);
	kthread_complete_and_exit(&run->done, 0);
}

static void free_run(struct latency_run *run)
{
	kvfree(run->data);
	kvfree(run->works);
	kvfree(run);
}

static struct latency_run *make_run(const struct request *request,
				    struct latency_result *result)
{
	struct latency_run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
	unsigned int i;

	if (!run)
		return NULL;
	run->data = kvzalloc(max(1U, request->bytes), GFP_KERNEL);
	run->works = kvcalloc(request->batch, sizeof(*run->works), GFP_KERNEL);
	if (!run->data || !run->works) {
		free_run(run);
		return NULL;
	}
	run->request = *request;
	/* Memory is short on one CPU only. */
	if (request->kind == KIND_RESCUER && request->cpu == CPU_ALL)
		run->request.cpu = cpumask_first(cpu_online_mask);
	run->result = result;
	run->wq = queue_of(request->kind);
	for (i = 0; i < request->batch; i++) {
		run->works[i].run = run;
		INIT_WORK(&run->works[i].item, execute_work);
	}
	INIT_DELAYED_WORK(&run->dwork, execute_delayed);
	INIT_WORK(&run->nudge, do_nothing);
	init_completion(&run->ended);
	init_completion(&run->done);
	spin_lock_init(&run->lock);
	return run;
}

static bool is_offline(unsigned int cpu, unsigned int none)
{
	if (cpu == none || (cpu < nr_cpu_ids && cpu_online(cpu)))
		return false;
	pr_warn("CPU %u is not online\n", cpu);
	return true;
}

int latency_run(const struct request *request, struct latency_result *result)
{
	struct task_struct *issuer;
	struct latency_run *run;
	int error;

	if (is_offline(request->cpu, CPU_ALL) ||
	    is_offline(request->target, TARGET_LOCAL))
		return -EINVAL;
	run = make_run(request, result);
	if (!run)
		return -ENOMEM;
	result->request = *request;
	issuer = kthread_run(issue_all, run, "work_latency");
	if (IS_ERR(issuer)) {
		free_run(run);
		return PTR_ERR(issuer);
	}
	error = wait_for_completion_killable(&run->done);
	if (error) {
		WRITE_ONCE(run->stopping, true);
		wait_for_completion(&run->done);
		error = -EINTR;
	} else {
		error = run->error;
		if (error == -EAGAIN)
			pr_warn("under memory pressure this kernel still creates workers\n");
	}
	free_run(run);
	return error;
}
