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
	uint64_t tags[NEAR_LINES]; /* virtual line, and the generation above it; 0: empty */
	struct line *lines[NEAR_LINES];
	uint64_t generation; /* from 1 to NEAR_GENERATIONS - 1 */
	uint16_t entries[]; /* by slot of the L1: the entry that has its line, if one has */
};

static inline unsigned int near_index(uint64_t address)
{
	return address >> NEAR_LINE_SHIFT & (NEAR_LINES - 1);
}

static inline uint64_t near_tag(const struct near *near, uint64_t address)
{
	return address >> NEAR_LINE_SHIFT | near->generation << NEAR_GENERATION_SHIFT;
}

/* Return the line of an address, or NULL if it is not known to be in the L1. Tests compare with a plugin that never knows. */
static inline struct line *near_find(const struct near *near, uint64_t address)
{
	unsigned int index = near_index(address);

#ifdef WQLAB_WITHOUT_NEAR
	return NULL;
#endif
	return near->tags[index] == near_tag(near, address) ? near->lines[index] : NULL;
}

/* The L1 may have another line in this slot. */
static inline void near_drop(struct near *near, uint64_t slot)
{
	near->tags[near->entries[slot]] = 0;
}

/* The L1 has the line of an address in this slot. */
static inline void near_add(struct near *near, uint64_t address, struct line *line, uint64_t slot)
{
	unsigned int index = near_index(address);

	near_drop(near, slot);
	near->entries[slot] = index;
	near->tags[index] = near_tag(near, address);
	near->lines[index] = line;
}

static inline void near_flush(struct near *near)
{
	if (++near->generation == NEAR_GENERATIONS) {
		memset(near->tags, 0, sizeof(near->tags));
		near->generation = 1;
	}
}

#endif
