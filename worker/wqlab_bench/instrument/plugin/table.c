/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table.h"

#include <stdbool.h>
#include <string.h>

#include "memory.h"

enum { FIRST_ROOM = 1024 };

static size_t hash(const uint64_t *key)
{
	uint64_t value = 0;

	/* Multiply by the golden ratio and mix, as hash_64() of Linux does, for each word. */
	for (int i = 0; i < TABLE_KEYS; i++) {
		value = (value ^ key[i]) * 0x9e3779b97f4a7c15u;
		value ^= value >> 29;
	}
	return value;
}

static bool has_key(const struct row *row, const uint64_t *key)
{
	return row->key[0] == key[0] && row->key[1] == key[1] && row->key[2] == key[2];
}

/* Return the slot that has the row of a key, or the empty one where it belongs. */
static uint32_t *find_slot(const struct table *table, const uint64_t *key)
{
	for (size_t i = hash(key);; i++) {
		uint32_t *slot = &table->slots[i & table->mask];

		if (!*slot || has_key(&table->rows[*slot - 1], key))
			return slot;
	}
}

static void grow(struct table *table)
{
	table->room = table->room ? table->room * 2 : FIRST_ROOM;
	if (table->room > UINT32_MAX / 2)
		die("more than %u rows in a table", UINT32_MAX / 2);
	table->rows = resize(table->rows, table->room, sizeof(*table->rows));
	/* Twice as many slots as rows keep searches short. */
	table->slots = resize(table->slots, table->room * 2, sizeof(*table->slots));
	table->mask = table->room * 2 - 1;
	memset(table->slots, 0, table->room * 2 * sizeof(*table->slots));
	for (size_t i = 0; i < table->used; i++)
		*find_slot(table, table->rows[i].key) = i + 1;
}

struct row *table_row(struct table *table, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t key[TABLE_KEYS] = { first, second, third };
	uint32_t *slot;
	struct row *row;

	if (table->used == table->room)
		grow(table);
	slot = find_slot(table, key);
	if (*slot)
		return &table->rows[*slot - 1];
	row = &table->rows[table->used++];
	*slot = table->used;
	*row = (struct row){ .key = { first, second, third } };
	return row;
}

struct row *table_find(const struct table *table, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t key[TABLE_KEYS] = { first, second, third };
	uint32_t row = table->slots ? *find_slot(table, key) : 0;

	return row ? &table->rows[row - 1] : NULL;
}

void table_clear(struct table *table)
{
	table->used = 0;
	if (table->slots)
		memset(table->slots, 0, (table->mask + 1) * sizeof(*table->slots));
}
