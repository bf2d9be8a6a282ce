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
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/uaccess.h>

#include "cmwq_load.h"

#define REQUEST_MAX	128
#define DURATION_MAX_MS	300000

static DEFINE_MUTEX(start_lock);
static DEFINE_MUTEX(result_lock);
static struct load_result last;
static bool have_result;
static struct dentry *folder;

static bool read_number(const char *text, unsigned int least, unsigned int most,
			unsigned int *number)
{
	unsigned int value;

	if (kstrtouint(text, 10, &value) || value < least || value > most)
		return false;
	*number = value;
	return true;
}

static const char *read_word(struct request *request, const char *key,
			     const char *value)
{
	if (!strcmp(key, "workload"))
		return read_number(value, 0, NR_WORKLOADS - 1,
				   &request->workload) ? NULL : "0 to 5";
	if (!strcmp(key, "duration_ms"))
		return read_number(value, 1, DURATION_MAX_MS,
				   &request->duration_ms) ? NULL : "1 to 300000";
	if (!strcmp(key, "seed"))
		return read_number(value, 0, UINT_MAX, &request->seed) ?
		       NULL : "a 32-bit number";
	if (!strcmp(key, "sleeps"))
		return read_number(value, 1, 2, &request->sleeps) ?
		       NULL : "1 or 2";
	if (!strcmp(key, "cpu")) {
		if (!strcmp(value, "all"))
			request->cpu = CPU_ALL;
		else if (!read_number(value, 0, nr_cpu_ids - 1, &request->cpu))
			return "all or a CPU number";
		return NULL;
	}
	if (!strcmp(key, "burn")) {
		if (!strcmp(value, "L"))
			request->burn = BURN_L;
		else if (!strcmp(value, "S"))
			request->burn = BURN_S;
		else
			return "L or S";
		return NULL;
	}
	return "one of workload, burn, duration_ms, cpu, seed, sleeps";
}

static int read_request(char *text, struct request *request)
{
	char *word;

	*request = (struct request) {
		.workload = UINT_MAX, .burn = UINT_MAX, .cpu = CPU_ALL, .seed = 1,
		.sleeps = 1,
	};
	while ((word = strsep(&text, "\n "))) {
		char *value = strchr(word, '=');
		const char *expected;

		if (!*word)
			continue;
		if (!value) {
			pr_warn("'%s' is not KEY=VALUE\n", word);
			return -EINVAL;
		}
		*value++ = '\0';
		expected = read_word(request, word, value);
		if (expected) {
			pr_warn("invalid '%s=%s': must be %s\n", word, value,
				expected);
			return -EINVAL;
		}
	}
	if (request->workload == UINT_MAX || request->burn == UINT_MAX ||
	    !request->duration_ms) {
		pr_warn("the request needs workload, burn and duration_ms\n");
		return -EINVAL;
	}
	return 0;
}

static ssize_t start_write(struct file *file, const char __user *buffer,
			   size_t count, loff_t *position)
{
	char text[REQUEST_MAX];
	struct load_result result;
	struct request request;
	int error;

	if (count >= sizeof(text)) {
		pr_warn("request of %zu characters is too long: at most %d\n",
			count, REQUEST_MAX - 1);
		return -EINVAL;
	}
	if (copy_from_user(text, buffer, count))
		return -EFAULT;
	text[count] = '\0';
	error = read_request(text, &request);
	if (error)
		return error;
	if (!mutex_trylock(&start_lock)) {
		pr_warn("a load is already running\n");
		return -EBUSY;
	}
	error = load_run(&request, &result);
	if (!error) {
		mutex_lock(&result_lock);
		last = result;
		have_result = true;
		mutex_unlock(&result_lock);
	}
	mutex_unlock(&start_lock);
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
	seq_printf(out, "workload %u\nburn %c\nduration_ms %u\nseed %u\nsleeps %u\n",
		   r.request.workload, r.request.burn == BURN_L ? 'L' : 'S',
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
