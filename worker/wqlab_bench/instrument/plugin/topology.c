/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "topology.h"

#include <stdio.h>
#include <string.h>

#include "memory.h"

enum level topology_level(const struct topology *topology, unsigned int cpu, unsigned int other)
{
	if (topology->core[cpu] == topology->core[other])
		return LEVEL_SMT;
	if (topology->l3[cpu] == topology->l3[other])
		return LEVEL_L3;
	return topology->node[cpu] == topology->node[other] ? LEVEL_NODE : LEVEL_REMOTE;
}

static void find_neighbours(struct topology *topology, unsigned int cpu)
{
	for (unsigned int other = 0; other < topology->cpus; other++) {
		if (other == cpu)
			continue;
		for (int level = topology_level(topology, cpu, other); level < LEVELS; level++)
			topology->within[cpu][level] |= UINT64_C(1) << other;
	}
}

void topology_parse(struct topology *topology, const char *text)
{
	const char *rest = text;

	memset(topology, 0, sizeof(*topology));
	while (*rest) {
		unsigned int cpu = topology->cpus, *core = topology->core + cpu, *l3 = topology->l3 + cpu;
		int length = 0;

		if (cpu == CPUS_MAX)
			die("cpus= names more than %d CPUs", CPUS_MAX);
		if (sscanf(rest, "%u:%u:%u%n", core, l3, topology->node + cpu, &length) != 3 ||
		    (rest[length] && rest[length] != '/') || *core >= CPUS_MAX || *l3 >= CPUS_MAX)
			die("cpus=%s: expected CORE:L3:NODE of each CPU, separated by /, numbers below %d", text,
			    CPUS_MAX);
		rest += length + (rest[length] == '/');
		topology->cpus++;
	}
	for (unsigned int cpu = 0; cpu < topology->cpus; cpu++)
		find_neighbours(topology, cpu);
}
