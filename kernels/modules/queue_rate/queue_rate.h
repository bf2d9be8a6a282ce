/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef QUEUE_RATE_H
#define QUEUE_RATE_H

#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#define MOST_INTERVALS	64

struct request {
	unsigned int producers;		/* 0: one for each online CPU */
	unsigned int first;		/* 1: on the first CPUs, 0: spread */
	unsigned int intervals;
	unsigned int interval_us;
	unsigned int mark;
};

/*
 * Log-linear histogram of times in ns: exact up to 63, then 32 buckets for each
 * power of two, so a bucket is at most 1/32 of its value wide. The last bucket
 * has all times from 2^32 ns on.
 */
#define SUB_BUCKET_BITS	5
#define NR_BUCKETS	896

struct histogram {
	u32 counts[NR_BUCKETS];
};

static inline void histogram_add(struct histogram *histogram, u64 ns)
{
	unsigned int shift = max(fls64(ns) - (SUB_BUCKET_BITS + 1), 0);
	u64 bucket = ((u64)shift << SUB_BUCKET_BITS) + (ns >> shift);

	histogram->counts[min_t(u64, bucket, NR_BUCKETS - 1)]++;
}

/* Works whose completion their producers saw in an interval. */
struct interval {
	u64 items;
	struct histogram queue;			/* time in queue_work() */
	struct histogram queue_to_start;	/* from before queue_work() */
};

struct rate_result {
	struct request request;
	struct cpumask cpus;		/* of the producers */
	unsigned int lost;
	u64 ns[MOST_INTERVALS];		/* length of each interval */
	struct interval intervals[];	/* request.intervals of them */
};

/*
 * run.c: fill the result but for its request. Return 0, -EINVAL, -ENOMEM, or
 * -EINTR if the caller is killed.
 */
int rate_run(const struct request *request, struct workqueue_struct *wq,
	     struct rate_result *result);

#endif
