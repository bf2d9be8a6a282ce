/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table whose rows keep the order in which they were added, so that equal runs print equal tables. */
#ifndef WQLAB_TABLE_H
#define WQLAB_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum { TABLE_KEYS = 3, TABLE_COUNTS = 4 };

struct row {
	uint64_t key[TABLE_KEYS];
	uint64_t count[TABLE_COUNTS];
	uint64_t value; /* what the user of the table makes of it; 0 in a new row */
};

struct table {
	struct row *rows;
	size_t used, room;
	uint32_t *slots; /* index of a row + 1, or 0; `mask` + 1 of them, a power of two */
	size_t mask;
};

/* Return the row of a key, added with zeros if it is new. The pointer is valid until the next row is added. */
struct row *table_row(struct table *table, uint64_t first, uint64_t second, uint64_t third);

/* Return the row of a key, or NULL if there is none. */
struct row *table_find(const struct table *table, uint64_t first, uint64_t second, uint64_t third);

/* Remove all rows. */
void table_clear(struct table *table);

#endif
