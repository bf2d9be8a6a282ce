/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is counted between two markers of the guest, and its text. One record a line, fields separated by tabs:
 *
 *   total   INSTRUCTIONS KERNEL_INSTRUCTIONS LOADS STORES LOCKED
 *   code    PC SIZE INSTRUCTIONS                  translated block at PC: its bytes, and its executed instructions
 *   moved   LEVEL KIND PC WRITER_PC COUNT         transfers: smt, l3, node or remote; load or store; the instruction
 *                                                 that took the line, and the one that wrote it before (0: none known)
 *   line    PHYSICAL VIRTUAL SMT L3 NODE REMOTE   the LINES_PRINTED lines that moved most, and how often
 *   slab    VIRTUAL SIZE OFFSET CACHE             of the line before: the slab cache that has this address, the size of
 *                                                 its objects in bytes (0: not known) and the offset in the object
 *   cpus    FROM TO COUNT                         transfers between two CPUs
 *   time    PC PS                                 virtual time of the translated block at PC, or for which the access at
 *                                                 PC waited, in picoseconds; without what a sibling's work adds
 *   clock   CPU BEGIN END IDLE                    the CPU's clock at both ends and its idle time between, picoseconds
 *   spin    LINE PC COUNT PS                      waits for the spinlock in the line of this virtual address, by the call
 *                                                 that ends behind PC: their number and time (spins.h); `slab` follows
 *   locked  PC COUNT                              locked instruction at PC: its executions
 *   percpu  CPU ADDRESS SIZE                      per-CPU memory of a CPU, and its bytes
 *   pool    ADDRESS SIZE CPU ID SMT L3 NODE REMOTE   worker pool, its CPU or `unbound`, and the transfers of the line
 *                                                 that has its lock
 *
 * Numbers of instructions are exact, except that an instruction that faults counts again when it is restarted. PC,
 * PHYSICAL and VIRTUAL are hexadecimal without prefix. Numbers of CPUs in `percpu`
 * and `pool` are the guest's, those in `cpus` QEMU's. `slab`, `percpu` and `pool` need a layout (kernel_data.h). PHYSICAL is an address in QEMU's numbering of RAM.
 */
#ifndef WQLAB_WINDOW_H
#define WQLAB_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel_data.h"
#include "lines.h"
#include "table.h"

enum { LINES_PRINTED = 200 };

enum { COUNTERS_A_CHUNK = 4096 };

/* Counters of code that was ever translated while tracking; they count on when no window is open. */
struct code_counters {
	struct table index; /* program counter, size -> number of the counter + 1 */
	uint64_t **chunks; /* not one array, because translated code has the addresses of counters */
	size_t used;
};

/* A transfer that is not counted yet. */
struct noted {
	uint64_t pc, writer_pc, line, vaddr;
	uint8_t level, from, to;
	bool is_store;
};

enum { NOTED_MAX = 8192 };

struct window {
	bool is_open;
	uint64_t loads, stores;
	struct code_counters blocks, locked, times;
	struct table moved; /* program counter, program counter of the writer, is a store -> transfers by level */
	struct table lines; /* line number -> transfers by level; the value is a virtual address */
	uint64_t cpus[CPUS_MAX][CPUS_MAX]; /* transfers from and to each CPU */
	/* Counting a batch of transfers takes half as long as counting each of them between accesses of the guest. */
	struct noted noted[NOTED_MAX];
	size_t noted_count;
};

/* Return true for an address of the kernel: on x86-64 and arm64 in the upper half of the address space. */
static inline bool window_is_kernel(uint64_t address)
{
	return address >> 63;
}

/* Return the counter of the code at `pc`, of a block of `size` bytes; 0 for a single instruction. */
uint64_t *code_counter(struct code_counters *counters, uint64_t pc, uint64_t size);

/* Set everything to zero and open the window. */
void window_begin(struct window *window);

/* Count all noted transfers. */
void window_count(struct window *window);

/* Note a transfer of a line (physical address >> LINE_SHIFT). */
static inline void window_add(struct window *window, const struct transfer *transfer, unsigned int cpu, bool is_store,
			      uint64_t pc, uint64_t line, uint64_t vaddr)
{
	if (window->noted_count == NOTED_MAX)
		window_count(window);
	window->noted[window->noted_count++] = (struct noted){ pc, transfer->writer_pc, line, vaddr, transfer->level,
							      transfer->from, cpu, is_store };
}

/* Close the window and print its text. */
void window_end(struct window *window, struct kernel_data *kernel, FILE *file);

#endif
