/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "spins.h"

#include <inttypes.h>
#include <string.h>

enum { SP = 4, BP = 5, DI = 7, RET = 0xc3, JMP = 0xe9, JMP_BYTES = 5, FRAMES_MAX = 4 };

static bool is_in(const struct kernel_data *kernel, enum kernel_key start, enum kernel_key bytes, uint64_t pc)
{
	return kernel->layout[start].is_known && pc - kernel->layout[start].value < kernel->layout[bytes].value;
}

bool spins_begin_at(const struct kernel_data *kernel, uint64_t pc)
{
	return is_in(kernel, KEY_SPIN_SLOW, KEY_SPIN_SLOW_SIZE, pc) && pc == kernel->layout[KEY_SPIN_SLOW].value;
}

bool spins_end_at(const struct kernel_data *kernel, uint64_t pc, const uint8_t *bytes, size_t size)
{
	int32_t distance;

	if (!is_in(kernel, KEY_SPIN_SLOW, KEY_SPIN_SLOW_SIZE, pc) || !size)
		return false;
	if (bytes[0] == RET)
		return true;
	/* A jump out of the function: to the return thunk. */
	if (bytes[0] != JMP || size != JMP_BYTES)
		return false;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return !is_in(kernel, KEY_SPIN_SLOW, KEY_SPIN_SLOW_SIZE, pc + JMP_BYTES + distance);
}

static uint64_t word_at(const struct kernel_data *kernel, uint64_t address)
{
	uint64_t word = 0;

	return kernel->read(address, &word, sizeof(word)) ? word : 0;
}

/* Return where the call will go on that took the lock. */
static uint64_t return_address(const struct kernel_data *kernel, const uint64_t *registers)
{
	uint64_t returns = word_at(kernel, registers[SP]), frame = registers[BP];

	/* A read-write lock has two functions of locks. */
	for (int depth = 0; depth < FRAMES_MAX && is_in(kernel, KEY_LOCK_TEXT, KEY_LOCK_TEXT_SIZE, returns); depth++) {
		returns = word_at(kernel, frame + sizeof(uint64_t));
		frame = word_at(kernel, frame);
	}
	return returns;
}

void spins_begin(struct spins *spins, const struct kernel_data *kernel, const struct timing *timing, unsigned int cpu)
{
	const uint64_t *registers = timing->cpus[cpu].registers;
	unsigned int depth = spins->depth[cpu];

	if (!registers || depth == SPIN_CONTEXTS)
		return;
	spins->waits[cpu][depth].line = registers[DI] >> LINE_SHIFT << LINE_SHIFT;
	/* The address behind a call may be that of the next line of source. */
	spins->waits[cpu][depth].site = return_address(kernel, registers) - 1;
	spins->waits[cpu][depth].since = timing_now(timing, cpu);
	spins->depth[cpu]++;
}

void spins_end(struct spins *spins, const struct timing *timing, unsigned int cpu)
{
	unsigned int depth = spins->depth[cpu];
	struct row *row;

	if (!depth) /* it began before the window */
		return;
	spins->depth[cpu] = --depth;
	row = table_row(&spins->sums, spins->waits[cpu][depth].line, spins->waits[cpu][depth].site, 0);
	row->count[0]++;
	row->count[1] += timing_now(timing, cpu) - spins->waits[cpu][depth].since;
}

void spins_forget(struct spins *spins)
{
	memset(spins->depth, 0, sizeof(spins->depth));
	table_clear(&spins->sums);
}

void spins_print(const struct spins *spins, struct kernel_data *kernel, FILE *file)
{
	const struct row *rows = spins->sums.rows;

	for (size_t i = 0; i < spins->sums.used; i++) {
		fprintf(file, "spin\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\n", rows[i].key[0], rows[i].key[1],
			rows[i].count[0], rows[i].count[1]);
		kernel_data_print_slab(kernel, rows[i].key[0], file);
	}
}
