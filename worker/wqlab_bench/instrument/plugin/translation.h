/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cache of the physical page of each virtual page, as a CPU's TLB is one: asking QEMU takes longer than everything
 * else that is done for an access. That of a CPU is emptied where its guest must expect that a TLB is (see
 * decode_changes_translation).
 */
#ifndef WQLAB_TRANSLATION_H
#define WQLAB_TRANSLATION_H

#include <string.h>

#include "lines.h"

enum { TRANSLATIONS = 256, GENERATIONS = 1 << PAGE_SHIFT };

struct translation {
	uint64_t generation[CPUS_MAX]; /* of valid entries, from 1 to GENERATIONS - 1 */
	struct {
		uint64_t tag; /* the address of the virtual page, and the generation in place of the offset */
		struct page *page;
	} entries[CPUS_MAX][TRANSLATIONS];
};

/* Empty the cache of a CPU, also for the first time. */
static inline void translation_flush(struct translation *translation, unsigned int cpu)
{
	if (++translation->generation[cpu] == GENERATIONS) {
		memset(translation->entries[cpu], 0, sizeof(translation->entries[cpu]));
		translation->generation[cpu] = 1;
	}
}

static inline uint64_t translation_tag(const struct translation *translation, unsigned int cpu, uint64_t address)
{
	return (address & ~(uint64_t)(GENERATIONS - 1)) | translation->generation[cpu];
}

/* Return the page of a virtual address, or NULL if it is not in the cache. */
static inline struct page *translation_find(const struct translation *translation, unsigned int cpu, uint64_t address)
{
	unsigned int slot = (address >> PAGE_SHIFT) % TRANSLATIONS;

	if (translation->entries[cpu][slot].tag != translation_tag(translation, cpu, address))
		return NULL;
	return translation->entries[cpu][slot].page;
}

static inline void translation_add(struct translation *translation, unsigned int cpu, uint64_t address,
				   struct page *page)
{
	unsigned int slot = (address >> PAGE_SHIFT) % TRANSLATIONS;

	translation->entries[cpu][slot].tag = translation_tag(translation, cpu, address);
	translation->entries[cpu][slot].page = page;
}

#endif
