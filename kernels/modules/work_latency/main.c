// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure single works from queueing to their start and end, for each kind of
 * workqueue, and find works whose worker was not woken.
 *
 *	cat kinds
 *	echo "kind=unbound works=1000 cpu=3 gap_us=1000" > start
 *	cat result pairs queue_to_start start_to_end
 *
 * in the folder work_latency of debugfs. A thread on the CPU fills a buffer,
 * queues a work, which reads the buffer, sleeps until the work has ended, sleeps
 * gap_us and continues with the next one, so the worker has to be woken for each.
 * The write returns after the last work. An incomplete or wrong request fails
 * with -EINVAL and a line in the kernel log, a kind that this kernel does not
 * have with -EOPNOTSUPP; a second request fails with -EBUSY while one is running,
 * and kind=rescuer with -EAGAIN if memory pressure does not keep the kernel from
 * creating workers.
 *
 * kind, works	required
 * cpu		number, or all (default): each CPU issues as many of the works
 * target	number of the CPU to which works of a per-CPU workqueue are queued;
 *		default: the CPU that issues them
 * gap_us	default 1000
 * bytes	size of the buffer, default 4096
 * delay_ms	of kind=delayed, default 20
 * late_ms	after which a work that has not ended is late, and is checked for a
 *		lost wakeup; default 40
 * batch	of kind=percpu or rescuer: works that are queued at once, default 1
 * burn_us	for which the first work of a batch keeps its CPU busy, offering it
 *		to others by cond_resched(); default 0. The others are counted
 *		alone then, and in beside_long if they start before it has ended
 *
 * The unbound workqueue is /sys/devices/virtual/workqueue/work_latency.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "request.h"
#include "work_latency.h"

#define MOST_BATCH	1000

static DEFINE_MUTEX(result_lock);	/* protects last */
static struct latency_result *last;
static struct dentry *folder;

static const struct request_key keys[] = {
	REQUEST_NAME(kind, kind_names, NR_KINDS),
	REQUEST_NUMBER(works, 1, 10000000),
	REQUEST_NUMBER_OR_ALL(cpu, 0, CPU_ALL - 1, CPU_ALL),
	REQUEST_NUMBER(target, 0, TARGET_LOCAL - 1),
	REQUEST_NUMBER(gap_us, 0, 1000000),
	REQUEST_NUMBER(bytes, 0, 1 << 20),
	REQUEST_NUMBER(delay_ms, 0, 10000),
	REQUEST_NUMBER(late_ms, 1, 10000),
	REQUEST_NUMBER(batch, 1, MOST_BATCH),
	REQUEST_NUMBER(burn_us, 0, 10000000),
};

