/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "memory.h"
#include "topology.h"

enum { CACHES_MAX = 4096, POOLS_MAX = 4096, POOLS_A_CPU_MAX = 16, HEADS_MAX = 4096, SECTIONS_A_ROOT_BYTES = 4096 };

static const char *const key_names[KERNEL_KEYS] = {
	[KEY_DIRECT_MAP] = "direct_map",
	[KEY_MEMORY_START] = "memory_start",
	[KEY_PER_CPU_OFFSET] = "per_cpu_offset",
	[KEY_PER_CPU_START] = "per_cpu_start",
	[KEY_PER_CPU_UNIT] = "per_cpu_unit",
	[KEY_SLAB_CACHES] = "slab_caches",
	[KEY_KMEM_CACHE] = "kmem_cache",
	[KEY_MEM_SECTION] = "mem_section",
	[KEY_SECTION_SHIFT] = "section_shift",
	[KEY_CPU_POOLS] = "cpu_pools",
	[KEY_CPU_POOLS_COUNT] = "cpu_pools_count",
	[KEY_BH_POOLS] = "bh_pools",
	[KEY_BH_POOLS_COUNT] = "bh_pools_count",
	[KEY_UNBOUND_POOLS] = "unbound_pools",
	[KEY_UNBOUND_POOLS_COUNT] = "unbound_pools_count",
	[KEY_POOL_SIZE] = "pool_size",
	[KEY_POOL_LOCK] = "pool_lock",
	[KEY_POOL_CPU] = "pool_cpu",
	[KEY_POOL_ID] = "pool_id",
	[KEY_POOL_HASH_NODE] = "pool_hash_node",
	[KEY_SPIN_SLOW] = "spin_slow",
	[KEY_SPIN_SLOW_SIZE] = "spin_slow_size",
	[KEY_LOCK_TEXT] = "lock_text",
	[KEY_LOCK_TEXT_SIZE] = "lock_text_size",
};

/* --- layout ------------------------------------------------------------------------------------------------- */

static void parse_line(struct kernel_data *data, const char *path, char *line)
{
	char *value = strchr(line, ' '), *end;

	if (value) {
		*value++ = '\0';
		for (int key = 0; key < KERNEL_KEYS; key++) {
			if (strcmp(line, key_names[key]))
				continue;
			data->layout[key].is_indirect = *value == '@';
			value += *value == '@';
			data->layout[key].value = strtoull(value, &end, 16);
			if (end == value || (*end && *end != '\n'))
				break;
			data->layout[key].is_known = true;
			return;
		}
	}
	die("%s: %s is no key of a layout with its value", path, line);
}

void kernel_data_load(struct kernel_data *data, const char *path, kernel_read_t read, unsigned int cpus)
{
	FILE *file = fopen(path, "re");
	char line[200];

	if (!file)
		die("cannot read the layout %s", path);
	data->read = read;
	data->cpus = cpus;
	while (fgets(line, sizeof(line), file))
		parse_line(data, path, line);
	fclose(file);
}

static bool has(const struct kernel_data *data, enum kernel_key first, enum kernel_key last)
{
	for (int key = first; key <= (int)last; key++)
		if (!data->value[key])
			return false;
	return true;
}

static uint64_t read_word(const struct kernel_data *data, uint64_t address)
{
	uint64_t value = 0;

	return address % sizeof(value) == 0 && data->read(address, &value, sizeof(value)) ? value : 0;
}

static uint32_t read_half(const struct kernel_data *data, uint64_t address)
{
	uint32_t value = 0;

	return address % sizeof(value) == 0 && data->read(address, &value, sizeof(value)) ? value : 0;
}

/* --- slab caches -------------------------------------------------------------------------------------------- */

/* Copy a name of printable characters without spaces. */
static bool read_name(const struct kernel_data *data, uint64_t address, char *name)
{
	size_t used = 0;

	for (; used < CACHE_NAME_MAX - 1; used++) {
		if (!data->read(address + used, &name[used], 1))
			return false;
		if (!name[used])
			return used > 0;
		if (name[used] <= ' ' || name[used] > '~')
			return false;
	}
	name[used] = '\0';
	return true;
}

/* Return the bytes of the objects of `kmalloc-N` by its name, or 0. */
static uint32_t kmalloc_size(const char *name)
{
	char *end;
	unsigned long size;

	if (strncmp(name, "kmalloc-", strlen("kmalloc-")))
		return 0;
	size = strtoul(name + strlen("kmalloc-"), &end, 10);
	if (*end == 'k')
		size <<= 10, end++;
	return *end ? 0 : size;
}

/*
 * Return the offset of `size` in struct kmem_cache, or -1. `object_size` follows it, and is N in each cache kmalloc-N;
 * `size` is larger if the kernel adds red zones. Both are within the first 48 bytes.
 */
