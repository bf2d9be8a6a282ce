/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the data of the guest's kernel is: slab caches, per-CPU memory and worker pools, read from the guest's memory when
 * a window ends. The guest does not take part, so that nothing here changes a count.
 *
 * A layout file says where to look, one KEY VALUE a line. A value is hexadecimal; @VALUE is the value that the guest's
 * memory has at this address. What a layout lacks is not printed.
 *
 *   direct_map       virtual address of the first byte of memory_start
 *   memory_start     physical address of the first byte of memory; 0 if missing
 *   per_cpu_offset   address of __per_cpu_offset[]
 *   per_cpu_start    address of __per_cpu_start
 *   per_cpu_unit     bytes of per-CPU memory of a CPU (pcpu_unit_size)
 *   slab_caches      address of the list of slab caches
 *   kmem_cache       address of the cache of caches
 *   mem_section      address of the array of pointers to the memory sections (CONFIG_SPARSEMEM_EXTREME)
 *   section_shift    SECTION_SIZE_BITS
 *   cpu_pools        per-CPU address of cpu_worker_pools[]; bh_pools: of bh_worker_pools[]
 *   cpu_pools_count  elements of cpu_worker_pools[]; bh_pools_count
 *   unbound_pools    address of unbound_pool_hash[]; unbound_pools_count: its elements
 *   pool_size        bytes of struct worker_pool
 *   pool_lock, pool_cpu, pool_id, pool_hash_node   offsets of its members
 *   spin_slow, spin_slow_size   queued_spin_lock_slowpath(), and its bytes; not indirect
 *   lock_text, lock_text_size   functions that take and release spinlocks; not indirect
 *
 * Reduced debug information (CONFIG_DEBUG_INFO_REDUCED) has no struct kmem_cache, page or mem_section, so that their
 * layouts are not in the file. kernel_data.c finds what it needs in the guest's memory and says how.
 */
#ifndef WQLAB_KERNEL_DATA_H
#define WQLAB_KERNEL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "table.h"

enum kernel_key {
	KEY_DIRECT_MAP,
	KEY_MEMORY_START,
	KEY_PER_CPU_OFFSET,
	KEY_PER_CPU_START,
	KEY_PER_CPU_UNIT,
	KEY_SLAB_CACHES,
	KEY_KMEM_CACHE,
	KEY_MEM_SECTION,
	KEY_SECTION_SHIFT,
	KEY_CPU_POOLS,
	KEY_CPU_POOLS_COUNT,
	KEY_BH_POOLS,
	KEY_BH_POOLS_COUNT,
	KEY_UNBOUND_POOLS,
	KEY_UNBOUND_POOLS_COUNT,
	KEY_POOL_SIZE,
	KEY_POOL_LOCK,
	KEY_POOL_CPU,
	KEY_POOL_ID,
	KEY_POOL_HASH_NODE,
	KEY_SPIN_SLOW,
	KEY_SPIN_SLOW_SIZE,
	KEY_LOCK_TEXT,
	KEY_LOCK_TEXT_SIZE,
	KERNEL_KEYS,
};

enum { CACHE_NAME_MAX = 64 };

struct slab_cache {
	uint64_t address;
	uint32_t size; /* bytes from object to object; 0 if not known */
	char name[CACHE_NAME_MAX];
};

/* Copy memory of the guest from a virtual address of its kernel; false if it cannot be read. */
typedef bool (*kernel_read_t)(uint64_t address, void *to, size_t size);

struct kernel_data {
	kernel_read_t read;
	unsigned int cpus;
	struct {
		bool is_known, is_indirect;
		uint64_t value;
	} layout[KERNEL_KEYS];
	uint64_t value[KERNEL_KEYS]; /* of this window, 0 if not known */
	uint64_t per_cpu_offset[64];
	struct slab_cache *caches;
	size_t cache_count;
	struct table cache_index; /* address -> index in `caches` + 1 */
	struct table locks; /* address of the line of a pool's lock -> transfers by level */
};

/* Read a layout file. Ends QEMU if it is not of this form. Without a call, nothing is printed. */
void kernel_data_load(struct kernel_data *data, const char *path, kernel_read_t read, unsigned int cpus);

/* Read what all records of a window need. */
void kernel_data_begin(struct kernel_data *data);

/* Print a `slab` record if an address belongs to an object of a slab cache. */
void kernel_data_print_slab(struct kernel_data *data, uint64_t address, FILE *file);

/* Print the `percpu` records. */
void kernel_data_print_per_cpu(const struct kernel_data *data, FILE *file);

/* Print the `pool` records. `lines` has transfers by level; the value of a row is a virtual address of the line. */
void kernel_data_print_pools(struct kernel_data *data, const struct table *lines, FILE *file);

#endif
