// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log-linear histograms of times in ns.
 */
#include <linux/bitops.h>
#include <linux/minmax.h>

#include "work_latency.h"

void histogram_add(struct histogram *histogram, u64 ns)
{
	unsigned int shift = max(fls64(ns) - (SUB_BUCKET_BITS + 1), 0);
	u64 bucket = ((u64)shift << SUB_BUCKET_BITS) + (ns >> shift);

	histogram->counts[min_t(u64, bucket, NR_BUCKETS - 1)]++;
	histogram->max_ns = max(histogram->max_ns, ns);
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

/* Lines of "ns count". */
void histogram_show(struct seq_file *out, const struct histogram *histogram)
{
	unsigned int bucket;

	for (bucket = 0; bucket < NR_BUCKETS; bucket++)
		if (histogram->counts[bucket])
			seq_printf(out, "%llu %u\n", bucket_ns(bucket),
				   histogram->counts[bucket]);
}
