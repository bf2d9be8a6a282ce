// SPDX-License-Identifier: GPL-2.0-only
/*
 * Works under the limit max_active: how many are in execution at once, whether
 * chains of works that wait for each other end, and how workqueues of one worker
 * pool share it.
 *
 *	echo "shape=fan kind=unbound max_active=4 works=64" > start
 *	cat result groups
 *
 * in the folder max_active of debugfs. The write returns after the last work. An
 * incomplete or wrong request fails with -EINVAL and a line in the kernel log; a
 * second request fails with -EBUSY while one is running. The workqueues are
 * /sys/devices/virtual/workqueue/max_active-N until the next request.
 *
 * shape	fan, nested, crossed, fair or shares; see fan.c, chain.c and fair.c
 * kind		percpu or unbound
 * max_active	0 (default): the kernel's default
 * cpus		most CPUs that issue works, at equal distances; default 4
 * works, steps, hold_us	of fan; works and burn_us also of fair and shares
 * rounds, depth, fillers	of nested and crossed; depth 0 (default): the deepest
 *		that must end
 * queues, polite	of fair; queues also of shares
 * spans	1: the worker pools of unbound workqueues have CPUs of several nodes
 * stall_ms	after which works that do not start or end are given up, and a chain
 *		is deadlocked; default 30000
 * limit	the limit to expect, to see whether a wrong one is noticed; default: the
 *		one that follows from max_active
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "request.h"
#include "max_active.h"

static DEFINE_MUTEX(result_lock);	/* protects last */
static struct active_result *last;
static struct dentry *folder;

static const char * const shape_names[NR_SHAPES] = {
	[SHAPE_FAN] = "fan",
	[SHAPE_NESTED] = "nested",
	[SHAPE_CROSSED] = "crossed",
	[SHAPE_FAIR] = "fair",
	[SHAPE_SHARES] = "shares",
};

static const struct request_key keys[] = {
	REQUEST_NAME(shape, shape_names, NR_SHAPES),
	REQUEST_NAME(kind, kind_names, NR_KINDS),
	REQUEST_NUMBER(max_active, 0, WQ_MAX_ACTIVE),
	REQUEST_NUMBER(works, 1, 10000),
	REQUEST_NUMBER(cpus, 1, MAX_ISSUERS),
	REQUEST_NUMBER(steps, 0, 10000),
	REQUEST_NUMBER(rounds, 1, 100000),
	REQUEST_NUMBER(depth, 0, MAX_DEPTH),
	REQUEST_NUMBER(fillers, 0, 100),
	REQUEST_NUMBER(queues, 2, MAX_QUEUES),
	REQUEST_NUMBER(polite, 1, 10000),
	REQUEST_NUMBER(hold_us, 0, 1000000),
	REQUEST_NUMBER(burn_us, 0, 5000),
	REQUEST_NUMBER(limit, 0, WQ_MAX_ACTIVE),
	REQUEST_NUMBER(spans, 0, 1),
	REQUEST_NUMBER(stall_ms, 1, 100000),
};

static int check(const struct request *request)
{
	if (request->shape < NR_SHAPES && request->kind < NR_KINDS)
		return 0;
	pr_warn("the request needs shape and kind\n");
	return -EINVAL;
}

static int run(const void *request)
{
	struct active_result *result, *before;
	int error;

	result = kvzalloc(sizeof(*result), GFP_KERNEL);
	if (!result)
		return -ENOMEM;
	error = active_run(request, result);
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
		.shape = NR_SHAPES, .kind = NR_KINDS, .works = 64, .cpus = 4,
		.steps = 16, .rounds = 10, .fillers = 4, .queues = 4,
		.polite = 20, .hold_us = 1000, .burn_us = 100, .stall_ms = 30000,
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

static void show_result(struct seq_file *out, const struct active_result *r)
{
	unsigned int i, wanted = 0, peak = 0;

	for (i = 0; i < r->nr_groups; i++) {
		wanted += r->groups[i].wanted;
		peak += r->groups[i].peak;
	}
	seq_printf(out, "shape %s\nkind %s\nmax_active %u\nworks %u\n",
		   shape_names[r->request.shape], kind_names[r->request.kind],
		   r->request.max_active, r->request.works);
	seq_printf(out, "queued %u\nexecuted %u\nlost %u\nwanted %u\npeak %u\n",
		   r->queued, r->executed, r->lost, wanted, peak);
	seq_printf(out, "excess %u\ndeficit %u\nslots %u\nslots_lost %u\n",
		   r->excess, r->deficit, r->slots, r->slots_lost);
	seq_printf(out, "depth %u\nchains %u\ndeadlocks %u\nrevived %u\n",
		   r->depth, r->chains, r->deadlocks, r->revived);
	seq_printf(out, "polite %u\novertaken %llu\novertaken_max %u\nleast_served %u\n",
		   r->polite, r->overtaken, r->overtaken_max, r->least_served);
	seq_printf(out, "delays %u\ndelays_ns %llu\ndelay_max_ns %llu\n",
		   r->delays.works, r->delays.sum_ns, r->delays.max_ns);
	seq_printf(out, "waiting_us %llu\nfull_us %llu\nelapsed_us %llu\n",
		   div_u64(r->waiting_ns, NSEC_PER_USEC),
		   div_u64(r->full_ns, NSEC_PER_USEC),
		   div_u64(r->elapsed_ns, NSEC_PER_USEC));
	seq_printf(out, "applies_to %s\n", r->applies_to);
}

/*
 * Lines of "place, workqueue, limit, most works in execution at once, works
 * executed". The place is a CPU or node, or -1 if the limit is that of the system.
 */
static void show_groups(struct seq_file *out, const struct active_result *r)
{
	unsigned int i;

	for (i = 0; i < r->nr_groups; i++)
		seq_printf(out, "%d %u %u %u %u\n", r->groups[i].place,
			   r->groups[i].queue, r->groups[i].limit,
			   r->groups[i].peak, r->groups[i].executed);
}

/* The files are empty until a request has ended. */
static int last_show(struct seq_file *out, void *unused)
{
	void (*show)(struct seq_file *, const struct active_result *) = out->private;

	mutex_lock(&result_lock);
	if (last)
		show(out, last);
	mutex_unlock(&result_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(last);

static int __init max_active_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	if (IS_ERR(folder)) {
		pr_err("this kernel has no debugfs (CONFIG_DEBUG_FS)\n");
		return PTR_ERR(folder);
	}
	debugfs_create_file("start", 0200, folder, NULL, &start_fops);
	debugfs_create_file("result", 0400, folder, show_result, &last_fops);
	debugfs_create_file("groups", 0400, folder, show_groups, &last_fops);
	return 0;
}

static void __exit max_active_exit(void)
{
	debugfs_remove_recursive(folder);
	queues_destroy();
	kvfree(last);
}

module_init(max_active_init);
module_exit(max_active_exit);
MODULE_AUTHOR("the wqlab authors");
MODULE_DESCRIPTION("Works under the limit max_active of workqueues");
MODULE_LICENSE("GPL");
