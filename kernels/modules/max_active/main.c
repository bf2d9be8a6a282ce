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
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/uaccess.h>

#include "max_active.h"

#define REQUEST_MAX	256

static DEFINE_MUTEX(start_lock);
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

static const struct number_key {
	const char *name;
	size_t offset;
	unsigned int least;
	unsigned int most;
} number_keys[] = {
	{ "max_active", offsetof(struct request, max_active), 0, WQ_MAX_ACTIVE },
	{ "works", offsetof(struct request, works), 1, 10000 },
	{ "cpus", offsetof(struct request, cpus), 1, MAX_ISSUERS },
	{ "steps", offsetof(struct request, steps), 0, 10000 },
	{ "rounds", offsetof(struct request, rounds), 1, 100000 },
	{ "depth", offsetof(struct request, depth), 0, MAX_DEPTH },
	{ "fillers", offsetof(struct request, fillers), 0, 100 },
	{ "queues", offsetof(struct request, queues), 2, MAX_QUEUES },
	{ "polite", offsetof(struct request, polite), 1, 10000 },
	{ "hold_us", offsetof(struct request, hold_us), 0, 1000000 },
	{ "burn_us", offsetof(struct request, burn_us), 0, 5000 },
	{ "limit", offsetof(struct request, limit), 0, WQ_MAX_ACTIVE },
	{ "spans", offsetof(struct request, spans), 0, 1 },
	{ "stall_ms", offsetof(struct request, stall_ms), 1, 100000 },
};

static bool read_name(const char *value, const char * const *names,
		      unsigned int nr_names, unsigned int *found)
{
	for (*found = 0; *found < nr_names; (*found)++)
		if (!strcmp(value, names[*found]))
			return true;
	return false;
}

static bool read_number(const struct number_key *key, const char *value,
			struct request *request)
{
	unsigned int number;

	if (kstrtouint(value, 10, &number) || number < key->least ||
	    number > key->most) {
		pr_warn("invalid '%s=%s': must be a number from %u to %u\n",
			key->name, value, key->least, key->most);
		return false;
	}
	*(unsigned int *)((char *)request + key->offset) = number;
	return true;
}

static bool read_word(const char *name, const char *value, struct request *request)
{
	unsigned int i, found;

	if (!strcmp(name, "shape")) {
		if (read_name(value, shape_names, NR_SHAPES, &found)) {
			request->shape = found;
			return true;
		}
		pr_warn("invalid 'shape=%s': must be one of fan, nested, crossed, fair, shares\n",
			value);
		return false;
	}
	if (!strcmp(name, "kind")) {
		if (read_name(value, kind_names, NR_KINDS, &found)) {
			request->kind = found;
			return true;
		}
		pr_warn("invalid 'kind=%s': must be one of percpu, unbound\n", value);
		return false;
	}
	for (i = 0; i < ARRAY_SIZE(number_keys); i++)
		if (!strcmp(name, number_keys[i].name))
			return read_number(&number_keys[i], value, request);
	pr_warn("invalid '%s': must be one of shape, kind, max_active, works, cpus, steps, rounds, depth, fillers, queues, polite, hold_us, burn_us, limit, spans, stall_ms\n",
		name);
	return false;
}

static int read_request(char *text, struct request *request)
{
	char *word;

	*request = (struct request) {
		.shape = NR_SHAPES, .kind = NR_KINDS, .works = 64, .cpus = 4,
		.steps = 16, .rounds = 10, .fillers = 4, .queues = 4,
		.polite = 20, .hold_us = 1000, .burn_us = 100, .stall_ms = 30000,
	};
	while ((word = strsep(&text, "\n "))) {
		char *value = strchr(word, '=');

		if (!*word)
			continue;
		if (!value) {
			pr_warn("'%s' is not KEY=VALUE\n", word);
			return -EINVAL;
		}
		*value++ = '\0';
		if (!read_word(word, value, request))
			return -EINVAL;
	}
	if (request->shape == NR_SHAPES || request->kind == NR_KINDS) {
		pr_warn("the request needs shape and kind\n");
		return -EINVAL;
	}
	return 0;
}

static int run(const struct request *request)
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
	char text[REQUEST_MAX];
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
		pr_warn("a request is already running\n");
		return -EBUSY;
	}
	error = run(&request);
	mutex_unlock(&start_lock);
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
