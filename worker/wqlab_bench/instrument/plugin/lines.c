/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Virtual addresses have up to 57 significant bits and a sign, so that a CPU number fits beside them. */
enum { WRITER_CPU_BITS = 7, WRITER_CPU_MASK = (1 << WRITER_CPU_BITS) - 1 };

static uint64_t pack_writer(unsigned int cpu, uint64_t pc)
{
	return pc << WRITER_CPU_BITS | (cpu + 1);
}

static uint64_t writer_pc(uint64_t writer)
{
	return (uint64_t)((int64_t)writer >> WRITER_CPU_BITS);
}

void lines_init(struct lines *lines, const struct topology *topology, struct capacity *capacity, uint64_t memory_bytes)
{
	lines->topology = topology;
	lines->capacity = capacity;
	/*
	 * QEMU's number of a byte of RAM is its offset in all RAM plus its region's offset in the parent region, so
	 * that numbers reach up to twice the size of memory, and begin at 1 GiB on arm64.
	 */
	lines->page_count = (2 * memory_bytes + (UINT64_C(1) << 30)) >> PAGE_SHIFT;
	lines->pages = allocate(lines->page_count, sizeof(*lines->pages));
}

void lines_add_l1(struct lines *lines, uint64_t kib)
{
	const struct topology *topology = lines->topology;

	lines->l1.mask = (kib << 10 >> LINE_SHIFT) - 1;
	if (!kib || lines->l1.mask & (lines->l1.mask + 1))
		die("an L1 cache of %llu KiB: expected a power of two", (unsigned long long)kib);
	for (unsigned int cpu = 0; cpu < topology->cpus; cpu++) {
		size_t slots = lines->l1.mask + 1;

		if (!lines->l1.numbers[topology->core[cpu]])
			lines->l1.numbers[topology->core[cpu]] = allocate(slots, sizeof(uint64_t));
		lines->l1.near[cpu] = allocate(1, sizeof(struct near) + slots * sizeof(uint16_t));
		near_flush(lines->l1.near[cpu]);
	}
}

/* Another line, or none, is in a slot of a core's L1. */
static void set_l1_slot(struct lines *lines, unsigned int cpu, uint64_t slot, uint64_t content)
{
	lines->l1.numbers[lines->topology->core[cpu]][slot] = content;
	near_drop(lines->l1.near[cpu], slot);
	for (uint64_t rest = lines->topology->within[cpu][LEVEL_SMT]; rest; rest &= rest - 1)
		near_drop(lines->l1.near[__builtin_ctzll(rest)], slot);
}

/* Remove a line from the L1 caches of CPUs. */
static void drop_from_l1(struct lines *lines, uint64_t number, uint64_t cpus)
{
	if (!lines->l1.mask)
		return;
	for (; cpus; cpus &= cpus - 1)
		if (lines_is_in_l1(lines, __builtin_ctzll(cpus), number))
			set_l1_slot(lines, __builtin_ctzll(cpus), number & lines->l1.mask, 0);
}

static void add_to_l1(struct lines *lines, unsigned int cpu, uint64_t number)
{
	if (lines->l1.mask && !lines_is_in_l1(lines, cpu, number))
		set_l1_slot(lines, cpu, number & lines->l1.mask, number + 1);
}

void lines_forget(struct lines *lines)
{
	for (size_t page = 0; page < lines->page_count; page++) {
		free(lines->pages[page]);
		lines->pages[page] = NULL;
	}
	for (unsigned int core = 0; core < CPUS_MAX; core++)
		if (lines->l1.numbers[core])
			memset(lines->l1.numbers[core], 0, (lines->l1.mask + 1) * sizeof(uint64_t));
	for (unsigned int cpu = 0; lines->l1.mask && cpu < lines->topology->cpus; cpu++)
		near_flush(lines->l1.near[cpu]);
	if (lines->capacity)
		capacity_forget(lines->capacity);
}

struct page *lines_page(struct lines *lines, uint64_t number)
{
	if (number >= lines->page_count)
		return NULL;
	if (!lines->pages[number]) {
		lines->pages[number] = allocate(1, sizeof(struct page));
		lines->pages[number]->number = number;
	}
	return lines->pages[number];
}

/* Rarely called, so kept out of the way of accesses that move nothing. */
__attribute__((noinline)) static void describe(const struct lines *lines, unsigned int cpu, const struct line *line,
					       bool is_store, struct transfer *transfer)
{
	const uint64_t *within = lines->topology->within[cpu];
	uint64_t others = line->holders & ~(UINT64_C(1) << cpu), at_level, last_writer;
	int level;

	if (is_store) {
		for (level = LEVEL_REMOTE; level > LEVEL_SMT && !(others & ~within[level - 1]); level--)
			;
		at_level = level > LEVEL_SMT ? others & ~within[level - 1] : others;
	} else {
		for (level = LEVEL_SMT; level < LEVEL_REMOTE && !(others & within[level]); level++)
			;
		at_level = others & within[level];
	}
	last_writer = line->writer ? UINT64_C(1) << ((line->writer & WRITER_CPU_MASK) - 1) : 0;
	transfer->is_shared = (others & (others - 1)) != 0;
	transfer->level = level;
	transfer->from = __builtin_ctzll(at_level & last_writer ? at_level & last_writer : at_level);
	transfer->writer_pc = line->writer ? writer_pc(line->writer) : 0;
}

/* Note an access in the caches of a stated size, and remove holders whose caches dropped a line for it. */
static enum copy access_capacity(struct lines *lines, unsigned int cpu, uint64_t number)
{
	struct evicted evicted[EVICTED_MAX];
	enum copy copy = capacity_access(lines->capacity, cpu, number, evicted);

	for (int i = 0; i < EVICTED_MAX; i++) {
		struct page *page = evicted[i].cpus ? lines_page(lines, evicted[i].number / LINES_A_PAGE) : NULL;

		if (!page)
			continue;
		drop_from_l1(lines, evicted[i].number, evicted[i].cpus);
		page->lines[evicted[i].number % LINES_A_PAGE].holders &= ~evicted[i].cpus;
	}
	return copy;
}

bool lines_access(struct lines *lines, unsigned int cpu, struct page *page, unsigned int index, bool is_store,
		  uint64_t pc, struct transfer *transfer)
{
	struct line *line = &page->lines[index];
	uint64_t self = UINT64_C(1) << cpu, number = page->number * LINES_A_PAGE + index;
	bool is_moved;

	if (is_store) {
		is_moved = line->holders & ~self;
		if (is_moved)
			describe(lines, cpu, line, is_store, transfer);
		drop_from_l1(lines, number, line->holders & ~self);
		line->holders = self;
		line->writer = pack_writer(cpu, pc);
	} else {
		is_moved = !(line->holders & self) && line->holders && line->writer;
		if (is_moved)
			describe(lines, cpu, line, is_store, transfer);
		line->holders |= self;
	}
	if (lines->capacity)
		transfer->copy = access_capacity(lines, cpu, number);
	add_to_l1(lines, cpu, number);
	return is_moved;
}

void lines_stored(struct line *line, unsigned int cpu, uint64_t pc)
{
	line->writer = pack_writer(cpu, pc);
}
