// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure how many works CPUs queue to one unbound workqueue, in intervals
 * between two moments, so that neither the start nor the end of the load counts.
 *
 *	echo cache > /sys/devices/virtual/workqueue/queue_rate/affinity_scope
 *	echo "intervals=16 interval_us=200000" > start
 *	cat result intervals queue queue_to_start
 *
 * in the folder queue_rate of debugfs. A thread on each CPU queues a work, sleeps
 * until it was executed, and queues it again. All threads begin together, and
 * with them the first interval; the next begins interval_us later, and so on. A
 * work belongs to the interval in which its thread sees that it was executed. The
 * write returns after the last work. An incomplete or wrong request fails with
 * -EINVAL and a line in the kernel log; a second request fails with -EBUSY while
 * one is running.
 *
 * intervals	required, 1 to 64
 * interval_us	required, 10 to 60000000
 * producers	number of threads, or all (default): one for each online CPU; fewer
 *		are spread over the CPUs, on different cores where there are enough
 * first	1: fewer are on the first CPUs instead; default 0
 * mark		1: instrumented devices count from the first to the last moment;
 *		default 0
 *
 * result has lines of "name value"; intervals of "number ns works"; queue, the
 * time in queue_work(), and queue_to_start, from before queue_work() to the start
 * of the work, of "interval ns works". What a thread counts is on cache lines of
 * its own, and is added up when the threads have stopped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/seq_file.h>

#include "request.h"
#include "queue_rate.h"

#define MOST_US		60000000

static DEFINE_MUTEX(result_lock);	/* protects last */
static struct rate_result *last;
static struct workqueue_struct *queue_rate_wq;
static struct dentry *folder;

static const struct request_key keys[] = {
	REQUEST_NUMBER_OR_ALL(producers, 1, 65535, 0),
	REQUEST_NUMBER(first, 0, 1),
	REQUEST_NUMBER(intervals, 1, MOST_INTERVALS),
	REQUEST_NUMBER(interval_us, 10, MOST_US),
	REQUEST_NUMBER(mark, 0, 1),
};

static int check(const struct request *request)
{
	if (request->intervals && request->interval_us)
		return 0;
	pr_warn("the request needs intervals and interval_us\n");
	return -EINVAL;
}

static int run(const void *requested)
{
	const struct request *request = requested;
	struct rate_result *result, *before;
	int error;

	result = kvzalloc(struct_size(result, intervals, request->intervals),
			  GFP_KERNEL);
	if (!result)
		return -ENOMEM;
	result->request = *request;
	error = rate_run(request, queue_rate_wq, result);
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
	struct request request = {};
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

static void show_result(struct seq_file *out, const struct rate_result *r)
{
	seq_printf(out, "producers %u\ncpus %*pbl\n", cpumask_weight(&r->cpus),
		   cpumask_pr_args(&r->cpus));
	seq_printf(out, "intervals %u\ninterval_us %u\nlost %u\n",
		   r->request.intervals, r->request.interval_us, r->lost);
}

static void show_intervals(struct seq_file *out, const struct rate_result *r)
{
	unsigned int i;

	for (i = 0; i < r->request.intervals; i++)
		seq_printf(out, "%u %llu %llu\n", i, r->ns[i],
			   r->intervals[i].items);
}

/* Return the middle of a bucket. */
static u64 bucket_ns(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 2U << SUB_BUCKET_BITS)
		return bucket;
	shift = (bucket >> SUB_BUCKET_BITS) - 1;
	return ((bucket - ((u64)shift << SUB_BUCKET_BITS)) << shift) +
	       (1ULL << shift) / 2;
}

static void show_histograms(struct seq_file *out, const struct rate_result *r,
			    size_t offset)
{
	unsigned int i, bucket;

	for (i = 0; i < r->request.intervals; i++) {
		const struct histogram *histogram =
			(const void *)&r->intervals[i] + offset;

		for (bucket = 0; bucket < NR_BUCKETS; bucket++)
			if (histogram->counts[bucket])
				seq_printf(out, "%u %llu %u\n", i,
					   bucket_ns(bucket),
					   histogram->counts[bucket]);
	}
}

static void show_queue(struct seq_file *out, const struct rate_result *r)
{
	show_histograms(out, r, offsetof(struct interval, queue));
}

static void show_queue_to_start(struct seq_file *out, const struct rate_result *r)
{
	show_histograms(out, r, offsetof(struct interval, queue_to_start));
}

/* The files are empty until a request has ended. */
static int last_show(struct seq_file *out, void *unused)
{
	void (*show)(struct seq_file *, const struct rate_result *) = out->private;

	mutex_lock(&result_lock);
	if (last)
		show(out, last);
	mutex_unlock(&result_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(last);

static int __init queue_rate_init(void)
{
	queue_rate_wq = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND | WQ_SYSFS, 0);
	if (!queue_rate_wq)
		return -ENOMEM;
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	if (IS_ERR(folder)) {
		pr_err("this kernel has no debugfs (CONFIG_DEBUG_FS)\n");
		destroy_workqueue(queue_rate_wq);
		return PTR_ERR(folder);
	}
	debugfs_create_file("start", 0200, folder, NULL, &start_fops);
	debugfs_create_file("result", 0400, folder, show_result, &last_fops);
	debugfs_create_file("intervals", 0400, folder, show_intervals, &last_fops);
	debugfs_create_file("queue", 0400, folder, show_queue, &last_fops);
	debugfs_create_file("queue_to_start", 0400, folder, show_queue_to_start,
			    &last_fops);
	return 0;
}

static void __exit queue_rate_exit(void)
{
	debugfs_remove_recursive(folder);
	destroy_workqueue(queue_rate_wq);
	kvfree(last);
}

module_init(queue_rate_init);
module_exit(queue_rate_exit);
MODULE_AUTHOR("the wqlab authors");
MODULE_DESCRIPTION("Rate at which CPUs queue works to an unbound workqueue");
MODULE_LICENSE("GPL");
