/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counter.h"

#include "memory.h"

enum { COUNTERS_A_CHUNK = 4096 };

#if WQLAB_PLUGIN_API == 1

counter counter_new(void)
{
	static uint64_t *chunk;
	static size_t used = COUNTERS_A_CHUNK;

	/* Chunks are not moved, unlike an array that grows. */
	if (used == COUNTERS_A_CHUNK) {
		chunk = allocate(COUNTERS_A_CHUNK, sizeof(*chunk));
		used = 0;
	}
	return &chunk[used++];
}

uint64_t counter_read(counter counter)
{
	return *counter;
}

void counter_clear(counter counter)
{
	*counter = 0;
}

void counter_count(counter counter, struct qemu_plugin_insn *insn)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
}

#else

counter counter_new(void)
{
	static struct qemu_plugin_scoreboard *chunk;
	static size_t used = COUNTERS_A_CHUNK;

	if (used == COUNTERS_A_CHUNK) {
		chunk = qemu_plugin_scoreboard_new(COUNTERS_A_CHUNK * sizeof(uint64_t));
		used = 0;
	}
	return (counter){ .score = chunk, .offset = used++ * sizeof(uint64_t) };
}

uint64_t counter_read(counter counter)
{
	return qemu_plugin_u64_sum(counter);
}

void counter_clear(counter counter)
{
	for (int cpu = 0; cpu < qemu_plugin_num_vcpus(); cpu++)
		qemu_plugin_u64_set(counter, cpu, 0);
}

void counter_count(counter counter, struct qemu_plugin_insn *insn)
{
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
}

#endif
