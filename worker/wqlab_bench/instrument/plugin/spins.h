/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which call waits how long for which spinlock, in virtual time, on x86-64.
 *
 * A lock that is not free is taken by queued_spin_lock_slowpath(), whose address the layout has (kernel_data.h). A wait
 * is from its first instruction until it is left. The lock is its first argument; the call is that of the function of
 * the lock (_raw_spin_lock() and others, together in the text of locks). Kernels need frame pointers for that.
 */
#ifndef WQLAB_SPINS_H
#define WQLAB_SPINS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel_data.h"
#include "table.h"
#include "timing.h"

enum { SPIN_CONTEXTS = 4 }; /* task, soft interrupt, interrupt, NMI: each may wait while it interrupts another */

struct spins {
	struct {
		uint64_t line, site;
		int64_t since;
	} waits[CPUS_MAX][SPIN_CONTEXTS];
	unsigned int depth[CPUS_MAX];
	struct table sums; /* line of the lock, address in the call -> number, picoseconds */
};

/* Return true if the instruction at `pc` is the first of the slow path, or the last one that it executes. */
bool spins_begin_at(const struct kernel_data *kernel, uint64_t pc);
bool spins_end_at(const struct kernel_data *kernel, uint64_t pc, const uint8_t *bytes, size_t size);

/* A CPU begins to wait, before the block's first instruction; it ends to wait. */
void spins_begin(struct spins *spins, const struct kernel_data *kernel, const struct timing *timing, unsigned int cpu);
void spins_end(struct spins *spins, const struct timing *timing, unsigned int cpu);

/* A window begins: forget all waits, also those that have not ended. */
void spins_forget(struct spins *spins);

/* Print the `spin` records; after kernel_data_begin(). */
void spins_print(const struct spins *spins, struct kernel_data *kernel, FILE *file);

#endif