static int check(const struct request *request)
{
	if (request->kind == NR_KINDS || !request->works) {
		pr_warn("the request needs kind and works\n");
		return -EINVAL;
	}
	if (request->target != TARGET_LOCAL && !kind_is_bound(request->kind)) {
		pr_warn("target=%u is for per-CPU workqueues only\n",
			request->target);
		return -EINVAL;
	}
	if (request->batch > 1 && request->kind != KIND_PERCPU &&
	    request->kind != KIND_RESCUER) {
		pr_warn("batch=%u is for kind=percpu and kind=rescuer only\n",
			request->batch);
		return -EINVAL;
	}
	if (request->burn_us && request->batch == 1) {
		pr_warn("burn_us=%u needs a batch of 2 or more\n",
			request->burn_us);
		return -EINVAL;
	}
	if (!queue_of(request->kind)) {
		pr_warn("this kernel has no workqueue of kind %s\n",
			kind_names[request->kind]);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int run(const void *request)
{
	size_t pairs = array_size(nr_cpu_ids, nr_cpu_ids);
	struct latency_result *result, *before;
	int error;

	result = kvzalloc(struct_size(result, pairs, pairs), GFP_KERNEL);
	if (!result)
		return -ENOMEM;
	result->nr_cpus = nr_cpu_ids;
	error = latency_run(request, result);
	if (error) {
		kvfree(result);
		return error;
	}
	mutex_lock(&result_lock);
	before = last;
	last = result;
	mutex_unlock(&result_lock);
	kvfree(before);
	return 0;
}

static ssize_t start_write(struct file *file, const char __user *buffer,
			   size_t count, loff_t *position)
{
	struct request request = {
		.kind = NR_KINDS, .cpu = CPU_ALL, .target = TARGET_LOCAL,
		.gap_us = 1000, .bytes = 4096, .delay_ms = 20, .late_ms = 40,
		.batch = 1,
	};
	int error;

	error = request_read(buffer, count, keys, ARRAY_SIZE(keys), &request) ?:
		check(&request) ?: request_run(run, &request);
	return error ?: count;
}

static const struct file_operations start_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = start_write,
};

static void show_result(struct seq_file *out, const struct latency_result *r)
{
	seq_printf(out, "kind %s\nworks %u\nqueued %u\nexecuted %u\nlost %u\n",
		   kind_names[r->request.kind], r->request.works, r->queued,
		   r->executed, r->lost);
	seq_printf(out, "late %u\nlost_wakeups %u\nrevived %u\n", r->late,
		   r->lost_wakeups, r->revived);
	seq_printf(out, "misplaced %u\nearly %u\nwrong_context %u\n",
		   r->misplaced, r->early, r->wrong_context);
	seq_printf(out, "wakeups %lu\nworkers %u\nrescued %u\nin_ksoftirqd %u\n",
		   r->wakeups, r->workers, r->rescued, r->in_ksoftirqd);
	seq_printf(out, "blocked %u\nbatch %u\nburn_us %u\nbeside_long %u\n",
		   r->blocked, r->request.batch, r->request.burn_us,
		   r->beside_long);
	seq_printf(out, "queue_to_start_max_ns %llu\nstart_to_end_max_ns %llu\n",
		   r->queue_to_start.max_ns, r->start_to_end.max_ns);
	seq_printf(out, "elapsed_us %llu\n",
		   div_u64(r->elapsed_ns, NSEC_PER_USEC));
}

/* Lines of "issuing CPU, executing CPU, works, time of execution in ns". */
static void show_pairs(struct seq_file *out, const struct latency_result *r)
{
	unsigned int from, to;

	for (from = 0; from < r->nr_cpus; from++) {
		for (to = 0; to < r->nr_cpus; to++) {
			const struct pair *pair = &r->pairs[from * r->nr_cpus + to];

			if (pair->works)
				seq_printf(out, "%u %u %u %llu\n", from, to,
					   pair->works, pair->exec_ns);
		}
	}
}

static void show_queue_to_start(struct seq_file *out, const struct latency_result *r)
{
	histogram_show(out, &r->queue_to_start);
}

static void show_start_to_end(struct seq_file *out, const struct latency_result *r)
{
	histogram_show(out, &r->start_to_end);
}

/* The files are empty until a request has ended. */
static int last_show(struct seq_file *out, void *unused)
{
	void (*show)(struct seq_file *, const struct latency_result *) = out->private;

	mutex_lock(&result_lock);
	if (last)
		show(out, last);
	mutex_unlock(&result_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(last);

static int kinds_show(struct seq_file *out, void *unused)
{
	enum kind kind;

	for (kind = 0; kind < NR_KINDS; kind++)
		if (queue_of(kind))
			seq_printf(out, "%s\n", kind_names[kind]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kinds);

static int __init work_latency_init(void)
{
	int error;

	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	if (IS_ERR(folder)) {
		pr_err("this kernel has no debugfs (CONFIG_DEBUG_FS)\n");
		return PTR_ERR(folder);
	}
	error = queues_create();
	if (error) {
		debugfs_remove_recursive(folder);
		return error;
	}
	debugfs_create_file("start", 0200, folder, NULL, &start_fops);
	debugfs_create_file("kinds", 0400, folder, NULL, &kinds_fops);
	debugfs_create_file("result", 0400, folder, show_result, &last_fops);
	debugfs_create_file("pairs", 0400, folder, show_pairs, &last_fops);
	debugfs_create_file("queue_to_start", 0400, folder, show_queue_to_start,
			    &last_fops);
	debugfs_create_file("start_to_end", 0400, folder, show_start_to_end,
			    &last_fops);
	return 0;
}

static void __exit work_latency_exit(void)
{
	debugfs_remove_recursive(folder);
	queues_destroy();
	kvfree(last);
}

module_init(work_latency_init);
module_exit(work_latency_exit);
MODULE_AUTHOR("the wqlab authors");
MODULE_DESCRIPTION("Latency of single works by kind of workqueue");
MODULE_LICENSE("GPL");
