/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum {
	UNIT_PS = 10, /* VTIME_UNIT_PS */
	CLUSTERS_TEXT = 512,
	FINER = 10, /* CPUs between which a line moved take turns this much shorter, ... */
	FINE_QUANTA = 50, /* ... for so many quanta */
};

/* VTimeCosts of model/qemu.patch, which compares the size. */
struct vtime_costs {
	int64_t quantum, fine_quantum, fine_for, io, ipi, interrupt, idle_exit, idle_exit_deep, idle_deep_after, smt_percent;
	int64_t percent[CPUS_MAX];
	int sibling[CPUS_MAX];
};

bool qemu_plugin_vtime_enable(const struct vtime_costs *costs, size_t size);
bool qemu_plugin_vtime_cpu(unsigned int cpu, struct qemu_plugin_vtime_view *view);
void qemu_plugin_vtime_wait(void *cpu, int64_t ps);
void qemu_plugin_vtime_interact(unsigned int cpu, unsigned int other);
void qemu_plugin_vtime_block_cost(uint32_t units);
#pragma weak qemu_plugin_vtime_enable
#pragma weak qemu_plugin_vtime_cpu
#pragma weak qemu_plugin_vtime_wait
#pragma weak qemu_plugin_vtime_interact
#pragma weak qemu_plugin_vtime_block_cost

static const char *const names[COSTS] = {
	[CLASS_SIMPLE] = "simple",
	[CLASS_MULTIPLY] = "multiply",
	[CLASS_DIVIDE] = "divide",
	[CLASS_SIMD] = "simd",
	[CLASS_CRYPTO] = "crypto",
	[CLASS_ATOMIC] = "atomic",
	[CLASS_PAUSE] = "pause",
	[CLASS_STRING] = "string",
	[COST_L2_HIT] = "l2_hit",
	[COST_L3_HIT] = "l3_hit",
	[COST_DRAM] = "dram",
	[COST_SMT] = "smt",
	[COST_WITHIN_L3] = "within_l3",
	[COST_OTHER_L3] = "other_l3",
	[COST_OTHER_NODE] = "other_node",
	[COST_STORE_PERCENT] = "store_percent",
	[COST_STREAM_PERCENT] = "stream_percent",
	[COST_JITTER_PERCENT] = "jitter_percent",
	[COST_L1_KIB] = "l1_kib",
	[COST_L2_KIB] = "l2_kib",
	[COST_L3_KIB] = "l3_kib",
	[COST_IO] = "io",
	[COST_IPI] = "ipi",
	[COST_INTERRUPT] = "interrupt",
	[COST_IDLE_EXIT] = "idle_exit",
	[COST_IDLE_EXIT_DEEP] = "idle_exit_deep",
	[COST_IDLE_DEEP_AFTER] = "idle_deep_after",
	[COST_SMT_PERCENT] = "smt_percent",
	[COST_QUANTUM] = "quantum",
};

static int cost_of_name(const char *name)
{
	for (int cost = 0; cost < COSTS; cost++)
		if (!strcmp(names[cost], name))
			return cost;
	return COSTS;
}

/* Read the percentages of all L3 domains, separated by slashes, into those of the CPUs. */
static void read_clusters(const struct topology *topology, const char *path, const char *text, int64_t *percent)
{
	int64_t clusters[CPUS_MAX];
	unsigned int count = 0;
	const char *rest = text;

	for (char *end; count < CPUS_MAX; rest = end + 1) {
		clusters[count++] = strtoll(rest, &end, 10);
		if (end == rest || (*end && *end != '/') || clusters[count - 1] <= 0)
			die("%s: cluster_percent %s: expected a number above 0 for each L3 domain, separated by /", path, text);
		if (!*end)
			break;
	}
	for (unsigned int cpu = 0; cpu < topology->cpus; cpu++) {
		if (topology->l3[cpu] >= count)
			die("%s: cluster_percent %s has no number for L3 domain %u", path, text, topology->l3[cpu]);
		percent[cpu] = clusters[topology->l3[cpu]];
	}
}

static void read_costs(struct timing *timing, const char *path, struct vtime_costs *costs)
{
	char name[64], text[CLUSTERS_TEXT];
	bool is_known[COSTS + 1] = { false };
	FILE *file = fopen(path, "r");

	if (!file)
		die("cannot read the costs in %s", path);
	while (fscanf(file, "%63s %511s", name, text) == 2) {
		int cost = cost_of_name(name);
		char *end;

		if (!strcmp(name, "cluster_percent")) {
			read_clusters(timing->topology, path, text, costs->percent);
		} else if (cost == COSTS) {
			die("%s: unknown cost %s", path, name);
		} else {
			timing->costs[cost] = strtoll(text, &end, 10);
			if (*end || timing->costs[cost] < 0)
				die("%s: %s %s: expected a number from 0", path, name, text);
		}
		is_known[cost] = true;
	}
	fclose(file);
	for (int cost = 0; cost < COSTS; cost++)
		if (!is_known[cost])
			die("%s has no cost %s", path, names[cost]);
	if (!is_known[COSTS])
		die("%s has no cost cluster_percent", path);
}

static int sibling_of(const struct topology *topology, unsigned int cpu)
{
	for (unsigned int other = 0; other < topology->cpus; other++)
		if (other != cpu && topology->core[other] == topology->core[cpu])
			return other;
	return -1;
}

