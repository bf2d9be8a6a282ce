/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which CPUs share a core, an L3 cache and a NUMA node. */
#ifndef WQLAB_TOPOLOGY_H
#define WQLAB_TOPOLOGY_H

#include <stdint.h>

enum { CPUS_MAX = 64 };

/* How near two CPUs are: the smallest part of the machine that holds both. */
enum level { LEVEL_SMT, LEVEL_L3, LEVEL_NODE, LEVEL_REMOTE, LEVELS };

struct topology {
	unsigned int cpus;
	unsigned int core[CPUS_MAX], l3[CPUS_MAX], node[CPUS_MAX]; /* numbers, by CPU */
	uint64_t within[CPUS_MAX][LEVELS]; /* set of the other CPUs at this level or nearer, by CPU */
};

/* Read CORE:L3:NODE/CORE:L3:NODE/..., one for each CPU. Ends QEMU if the text is not of this form. */
void topology_parse(struct topology *topology, const char *text);

enum level topology_level(const struct topology *topology, unsigned int cpu, unsigned int other);

#endif
