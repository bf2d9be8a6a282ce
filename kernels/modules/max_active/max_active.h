/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MAX_ACTIVE_H
#define MAX_ACTIVE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

enum shape {
	SHAPE_FAN,
	SHAPE_NESTED,
	SHAPE_CROSSED,
	SHAPE_FAIR,
	SHAPE_SHARES,
	NR_SHAPES
};

enum kind {
	KIND_PERCPU,
	KIND_UNBOUND,
	NR_KINDS
};

/* Most workqueues of a request. */
#define MAX_QUEUES	16
/* Most CPUs that issue works. */
#define MAX_ISSUERS	64
/* Most works in a chain. */
#define MAX_DEPTH	64

struct request {
	enum shape shape;
	enum kind kind;
	unsigned int max_active;	/* 0: the kernel's default */
	unsigned int works;
	unsigned int cpus;
	unsigned int steps;
	unsigned int rounds;
	unsigned int depth;		/* 0: the deepest that must end */
	unsigned int fillers;
	unsigned int queues;
	unsigned int polite;
	unsigned int hold_us;
	unsigned int burn_us;
	unsigned int limit;		/* expected, for tests of the module; 0: computed */
	unsigned int spans;		/* pools of unbound workqueues span the nodes */
	unsigned int stall_ms;
};

/* Delays from the moment from which a work may start, see the shapes. */
struct delays {
	u64 sum_ns;
	u64 max_ns;
	unsigned int works;
};

/*
 * What one limit applies to: the works of one workqueue that are queued on some
 * of the CPUs.
 */
struct group {
	int place;		/* CPU or node, or -1: all */
	unsigned int queue;
	unsigned int limit;
	unsigned int wanted;	/* in execution at once: the limit or, if fewer, all works */
	unsigned int reached;	/* when nothing more started */
	unsigned int peak;
	unsigned int queued, started, ended;
	unsigned int executed;	/* ended before the run was given up */

	/* of the run */
	unsigned int running;
	bool unlimited;		/* a deadlock was revived */
	struct list_head held;
	unsigned int due;	/* works that must have ended, in a step */
	u64 freed_ns;		/* when the last work ended */
	u64 counted_ns;		/* up to which the times below are counted */
	u64 waiting_ns;		/* works waited */
	u64 full_ns;		/* works waited and the limit was reached */
};

struct active_result {
	struct request request;
	const char *applies_to;
	unsigned int queued, executed, lost;
	unsigned int excess, deficit, slots, slots_lost;
	unsigned int depth, chains, deadlocks, revived;
	unsigned int polite, overtaken_max, least_served;
	u64 overtaken;
	struct delays delays;
	u64 waiting_ns, full_ns, elapsed_ns;
	unsigned int nr_groups;
	struct group groups[MAX_ISSUERS * MAX_QUEUES];
};

struct active_run;

/* A work. */
struct item {
	struct work_struct work;
	struct active_run *run;
	struct group *group;
	unsigned int cpu;	/* on which it is queued */
	void (*body)(struct item *item);
	struct list_head held;
	struct completion released;
	bool started, ended;
	u64 queued_ns;
	unsigned int level;	/* in a chain, or of the works of a polite workqueue */
	unsigned int seen;	/* greedy works that had started when it was queued */
};

/* CPUs that issue works under one limit. */
struct domain {
	int place;
	unsigned int limit;
	unsigned int nr_cpus;
	unsigned int cpus[MAX_ISSUERS];
};

struct active_run {
	struct request request;
	struct active_result *result;
	struct workqueue_struct *wq[MAX_QUEUES];
	unsigned int nr_queues;
	unsigned int nr_domains;
	struct domain domains[MAX_ISSUERS];
	raw_spinlock_t lock;	/* protects the groups, the result and the following */
	unsigned int events;	/* works that started or ended */
	unsigned int greedy;	/* works of the greedy workqueue that started */
	unsigned int done[MAX_QUEUES];	/* works of shape=shares */
	bool one_is_done;
	bool issued;		/* all works that shape=fair and shape=shares begin with are queued */
	bool stepping, draining, aborted;
	wait_queue_head_t changed;
	struct item *items;
	unsigned int nr_items;
	unsigned int used;
};

/* queue.c */
extern const char * const kind_names[NR_KINDS];
/* Create the workqueues and find the limits. Returns 0, -EINVAL or -ENOMEM. */
int queues_create(struct active_run *run);
void queues_destroy(void);
/* Let more works execute than the limit allows, and restore it. */
void queues_widen(struct active_run *run);
void queues_restore(struct active_run *run);

/* run.c */
/* Return 0, -EINVAL, -ENOMEM, or -EINTR if the caller is killed. */
int active_run(const struct request *request, struct active_result *result);
struct group *group_of(struct active_run *run, unsigned int domain,
		       unsigned int queue);
/* Take the next free item, to be executed by `body`. NULL: the run is to end. */
struct item *item_take(struct active_run *run, struct group *group,
		       unsigned int cpu, void (*body)(struct item *item));
void item_queue(struct item *item);
/* Make all items free again, after all works have ended. */
void items_return(struct active_run *run);
void delay_add(struct delays *delays, u64 ns);
void hold(const struct active_run *run);
/*
 * Wait until `done` or until no work has started or ended for stall_ms. Returns
 * 0, -ETIME or -EINTR.
 */
int await(struct active_run *run, bool (*done)(struct active_run *run));
bool all_ended(struct active_run *run);

/* fan.c, chain.c, fair.c: return 0 or -EINTR. */
unsigned int fan_items(const struct active_run *run);
int fan(struct active_run *run);
unsigned int chain_items(const struct active_run *run);
int chains(struct active_run *run);
unsigned int fair_items(const struct active_run *run);
int fair(struct active_run *run);
int shares(struct active_run *run);

#endif
