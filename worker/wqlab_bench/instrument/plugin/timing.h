/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What instructions and cache lines cost in virtual time, on a QEMU whose CPUs have clocks of their own (model/qemu.patch).
 *
 * A block of code costs the sum of its instructions by class. An access costs more if its line is not near: it waits
 * for a copy in L2, L3 or memory, or for a line that another CPU has. A line that moves between CPUs has a time, when
 * its last store or transfer ended: the CPU that takes it waits until then, and for the latency of the transfer. So a
 * CPU never sees data before they were written, although QEMU executes CPUs one after the other.
 *
 * All costs are stated by a file of lines `NAME NUMBER`; times are in picoseconds.
 */
#ifndef WQLAB_TIMING_H
#define WQLAB_TIMING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "decode.h"
#include "lines.h"

enum { STREAMS = 8 };

/* What the patched QEMU gives: the clock of a CPU, and what it has not accounted for yet. */
struct qemu_plugin_vtime_view {
	int64_t *ps, *unit_ps;
	const int64_t *budget, *extra, *idle_ps;
	const uint16_t *low;
	const uint64_t *registers; /* general ones, by number; true when a block begins. NULL: not x86-64 */
	void *cpu;
};

enum cost {
	COST_L2_HIT = CLASSES, /* the costs of instructions by class come first */
	COST_L3_HIT,
	COST_DRAM,
	COST_SMT, /* a line that a CPU of the same core has, of the same L3, ... */
	COST_WITHIN_L3,
	COST_OTHER_L3,
	COST_OTHER_NODE,
	COST_STORE_PERCENT, /* share of a transfer's latency that a plain store waits */
	COST_STREAM_PERCENT, /* share of a latency that an access to the line behind the last one waits */
	COST_JITTER_PERCENT, /* how much the latency of a transfer varies */
	COST_L1_KIB,
	COST_L2_KIB,
	COST_L3_KIB,
	COST_IO,
	COST_IPI,
	COST_INTERRUPT,
	COST_IDLE_EXIT,
	COST_IDLE_EXIT_DEEP,
	COST_IDLE_DEEP_AFTER,
	COST_SMT_PERCENT,
	COST_QUANTUM,
	COSTS,
};

struct timing {
	bool is_on;
	int64_t costs[COSTS];
	uint64_t random; /* state of the generator, not 0 */
	const struct topology *topology;
	struct qemu_plugin_vtime_view cpus[CPUS_MAX];
	uint64_t streams[CPUS_MAX][STREAMS]; /* last lines of sequential accesses, by CPU */
	unsigned int next_stream[CPUS_MAX];
	int64_t drained[CPUS_MAX]; /* when the stores that a CPU did not wait for have ended */
	int64_t begin; /* of the window */
	int64_t idle[CPUS_MAX]; /* until then, by CPU */
};

/* Read the costs and switch virtual time on. Ends QEMU if a cost is missing or wrong, or QEMU has no virtual time. */
void timing_init(struct timing *timing, const struct topology *topology, const char *file, uint64_t seed);

/* Find the clocks of the CPUs; when all CPUs exist. */
void timing_find_cpus(struct timing *timing);

/* State the cost of the block that is being translated, in picoseconds. Return it as QEMU counts it. */
int64_t timing_state_block(int64_t ps);

/*
 * Let time pass for an access that the L1 cache does not serve: for a line that moves between CPUs, or for a copy of one
 * that does not. Return how much, in picoseconds.
 */
int64_t timing_wait_for_transfer(struct timing *timing, unsigned int cpu, struct line *line, uint64_t number,
				 const struct transfer *transfer, bool is_store, bool is_atomic);
int64_t timing_wait_for_copy(struct timing *timing, unsigned int cpu, uint64_t number, enum copy copy);

/* A window begins on a CPU that runs, or ends there: print the records `clock` of window.h. */
void timing_begin_window(struct timing *timing, unsigned int cpu);
void timing_print(const struct timing *timing, unsigned int cpu, FILE *file);

/* Clock of a CPU that runs, in picoseconds. */
static inline int64_t timing_now(const struct timing *timing, unsigned int cpu)
{
	const struct qemu_plugin_vtime_view *view = &timing->cpus[cpu];

	return *view->ps + ((*view->budget - *view->low - *view->extra) * *view->unit_ps >> 7);
}

/*
 * An atomic instruction waits for all stores before it (Intel SDM, volume 3, 9.2.2). Return how long, in picoseconds.
 */
int64_t timing_drain(struct timing *timing, unsigned int cpu);

/* The CPU that stored last has the line until now. */
static inline void timing_stored(const struct timing *timing, unsigned int cpu, struct line *line)
{
	int64_t now = timing_now(timing, cpu);

	if (line->ps < now)
		line->ps = now;
}

#endif
