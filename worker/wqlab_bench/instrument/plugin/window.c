/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "window.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static const char *const level_names[LEVELS] = { "smt", "l3", "node", "remote" };

static uint64_t *counter_of(const struct code_counters *counters, size_t number)
{
	return &counters->chunks[number / COUNTERS_A_CHUNK][number % COUNTERS_A_CHUNK];
}

uint64_t *code_counter(struct code_counters *counters, uint64_t pc, uint64_t size)
{
	struct row *row = table_row(&counters->index, pc, size, 0);

	if (!row->value) {
		size_t chunk = counters->used / COUNTERS_A_CHUNK;

		if (counters->used % COUNTERS_A_CHUNK == 0) {
			counters->chunks = resize(counters->chunks, chunk + 1, sizeof(*counters->chunks));
			counters->chunks[chunk] = allocate(COUNTERS_A_CHUNK, sizeof(**counters->chunks));
		}
		row->value = ++counters->used;
	}
	return counter_of(counters, row->value - 1);
}

static void clear_counters(struct code_counters *counters)
{
	for (size_t i = 0; i < counters->used; i += COUNTERS_A_CHUNK)
		memset(counters->chunks[i / COUNTERS_A_CHUNK], 0, COUNTERS_A_CHUNK * sizeof(**counters->chunks));
}

void window_begin(struct window *window)
{
	window->is_open = true;
	window->loads = 0;
	window->stores = 0;
	clear_counters(&window->blocks);
	clear_counters(&window->locked);
	clear_counters(&window->times);
	table_clear(&window->moved);
	table_clear(&window->lines);
	memset(window->cpus, 0, sizeof(window->cpus));
	window->noted_count = 0;
}

void window_count(struct window *window)
{
	/* Two loops, because each fills the CPU's caches with its own table. */
	for (size_t i = 0; i < window->noted_count; i++) {
		const struct noted *noted = &window->noted[i];

		table_row(&window->moved, noted->pc, noted->writer_pc, noted->is_store)->count[noted->level]++;
	}
	for (size_t i = 0; i < window->noted_count; i++) {
		const struct noted *noted = &window->noted[i];
		struct row *row = table_row(&window->lines, noted->line, 0, 0);

		row->count[noted->level]++;
		/* A page of the page cache or of a process has several addresses; the kernel's has a symbol. */
		if (!row->value || (window_is_kernel(noted->vaddr) && !window_is_kernel(row->value)))
			row->value = noted->vaddr;
		window->cpus[noted->from][noted->to]++;
	}
	window->noted_count = 0;
}

/* --- text -------------------------------------------------------------------------------------------------- */

static uint64_t sum(const uint64_t *counts)
{
	return counts[LEVEL_SMT] + counts[LEVEL_L3] + counts[LEVEL_NODE] + counts[LEVEL_REMOTE];
}

static int compare_keys(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	for (int i = 0; i < TABLE_KEYS; i++)
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	return 0;
}

static int compare_counts(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	uint64_t most = sum(a->count), other = sum(b->count);

	if (most != other)
		return most > other ? -1 : 1;
	return compare_keys(left, right);
}

/* Return a sorted copy of a table's rows. */
static struct row *sorted(const struct table *table, int (*compare)(const void *, const void *))
{
	struct row *rows = allocate(table->used + 1, sizeof(*rows));

	if (table->used)
		memcpy(rows, table->rows, table->used * sizeof(*rows));
	qsort(rows, table->used, sizeof(*rows), compare);
	return rows;
}

static void print_total(const struct window *window, FILE *file)
{
	uint64_t all = 0, kernel = 0, locked = 0;

	for (size_t i = 0; i < window->blocks.used; i++) {
		uint64_t count = *counter_of(&window->blocks, i);

		all += count;
		kernel += window_is_kernel(window->blocks.index.rows[i].key[0]) ? count : 0;
	}
	for (size_t i = 0; i < window->locked.used; i++)
		locked += *counter_of(&window->locked, i);
	fprintf(file, "total\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", all, kernel,
		window->loads, window->stores, locked);
}

static void print_counters(const struct code_counters *counters, const char *name, FILE *file)
{
	struct row *rows = sorted(&counters->index, compare_keys);

	for (size_t i = 0; i < counters->used; i++) {
		uint64_t count = *counter_of(counters, rows[i].value - 1);

		if (!count)
			continue;
		fprintf(file, "%s\t%" PRIx64 "\t", name, rows[i].key[0]);
		if (rows[i].key[1])
			fprintf(file, "%" PRIu64 "\t", rows[i].key[1]);
		fprintf(file, "%" PRIu64 "\n", count);
	}
	free(rows);
}

static void print_moved(const struct table *moved, FILE *file)
{
	struct row *rows = sorted(moved, compare_keys);

	for (size_t i = 0; i < moved->used; i++)
		for (int level = 0; level < LEVELS; level++)
			if (rows[i].count[level])
				fprintf(file, "moved\t%s\t%s\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\n",
					level_names[level], rows[i].key[2] ? "store" : "load", rows[i].key[0],
					rows[i].key[1], rows[i].count[level]);
	free(rows);
}

static void print_lines(const struct table *lines, struct kernel_data *kernel, FILE *file)
{
	struct row *rows = sorted(lines, compare_counts);

	for (size_t i = 0; i < lines->used && i < LINES_PRINTED; i++) {
		fprintf(file, "line\t%" PRIx64 "\t%" PRIx64, rows[i].key[0] << LINE_SHIFT,
			rows[i].value >> LINE_SHIFT << LINE_SHIFT);
		for (int level = 0; level < LEVELS; level++)
			fprintf(file, "\t%" PRIu64, rows[i].count[level]);
		fputc('\n', file);
		kernel_data_print_slab(kernel, rows[i].value >> LINE_SHIFT << LINE_SHIFT, file);
	}
	free(rows);
}

static void print_cpus(const struct window *window, FILE *file)
{
	for (int from = 0; from < CPUS_MAX; from++)
		for (int to = 0; to < CPUS_MAX; to++)
			if (window->cpus[from][to])
				fprintf(file, "cpus\t%d\t%d\t%" PRIu64 "\n", from, to, window->cpus[from][to]);
}

void window_end(struct window *window, struct kernel_data *kernel, FILE *file)
{
	window->is_open = false;
	window_count(window);
	print_total(window, file);
	print_counters(&window->blocks, "code", file);
	print_moved(&window->moved, file);
	kernel_data_begin(kernel);
	print_lines(&window->lines, kernel, file);
	print_cpus(window, file);
	print_counters(&window->locked, "locked", file);
	print_counters(&window->times, "time", file);
	kernel_data_print_per_cpu(kernel, file);
	kernel_data_print_pools(kernel, &window->lines, file);
}