void timing_init(struct timing *timing, const struct topology *topology, const char *file, uint64_t seed)
{
	struct vtime_costs costs = { 0 };

	if (!qemu_plugin_vtime_enable)
		die("this QEMU has no virtual time for each CPU; `make model` builds one that has");
	timing->topology = topology;
	timing->random = (seed + 1) * 0x9e3779b97f4a7c15;
	read_costs(timing, file, &costs);
	costs.quantum = timing->costs[COST_QUANTUM];
	costs.fine_quantum = costs.quantum / FINER;
	costs.fine_for = costs.quantum * FINE_QUANTA;
	costs.io = timing->costs[COST_IO];
	costs.ipi = timing->costs[COST_IPI];
	costs.interrupt = timing->costs[COST_INTERRUPT];
	costs.idle_exit = timing->costs[COST_IDLE_EXIT];
	costs.idle_exit_deep = timing->costs[COST_IDLE_EXIT_DEEP];
	costs.idle_deep_after = timing->costs[COST_IDLE_DEEP_AFTER];
	costs.smt_percent = timing->costs[COST_SMT_PERCENT];
	for (unsigned int cpu = 0; cpu < topology->cpus; cpu++)
		costs.sibling[cpu] = sibling_of(topology, cpu);
	if (!qemu_plugin_vtime_enable(&costs, sizeof(costs)))
		die("this QEMU has another version of virtual time; build it again with `make model`");
	timing->is_on = true;
}

void timing_find_cpus(struct timing *timing)
{
	for (unsigned int cpu = 0; cpu < timing->topology->cpus; cpu++)
		if (!timing->cpus[cpu].cpu && !qemu_plugin_vtime_cpu(cpu, &timing->cpus[cpu]))
			die("QEMU has no CPU %u", cpu);
}

int64_t timing_state_block(int64_t ps)
{
	int64_t units = (ps + UNIT_PS / 2) / UNIT_PS;

	units = units > 0 ? units : 1;
	qemu_plugin_vtime_block_cost(units);
	return units * UNIT_PS;
}

/* The clock of a CPU that is idle stands still. */
static int64_t idle_until(const struct timing *timing, unsigned int cpu, int64_t now)
{
	int64_t ahead = now - *timing->cpus[cpu].ps;

	return *timing->cpus[cpu].idle_ps + (ahead > timing->costs[COST_QUANTUM] ? ahead : 0);
}

void timing_begin_window(struct timing *timing, unsigned int cpu)
{
	timing->begin = timing_now(timing, cpu);
	for (unsigned int each = 0; each < timing->topology->cpus; each++)
		timing->idle[each] = idle_until(timing, each, timing->begin);
}

void timing_print(const struct timing *timing, unsigned int cpu, FILE *file)
{
	int64_t now = timing_now(timing, cpu);

	for (unsigned int each = 0; each < timing->topology->cpus; each++)
		fprintf(file, "clock\t%u\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n", each, timing->begin, now,
			idle_until(timing, each, now) - timing->idle[each]);
}

/* A prefetcher follows a few sequences of lines for each CPU. */
static bool is_in_stream(struct timing *timing, unsigned int cpu, uint64_t number)
{
	for (int i = 0; i < STREAMS; i++)
		if (number - timing->streams[cpu][i] - 1 < 2) {
			timing->streams[cpu][i] = number;
			return true;
		}
	timing->streams[cpu][timing->next_stream[cpu]++ % STREAMS] = number;
	return false;
}

/*
 * A latency, up to `jitter_percent` more or less. The ways between cores differ in length, and without that, loops of equal
 * instructions keep in step with each other, so that a change of one cycle shows as a jump.
 */
static int64_t jittered(struct timing *timing, int64_t ps)
{
	timing->random ^= timing->random << 13; /* xorshift64, Marsaglia 2003 */
	timing->random ^= timing->random >> 7;
	timing->random ^= timing->random << 17;
	return ps + ps * timing->costs[COST_JITTER_PERCENT] / 100 * ((int64_t)(timing->random >> 33 & 0x3ff) - 0x200) / 0x200;
}

static int64_t reduced(int64_t ps, int64_t percent)
{
	return ps * percent / 100;
}

int64_t timing_wait_for_transfer(struct timing *timing, unsigned int cpu, struct line *line, uint64_t number,
				 const struct transfer *transfer, bool is_store, bool is_atomic)
{
	int64_t now = timing_now(timing, cpu), from = line->ps > now ? line->ps : now;
	int64_t latency = timing->costs[COST_SMT + transfer->level];

	/* Of a line that several CPUs share, the L3 has a copy too. */
	if (!is_store && transfer->is_shared && latency > timing->costs[COST_L3_HIT] && transfer->level <= LEVEL_L3)
		latency = timing->costs[COST_L3_HIT];
	latency = jittered(timing, latency);
	if (is_in_stream(timing, cpu, number))
		latency = reduced(latency, timing->costs[COST_STREAM_PERCENT]);
	if (is_store)
		line->ps = from + latency;
	if (is_store && !is_atomic) {
		if (timing->drained[cpu] < line->ps)
			timing->drained[cpu] = line->ps;
		latency = reduced(latency, timing->costs[COST_STORE_PERCENT]);
	}
	qemu_plugin_vtime_wait(timing->cpus[cpu].cpu, from + latency - now);
	qemu_plugin_vtime_interact(cpu, transfer->from);
	return from + latency - now;
}

int64_t timing_drain(struct timing *timing, unsigned int cpu)
{
	int64_t ps = timing->drained[cpu] - timing_now(timing, cpu);

	if (ps <= 0)
		return 0;
	qemu_plugin_vtime_wait(timing->cpus[cpu].cpu, ps);
	return ps;
}

int64_t timing_wait_for_copy(struct timing *timing, unsigned int cpu, uint64_t number, enum copy copy)
{
	int64_t latency = timing->costs[COST_L2_HIT + copy];

	if (is_in_stream(timing, cpu, number))
		latency = reduced(latency, timing->costs[COST_STREAM_PERCENT]);
	if (latency)
		qemu_plugin_vtime_wait(timing->cpus[cpu].cpu, latency);
	return latency;
}
