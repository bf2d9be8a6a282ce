/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines that a CPU finds in its core's L1 cache, by virtual address: for most accesses, one comparison in place of the
 * translation (translation.h), the page and the L1 (lines.h). It is a cache of these and changes nothing in the model. An
 * entry is dropped when the L1 drops the line, and all are when the CPU's translations may have changed.
 */
#ifndef WQLAB_NEAR_H
#define WQLAB_NEAR_H

#include <stdint.h>
#include <string.h>

enum { NEAR_LINES = 1024, NEAR_LINE_SHIFT = 6, NEAR_GENERATION_SHIFT = 64 - NEAR_LINE_SHIFT, NEAR_GENERATIONS = 64 };

struct line;

struct near {
	struct {
		uint64_t tag; /* virtual line, and the generation above it; 0: empty */
		struct line *line;
	} entries[NEAR_LINES];
	uint64_t generation; /* from 1 to NEAR_GENERATIONS - 1 */
	uint16_t of_slot[]; /* by slot of the L1: the entry that has its line, if one has */
};

static inline unsigned int near_index(uint64_t address)
{
	return address >> NEAR_LINE_SHIFT & (NEAR_LINES - 1);
}

static inline uint64_t near_tag(const struct near *near, uint64_t address)
{
	return address >> NEAR_LINE_SHIFT | near->generation << NEAR_GENERATION_SHIFT;
}

/* Return the line of an address, or NULL if it is not known to be in the L1. Tests build a plugin that never knows. */
static inline struct line *near_find(const struct near *near, uint64_t address)
{
	unsigned int index = near_index(address);

#ifdef WQLAB_WITHOUT_NEAR
	return NULL;
#endif
	return near->entries[index].tag == near_tag(near, address) ? near->entries[index].line : NULL;
}

/* The L1 may have another line in this slot. */
static inline void near_drop(struct near *near, uint64_t slot)
{
	near->entries[near->of_slot[slot]].tag = 0;
}

/* The L1 has the line of an address in this slot. */
static inline void near_add(struct near *near, uint64_t address, struct line *line, uint64_t slot)
{
	unsigned int index = near_index(address);

	near_drop(near, slot);
	near->of_slot[slot] = index;
	near->entries[index].tag = near_tag(near, address);
	near->entries[index].line = line;
}

static inline void near_flush(struct near *near)
{
	if (++near->generation == NEAR_GENERATIONS) {
		memset(near->entries, 0, sizeof(near->entries));
		near->generation = 1;
	}
}

#endif