static int find_size(const struct kernel_data *data)
{
	for (int at = 48 - sizeof(uint32_t); at >= 8; at -= sizeof(uint32_t)) {
		size_t seen = 0, equal = 0;

		for (size_t i = 0; i < data->cache_count; i++) {
			uint32_t size = kmalloc_size(data->caches[i].name);

			seen += size != 0;
			equal += size && read_half(data, data->caches[i].address + at) == size;
		}
		if (seen && equal == seen)
			return at - sizeof(uint32_t);
	}
	return -1;
}

static uint64_t next_node(const struct kernel_data *data, uint64_t node, size_t number)
{
	uint64_t next = number < CACHES_MAX ? read_word(data, node) : 0;

	return next == data->value[KEY_SLAB_CACHES] ? 0 : next;
}

/*
 * Read the list of caches. The cache of caches, whose address is known, is in the list, and tells the offset of the
 * list's nodes. The name is in front of the node in every version of SLUB.
 */
static void read_caches(struct kernel_data *data)
{
	uint64_t head = data->value[KEY_SLAB_CACHES], own = data->value[KEY_KMEM_CACHE], node, offset = UINT64_MAX;
	size_t number = 0;
	int size;

	data->cache_count = 0;
	table_clear(&data->cache_index);
	if (!head || !own)
		return;
	for (node = next_node(data, head, 0); node; node = next_node(data, node, ++number))
		if (node - own < offset)
			offset = node - own;
	if (offset >= 1 << PAGE_SHIFT)
		return;
	data->caches = resize(data->caches, number + 1, sizeof(*data->caches));
	number = 0;
	for (node = next_node(data, head, 0); node; node = next_node(data, node, ++number)) {
		struct slab_cache *cache = &data->caches[data->cache_count];

		cache->address = node - offset;
		cache->size = 0;
		if (read_name(data, read_word(data, node - sizeof(uint64_t)), cache->name))
			table_row(&data->cache_index, cache->address, 0, 0)->value = ++data->cache_count;
	}
	size = find_size(data);
	for (size_t i = 0; size >= 0 && i < data->cache_count; i++)
		data->caches[i].size = read_half(data, data->caches[i].address + size);
}

static const struct slab_cache *cache_at(struct kernel_data *data, uint64_t address)
{
	struct row *row = address ? table_find(&data->cache_index, address, 0, 0) : NULL;

	return row ? &data->caches[row->value - 1] : NULL;
}

/*
 * Return the cache whose slab a struct page is part of, and the first page of the slab. A page that is not the first
 * has the address of the first in its second word, plus one. The pointer to the cache is the second word of struct slab,
 * and was the fourth before 6.2; no other use of the word is the address of a cache.
 */
static const struct slab_cache *cache_of_page(struct kernel_data *data, uint64_t page, uint64_t *first)
{
	const struct slab_cache *cache;
	uint64_t second = read_word(data, page + 8);

	*first = page;
	if (second & 1) {
		*first = second - 1;
		second = read_word(data, *first + 8);
	}
	cache = cache_at(data, second);
	return cache ? cache : cache_at(data, read_word(data, *first + 24));
}

enum { STRUCT_PAGE_BYTES = 64, SECTION_FLAGS = 0xfff };

/*
 * Return the cache to which an address of the direct map belongs, and the address of its slab. struct mem_section has 16
 * bytes, and 32 with CONFIG_PAGE_EXTENSION; with the wrong size no cache is found.
 */
static const struct slab_cache *cache_of(struct kernel_data *data, uint64_t address, uint64_t *slab)
{
	uint64_t physical = address - data->value[KEY_DIRECT_MAP] + data->value[KEY_MEMORY_START];
	uint64_t number = physical >> PAGE_SHIFT, section = physical >> data->value[KEY_SECTION_SHIFT];

	for (uint64_t bytes = 16; bytes <= 32; bytes *= 2) {
		uint64_t a_root = SECTIONS_A_ROOT_BYTES / bytes, first;
		uint64_t root = read_word(data, data->value[KEY_MEM_SECTION] + section / a_root * sizeof(uint64_t));
		/* The address that the struct page of physical page 0 would have in this section, and flags. */
		uint64_t pages = root ? read_word(data, root + section % a_root * bytes) : 0;
		uint64_t page = (pages & ~(uint64_t)SECTION_FLAGS) + number * STRUCT_PAGE_BYTES;
		const struct slab_cache *cache = pages ? cache_of_page(data, page, &first) : NULL;

		if (cache) {
			*slab = (address >> PAGE_SHIFT << PAGE_SHIFT) -
				((page - first) / STRUCT_PAGE_BYTES << PAGE_SHIFT);
			return cache;
		}
	}
	return NULL;
}

void kernel_data_print_slab(struct kernel_data *data, uint64_t address, FILE *file)
{
	const struct slab_cache *cache;
	uint64_t slab;

	if (!data->cache_count || !has(data, KEY_MEM_SECTION, KEY_SECTION_SHIFT) || !data->value[KEY_DIRECT_MAP] ||
	    address < data->value[KEY_DIRECT_MAP])
		return;
	cache = cache_of(data, address, &slab);
	if (cache)
		fprintf(file, "slab\t%" PRIx64 "\t%" PRIu32 "\t%" PRIu64 "\t%s\n", address, cache->size,
			cache->size ? (address - slab) % cache->size : 0, cache->name);
}

