/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of who has a copy of each cache line.
 *
 * A line of 64 bytes of physical memory has a set of holders, the CPUs whose caches have it, and a last writer. As in
 * the MESI protocol, a store leaves the writer as the only holder, and a load adds a holder. Two accesses move a line
 * between CPUs, and each is one transfer:
 *
 *   - a load by a CPU without a copy, of a line that another CPU wrote and a CPU still holds. The copy comes from the
 *     nearest holder.
 *   - a store by a CPU while others hold the line, whether or not it has a copy itself: the others lose theirs. The
 *     farthest of them determines the level, because the store waits for it.
 *
 * Of equally near or far holders, the last writer is taken, else the one with the lowest number. A load of a line that
 * nobody wrote since tracking began is not a transfer, because memory has the same data. An atomic instruction fetches
 * a line once, for writing, so its load counts as a store here; a plain load and a later store of the same CPU are two
 * transfers, as the protocol shares the line between them.
 *
 * Lines are kept forever unless `capacity` says otherwise (see capacity.h). Not modelled: prefetch, stores that wait in
 * a buffer, device access to memory, the second page of an access that crosses a page.
 */
#ifndef WQLAB_LINES_H
#define WQLAB_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capacity.h"
#include "near.h"
#include "topology.h"

enum { PAGE_SHIFT = 12, LINES_A_PAGE = 1 << (PAGE_SHIFT - LINE_SHIFT) };

struct line {
	uint64_t holders; /* set of CPUs */
	uint64_t writer; /* program counter of the last store << 7 | its CPU + 1; 0: none */
	int64_t ps; /* when the last store or transfer for a store ended, in virtual time (timing.h) */
};

/* A page of physical memory. */
struct page {
	struct line lines[LINES_A_PAGE];
	uint64_t number;
};

struct transfer {
	enum copy copy; /* only if the caches have a size */
	bool is_shared; /* more than one CPU had the line */
	enum level level;
	unsigned int from; /* the CPU whose copy was read or dropped */
	uint64_t writer_pc; /* of the last store; 0 if none is known */
};

/*
 * Lines that a core's L1 cache has, as a table of numbers + 1 without ways. A load of such a line changes nothing in
 * the model, so that it need not be noted. Only where an access takes time.
 */
struct l1 {
	uint64_t *numbers[CPUS_MAX]; /* by core */
	struct near *near[CPUS_MAX]; /* by CPU */
	uint64_t mask; /* 0: no L1 */
};

struct lines {
	struct l1 l1;
	const struct topology *topology;
	struct capacity *capacity; /* or NULL */
	struct page **pages; /* by number; NULL until one is accessed */
	size_t page_count;
};

void lines_init(struct lines *lines, const struct topology *topology, struct capacity *capacity, uint64_t memory_bytes);

/* Give each core an L1 cache. Ends QEMU if the size is no power of two. */
void lines_add_l1(struct lines *lines, uint64_t kib);

static inline bool lines_is_in_l1(const struct lines *lines, unsigned int cpu, uint64_t number)
{
	return lines->l1.numbers[lines->topology->core[cpu]][number & lines->l1.mask] == number + 1;
}

/* Remember that a CPU just accessed the line of a virtual address, so that its core's L1 has it. */
static inline void lines_add_near(struct lines *lines, unsigned int cpu, uint64_t vaddr, struct line *line, uint64_t number)
{
	near_add(lines->l1.near[cpu], vaddr, line, number & lines->l1.mask);
}

/* Forget all holders and writers, and free all pages. */
void lines_forget(struct lines *lines);

/* Return a page, or NULL if the number is beyond RAM: firmware and memory of devices. */
struct page *lines_page(struct lines *lines, uint64_t number);

/* Note an access to a line of a page and return true if it moved; `transfer` says how, or else which cache has it. */
bool lines_access(struct lines *lines, unsigned int cpu, struct page *page, unsigned int index, bool is_store,
		  uint64_t pc, struct transfer *transfer);

/* Note a store by the only holder of a line. */
void lines_stored(struct line *line, unsigned int cpu, uint64_t pc);

#endif
