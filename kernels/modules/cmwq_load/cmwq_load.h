/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CMWQ_LOAD_H
#define CMWQ_LOAD_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#define NR_WORKLOADS	6
/* Value of request.cpu: spread the works over all CPUs. */
#define CPU_ALL		UINT_MAX
/* How long guests wait for each other in meet(). */
#define MEETING_MS	30000

enum shape { SHORT, MEDIUM, LONG, NR_SHAPES };
enum burn { BURN_L, BURN_S, NR_BURNS };

struct shape_spec {
	unsigned int burn_us[NR_BURNS];
	unsigned int mean_sleep_ms;
	unsigned int mean_resched_ms;
	/* Divides the cycles, so that all shapes end at about the same time. */
	unsigned int factor;
};

extern const struct shape_spec load_shapes[NR_SHAPES];

struct request {
	unsigned int workload;
	unsigned int burn;
	unsigned int duration_ms;
	unsigned int cpu;
	unsigned int seed;
	unsigned int sleeps;
};

/* Counts over all works of one CPU. */
struct lane {
	spinlock_t lock;	/* protects all members */
	u64 progress_ns;	/* when a work last ran on the CPU */
	unsigned int inside;
	unsigned int peak;
	unsigned int starved;
	unsigned int entered;
	u64 wait_ns;
	u64 wait_max_ns;
};

struct load_queue {
	struct load_state *run;
	struct workqueue_struct *wq;
	struct work_struct guest;
	atomic_t *inside;	/* indexed by CPU */
};

struct load_work {
	struct delayed_work dwork;
	struct load_state *run;
	struct load_queue *queue;
	enum shape shape;
	unsigned int cpu;
	unsigned int cycles_left;
	u64 due_ns;
	atomic_t inside;
	struct rnd_state random;
};

struct load_state {
	struct request request;
	struct load_queue *queues;
	struct load_work *works;
	struct lane *lanes;		/* indexed by CPU */
	unsigned int nr_queues;
	unsigned int nr_works;
	struct completion done;
	bool stopping;
	atomic_t unfinished;
	atomic_t queued;
	atomic_t executed;
	atomic_t refused;
	atomic_t reentered;
	atomic_t misplaced;
	atomic_t queue_peak;
	atomic_t workers;
	atomic_t rescued;
	struct xarray seen;		/* workers, indexed by process id */
	struct workqueue_struct *meeting_wq;
	wait_queue_head_t meeting;
	atomic_t guests;
};

struct load_result {
	struct request request;
	unsigned int queues, works, planned, queued, executed, refused;
	unsigned int reentered, misplaced, starved, met;
	unsigned int workers, rescued, cpu_peak, queue_peak;
	u64 wait_mean_ns, wait_max_ns, elapsed_ns;
};

/* work.c */
void load_work_fn(struct work_struct *item);
void load_guest_fn(struct work_struct *item);
void load_queue_after(struct load_work *work, unsigned int delay_ms);

/* run.c: returns 0, -EINVAL, -ENOMEM, or -EINTR if the caller is killed. */
int load_run(const struct request *request, struct load_result *result);

#endif
