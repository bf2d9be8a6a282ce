/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WORK_LATENCY_H
#define WORK_LATENCY_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

/* Value of request.cpu: issue the works from each online CPU in turn. */
#define CPU_ALL		UINT_MAX
/* Value of request.target: the CPU that issues the work. */
#define TARGET_LOCAL	UINT_MAX

enum kind {
	KIND_PERCPU,
	KIND_HIGHPRI,
	KIND_CPU_INTENSIVE,
	KIND_BH,
	KIND_UNBOUND,
	KIND_ORDERED,
	KIND_DELAYED,
	KIND_RESCUER,
	NR_KINDS
};

struct request {
	enum kind kind;
	unsigned int works;
	unsigned int cpu;
	unsigned int target;
	unsigned int gap_us;
	unsigned int bytes;
	unsigned int delay_ms;
	unsigned int late_ms;
	unsigned int batch;
	unsigned int burn_us;
};

/*
 * Log-linear: exact up to 127, then 64 buckets for each power of two, so a
 * bucket is at most 1/64 of its value wide. The last bucket has all longer times.
 */
#define SUB_BUCKET_BITS	6
#define NR_BUCKETS	2496

struct histogram {
	u32 counts[NR_BUCKETS];
	u64 max_ns;
};

/* Works that were issued on one CPU and executed on one. */
struct pair {
	u32 works;
	u64 exec_ns;
};

#define NR_SEEN		1024

struct seen_worker {
	pid_t pid;
	unsigned long switches;	/* voluntary, at the end of its last work */
};

struct latency_result {
	struct request request;
	unsigned int queued, executed, lost, late, lost_wakeups, revived;
	unsigned int misplaced, early, wrong_context;
	unsigned int workers, rescued, in_ksoftirqd, blocked;
	unsigned int beside_long;
	unsigned long wakeups;
	u64 elapsed_ns;
	struct histogram queue_to_start;
	struct histogram start_to_end;
	unsigned int nr_cpus;
	struct pair pairs[];	/* nr_cpus x nr_cpus: issued on, executed on */
};

/* A work of the current batch, and when and where it was executed. */
struct latency_work {
	struct work_struct item;
	struct latency_run *run;
	u64 due_ns;
	u64 started_ns;
	u64 ended_ns;		/* 0 until then */
	unsigned int ran_on;
	bool started;
};

struct latency_run {
	struct request request;
	struct latency_result *result;
	struct workqueue_struct *wq;
	struct latency_work *works;	/* request.batch of them */
	struct delayed_work dwork;	/* in place of the first one's */
	struct work_struct nudge;
	struct completion ended;	/* of the current batch */
	struct completion done;		/* of all */
	atomic_t unfinished;		/* works of the current batch */
	bool stopping;
	int error;
	unsigned int cpu;	/* that issues the current work */
	unsigned int target;	/* to which it is bound, or WORK_CPU_UNBOUND */
	unsigned long due_jiffies;	/* of a delayed work */
	spinlock_t lock;		/* protects seen, and result while works run */
	struct seen_worker seen[NR_SEEN];
	unsigned char *data;
	unsigned long sum;
};

/* queue.c */
extern const char * const kind_names[NR_KINDS];
int queues_create(void);
void queues_destroy(void);
/* Return NULL if this kernel does not have the kind. */
struct workqueue_struct *queue_of(enum kind kind);
bool kind_is_bound(enum kind kind);
/* A workqueue without rescuer, whose works run in the same pool as KIND_RESCUER. */
struct workqueue_struct *blocker_queue(void);

/* run.c: return 0, -EINVAL, -ENOMEM, -EAGAIN, or -EINTR if the caller is killed. */
int latency_run(const struct request *request, struct latency_result *result);

/* histogram.c */
void histogram_add(struct histogram *histogram, u64 ns);
void histogram_show(struct seq_file *out, const struct histogram *histogram);

/*
 * pressure.c: keep the pool of a CPU from creating workers, by taking all memory.
 * Return the number of workers that the pool had to create before, or -EAGAIN if
 * it could still create one. Call pressure_end() after both.
 */
int pressure_begin(unsigned int cpu);
void pressure_end(void);

#endif
