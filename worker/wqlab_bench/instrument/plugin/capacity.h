/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Caches of a stated size, as an option of the line model.
 *
 * Each core has an L2 of `l2_kib` and each L3 domain an L3 of `l3_kib`, if they are given. Both are set-associative (8
 * and 16 ways), replace the least recently used line of a set, and are indexed by the low bits of the line number.
 * Every access goes through the core's L2; those that miss it also go through the L3. A CPU keeps its copy of a line
 * for as long as its core's L2 or its domain's L3 has the line; then the line comes from memory and is no transfer. A
 * line that another CPU's store took keeps its way until it is replaced.
 */
#ifndef WQLAB_CAPACITY_H
#define WQLAB_CAPACITY_H

#include <stdint.h>

#include "topology.h"

enum { LINE_SHIFT = 6, LINE_BYTES = 1 << LINE_SHIFT };

/* The nearest cache that has a line which did not move; COPY_DRAM: none has. */
enum copy { COPY_L2, COPY_L3, COPY_DRAM };

/* A line (physical address >> LINE_SHIFT) that the caches of these CPUs have no room for any more; 0 CPUs: none. */
struct evicted {
	uint64_t number, cpus;
};

enum { EVICTED_MAX = 2 };

/*
 * Return the caches of a machine, or NULL if both sizes are 0 (unlimited). Ends QEMU if a size does not give
 * a power of two of sets.
 */
struct capacity *capacity_new(const struct topology *topology, uint64_t l2_kib, uint64_t l3_kib);

/* Empty all caches. */
void capacity_forget(struct capacity *capacity);

/* Note that a CPU accessed a line, and tell which lines left its L2 and its L3. Return which cache had the line. */
enum copy capacity_access(struct capacity *capacity, unsigned int cpu, uint64_t number,
			  struct evicted evicted[EVICTED_MAX]);

#endif
