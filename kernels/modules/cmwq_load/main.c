// SPDX-License-Identifier: GPL-2.0-only
/*
 * A synthetic load for per-CPU workqueues, with counts that show whether the
 * workqueues kept their guarantees.
 *
 * A work burns part of its CPU time, sleeps, burns the rest and queues itself
 * again after a delay, for a number of cycles. There are short, medium and long
 * works; a workload is a number of workqueues with some works of each shape.
 * The shapes and workloads 0 to 5 are those described in "Overview of
 * concurrency managed workqueue" (Tejun Heo, LKML, 2010-06-15). With sleeps=2 a
 * work does as the code attached to that mail: it sleeps a part of its sleep,
 * burns all of its CPU time and sleeps the rest. With cpu=all, works take the
 * online CPUs in turn; if there are more CPUs than works, each workqueue has
 * each of its works several times.
 *
 *	echo "workload=2 burn=S duration_ms=2000 cpu=3" > start
 *	cat result
 *
 * in the folder cmwq_load of debugfs. The write returns when the load has
 * ended. An incomplete or wrong request fails with -EINVAL and a line in the
 * kernel log; a second request fails with -EBUSY while a load is running.
 *
 * After all cycles, one work per workqueue meets the others on one CPU: each
 * sleeps until all have started, so the pool must give each of them a worker.
 * These works are on a separate workqueue without a rescuer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/time64.h>

#include "request.h"
#include "cmwq_load.h"

#define DURATION_MAX_MS	300000

static DEFINE_MUTEX(result_lock);
static struct load_result last;
static bool have_result;
static struct dentry *folder;

static const char * const burn_names[NR_BURNS] = {
	[BURN_L] = "L",
	[BURN_S] = "S",
};

static const struct request_key keys[] = {
	REQUEST_NUMBER(workload, 0, NR_WORKLOADS - 1),
	REQUEST_NAME(burn, burn_names, NR_BURNS),
	REQUEST_NUMBER(duration_ms, 1, DURATION_MAX_MS),
	REQUEST_NUMBER_OR_ALL(cpu, 0, NR_CPUS - 1, CPU_ALL),
	REQUEST_NUMBER(seed, 0, UINT_MAX),
	REQUEST_NUMBER(sleeps, 1, 2),
};

static int check(const struct request *request)
{
	if (request->workload == NR_WORKLOADS || request->burn == NR_BURNS ||
	    !request->duration_ms) {
		pr_warn("the request needs workload, burn and duration_ms\n");
		return -EINVAL;
	}
	if (request->cpu != CPU_ALL && request->cpu >= nr_cpu_ids) {
		pr_warn("there is no CPU %u\n", request->cpu);
		return -EINVAL;
	}
	return 0;
}

static int run(const void *request)
{
	struct load_result result;
	int error = load_run(request, &result);

	if (error)
		return error;
	mutex_lock(&result_lock);
	last = result;
	have_result = true;
	mutex_unlock(&result_lock);
	return 0;
}

static ssize_t start_write(struct file *file, const char __user *buffer,
			   size_t count, loff_t *position)
{
	struct request request = {
		.workload = NR_WORKLOADS, .burn = NR_BURNS, .cpu = CPU_ALL,
		.seed = 1, .sleeps = 1,
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

/* Lines of "name value"; empty until a load has ended. */
static int result_show(struct seq_file *out, void *unused)
{
	struct load_result r;
	bool have;

	mutex_lock(&result_lock);
	r = last;
	have = have_result;
	mutex_unlock(&result_lock);
	if (!have)
		return 0;
	seq_printf(out, "workload %u\nburn %s\nduration_ms %u\nseed %u\nsleeps %u\n",
		   r.request.workload, burn_names[r.request.burn],
		   r.request.duration_ms, r.request.seed, r.request.sleeps);
	seq_printf(out, "queues %u\nworks %u\nplanned %u\nqueued %u\nexecuted %u\n",
		   r.queues, r.works, r.planned, r.queued, r.executed);
	seq_printf(out, "lost %d\nrefused %u\nreentered %u\nmisplaced %u\n",
		   (int)(r.planned - r.executed), r.refused, r.reentered,
		   r.misplaced);
	seq_printf(out, "starved %u\nmet %u\nworkers %u\nrescued %u\n", r.starved,
		   r.met, r.workers, r.rescued);
	seq_printf(out, "cpu_peak %u\nqueue_peak %u\n", r.cpu_peak, r.queue_peak);
	seq_printf(out, "wait_mean_us %llu\nwait_max_us %llu\nelapsed_ms %llu\n",
		   div_u64(r.wait_mean_ns, NSEC_PER_USEC),
		   div_u64(r.wait_max_ns, NSEC_PER_USEC),
		   div_u64(r.elapsed_ns, NSEC_PER_MSEC));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int __init cmwq_load_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	if (IS_ERR(folder)) {
		pr_err("this kernel has no debugfs (CONFIG_DEBUG_FS)\n");
		return PTR_ERR(folder);
	}
	debugfs_create_file("start", 0200, folder, NULL, &start_fops);
	debugfs_create_file("result", 0400, folder, NULL, &result_fops);
	return 0;
}

static void __exit cmwq_load_exit(void)
{
	debugfs_remove_recursive(folder);
}

module_init(cmwq_load_init);
module_exit(cmwq_load_exit);
MODULE_AUTHOR("the wqlab authors");
MODULE_DESCRIPTION("Synthetic load for concurrency managed workqueues");
MODULE_LICENSE("GPL");
