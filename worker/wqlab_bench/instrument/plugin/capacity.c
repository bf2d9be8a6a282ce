/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capacity.h"

#include <stdbool.h>
#include <string.h>

#include "memory.h"

enum { L2_WAYS = 8, L3_WAYS = 16 };

/* The ways of a set are in order of use, newest first: line number + 1, or 0 for an empty way. */
struct cache {
	uint64_t *ways;
	uint64_t sets;
	unsigned int ways_a_set;
};

struct capacity {
	const struct topology *topology;
	struct cache l2[CPUS_MAX], l3[CPUS_MAX]; /* by core and by L3 domain; no sets: unlimited, or no such core */
	uint64_t core_cpus[CPUS_MAX], l3_cpus[CPUS_MAX]; /* sets of CPUs */
};

static void cache_init(struct cache *cache, uint64_t kib, unsigned int ways)
{
	if (!kib || cache->sets)
		return;
	cache->sets = (kib << 10 >> LINE_SHIFT) / ways;
	if (!cache->sets || cache->sets & (cache->sets - 1))
		die("a cache of %llu KiB with %u ways has no power of two of sets; choose a power of two",
		    (unsigned long long)kib, ways);
	cache->ways_a_set = ways;
	cache->ways = allocate(cache->sets * ways, sizeof(*cache->ways));
}

struct capacity *capacity_new(const struct topology *topology, uint64_t l2_kib, uint64_t l3_kib)
{
	struct capacity *capacity;

	if (!l2_kib && !l3_kib)
		return NULL;
	capacity = allocate(1, sizeof(*capacity));
	capacity->topology = topology;
	for (unsigned int cpu = 0; cpu < topology->cpus; cpu++) {
		cache_init(&capacity->l2[topology->core[cpu]], l2_kib, L2_WAYS);
		cache_init(&capacity->l3[topology->l3[cpu]], l3_kib, L3_WAYS);
		capacity->core_cpus[topology->core[cpu]] |= UINT64_C(1) << cpu;
		capacity->l3_cpus[topology->l3[cpu]] |= UINT64_C(1) << cpu;
	}
	return capacity;
}

static void cache_forget(struct cache *cache)
{
	if (cache->sets)
		memset(cache->ways, 0, cache->sets * cache->ways_a_set * sizeof(*cache->ways));
}

void capacity_forget(struct capacity *capacity)
{
	for (int i = 0; i < CPUS_MAX; i++) {
		cache_forget(&capacity->l2[i]);
		cache_forget(&capacity->l3[i]);
	}
}

static uint64_t *set_of(const struct cache *cache, uint64_t number)
{
	return cache->ways + (number & (cache->sets - 1)) * cache->ways_a_set;
}

static bool cache_has(const struct cache *cache, uint64_t number)
{
	const uint64_t *set;

	if (!cache->sets)
		return false;
	set = set_of(cache, number);
	for (unsigned int way = 0; way < cache->ways_a_set; way++)
		if (set[way] == number + 1)
			return true;
	return false;
}

/* Make a line the newest of its set. Return true on a hit; else `evicted` is the line that left + 1, or 0. */
static bool cache_use(struct cache *cache, uint64_t number, uint64_t *evicted)
{
	uint64_t *set = set_of(cache, number);
	unsigned int way = 0;
	bool is_hit;

	while (way < cache->ways_a_set - 1 && set[way] != number + 1)
		way++;
	is_hit = set[way] == number + 1;
	*evicted = is_hit ? 0 : set[way];
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = number + 1;
	return is_hit;
}

enum copy capacity_access(struct capacity *capacity, unsigned int cpu, uint64_t number,
			  struct evicted evicted[EVICTED_MAX])
{
	unsigned int core = capacity->topology->core[cpu], l3 = capacity->topology->l3[cpu];
	struct cache *near = &capacity->l2[core], *far = &capacity->l3[l3];
	uint64_t left = 0;

	memset(evicted, 0, EVICTED_MAX * sizeof(*evicted));
	if (near->sets) {
		if (cache_use(near, number, &left))
			return COPY_L2;
		if (left && !cache_has(far, left - 1))
			evicted[0] = (struct evicted){ left - 1, capacity->core_cpus[core] };
	}
	if (!far->sets || cache_use(far, number, &left))
		return COPY_L3;
	if (!left)
		return COPY_DRAM;
	/* The L3 does not include the L2: a core whose L2 still has the line keeps it. */
	evicted[1].number = left - 1;
	for (unsigned int other = 0; other < capacity->topology->cpus; other++)
		if (capacity->l3_cpus[l3] >> other & 1 &&
		    !cache_has(&capacity->l2[capacity->topology->core[other]], left - 1))
			evicted[1].cpus |= UINT64_C(1) << other;
	return COPY_DRAM;
}