/* --- per-CPU memory ----------------------------------------------------------------------------------------- */

static void read_per_cpu(struct kernel_data *data)
{
	for (unsigned int cpu = 0; cpu < data->cpus; cpu++)
		data->per_cpu_offset[cpu] = data->value[KEY_PER_CPU_OFFSET] ?
			read_word(data, data->value[KEY_PER_CPU_OFFSET] + cpu * sizeof(uint64_t)) : 0;
}

void kernel_data_print_per_cpu(const struct kernel_data *data, FILE *file)
{
	for (unsigned int cpu = 0; cpu < data->cpus; cpu++)
		if (data->per_cpu_offset[cpu])
			fprintf(file, "percpu\t%u\t%" PRIx64 "\t%" PRIu32 "\n", cpu,
				data->per_cpu_offset[cpu] + data->value[KEY_PER_CPU_START],
				(uint32_t)data->value[KEY_PER_CPU_UNIT]);
}

/* --- worker pools ------------------------------------------------------------------------------------------- */

/* Call `visit` for each worker pool. The lists may have changed in a way that cannot be read; then some are missing. */
static void each_pool(struct kernel_data *data, void (*visit)(struct kernel_data *data, uint64_t pool, FILE *file),
		      FILE *file)
{
	static const enum kernel_key arrays[] = { KEY_CPU_POOLS, KEY_BH_POOLS };
	uint64_t size = data->value[KEY_POOL_SIZE];
	size_t seen = 0;

	if (!size)
		return;
	for (size_t array = 0; array < sizeof(arrays) / sizeof(arrays[0]); array++)
		for (unsigned int cpu = 0; data->layout[arrays[array]].is_known && cpu < data->cpus; cpu++)
			for (uint64_t i = 0; i < data->value[arrays[array] + 1] && i < POOLS_A_CPU_MAX; i++)
				if (data->per_cpu_offset[cpu])
					visit(data, data->per_cpu_offset[cpu] + data->value[arrays[array]] + i * size,
					      file);
	if (!has(data, KEY_UNBOUND_POOLS, KEY_UNBOUND_POOLS_COUNT))
		return;
	for (uint64_t i = 0; i < data->value[KEY_UNBOUND_POOLS_COUNT] && i < HEADS_MAX; i++) {
		uint64_t node = read_word(data, data->value[KEY_UNBOUND_POOLS] + i * sizeof(uint64_t));

		for (; node && seen++ < POOLS_MAX; node = read_word(data, node))
			visit(data, node - data->value[KEY_POOL_HASH_NODE], file);
	}
}

static uint64_t line_of_lock(const struct kernel_data *data, uint64_t pool)
{
	return (pool + data->value[KEY_POOL_LOCK]) >> LINE_SHIFT << LINE_SHIFT;
}

static void add_lock(struct kernel_data *data, uint64_t pool, FILE *unused)
{
	(void)unused;
	table_row(&data->locks, line_of_lock(data, pool), 0, 0);
}

static void print_pool(struct kernel_data *data, uint64_t pool, FILE *file)
{
	const struct row *row = table_find(&data->locks, line_of_lock(data, pool), 0, 0);
	int cpu = read_half(data, pool + data->value[KEY_POOL_CPU]);
	char name[16] = "unbound";

	if (!row)
		return;
	if (cpu >= 0)
		snprintf(name, sizeof(name), "%d", cpu);
	fprintf(file, "pool\t%" PRIx64 "\t%" PRIu64 "\t%s\t%" PRIu32, pool, data->value[KEY_POOL_SIZE], name,
		read_half(data, pool + data->value[KEY_POOL_ID]));
	for (int level = 0; level < LEVELS; level++)
		fprintf(file, "\t%" PRIu64, row->count[level]);
	fputc('\n', file);
}

void kernel_data_print_pools(struct kernel_data *data, const struct table *lines, FILE *file)
{
	table_clear(&data->locks);
	each_pool(data, add_lock, NULL);
	for (size_t i = 0; data->locks.used && i < lines->used; i++) {
		const struct row *line = &lines->rows[i];
		struct row *lock = table_find(&data->locks, line->value >> LINE_SHIFT << LINE_SHIFT, 0, 0);

		for (int level = 0; lock && level < LEVELS; level++)
			lock->count[level] += line->count[level];
	}
	each_pool(data, print_pool, file);
}

/* ------------------------------------------------------------------------------------------------------------ */

void kernel_data_begin(struct kernel_data *data)
{
	for (int key = 0; key < KERNEL_KEYS; key++) {
		uint64_t value = data->layout[key].is_known ? data->layout[key].value : 0;

		data->value[key] = data->layout[key].is_indirect ? read_word(data, value) : value;
	}
	if (data->layout[KEY_PER_CPU_UNIT].is_indirect) /* an int */
		data->value[KEY_PER_CPU_UNIT] = read_half(data, data->layout[KEY_PER_CPU_UNIT].value);
	read_per_cpu(data);
	read_caches(data);
}
