/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "quirks.h"

#include <string.h>

#include "memory.h"
#include "topology.h"

#pragma weak qemu_get_cpu
#pragma weak cpu_memory_rw_debug

/* QEMU reads as its gdb server does: without any effect on the guest. */
bool quirks_read(uint64_t address, void *to, size_t size)
{
	static unsigned int last;

	if (!qemu_get_cpu || !cpu_memory_rw_debug)
		return false;
	for (unsigned int tried = 0; tried < CPUS_MAX; tried++) {
		unsigned int number = (last + tried) % CPUS_MAX;
		CPUState *cpu = qemu_get_cpu(number);

		if (cpu && !cpu_memory_rw_debug(cpu, address, to, size, false)) {
			last = number;
			return true;
		}
	}
	return false;
}

#if WQLAB_PLUGIN_API == 1

#pragma weak qemu_plugin_disable_mem_helpers

void quirks_count(struct qemu_plugin_insn *insn, uint64_t *counter, unsigned int addend)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, addend);
}

void quirks_get_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t size)
{
	memcpy(bytes, qemu_plugin_insn_data(insn), size);
}

/*
 * After an instruction whose memory is accessed by a helper of QEMU, QEMU before 8.0 may keep a pointer to the
 * callbacks of the instruction, also when they have been freed with the translated code, and calls them for an access
 * by the next helper (https://gitlab.com/qemu-project/qemu/-/issues/1381). Clear the pointer with the function by which
 * QEMU clears it.
 */
void quirks_after_reset(unsigned int cpus)
{
	if (!qemu_get_cpu || !qemu_plugin_disable_mem_helpers)
		return;
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		qemu_plugin_disable_mem_helpers(qemu_get_cpu(cpu));
}

#else

/* The low bits of a counter's address are zero, so that they have room for the addend - 1. */
static void add(unsigned int cpu, void *counter_and_addend)
{
	uintptr_t both = (uintptr_t)counter_and_addend;

	(void)cpu;
	*(uint64_t *)(both & ~(uintptr_t)(ADDEND_MAX - 1)) += both % ADDEND_MAX + 1;
}

/*
 * Not inline: QEMU 10.0 computes the address of a CPU's counter in a constant that it shares with other uses of the
 * CPU's number (gen_plugin_u64_ptr() in accel/tcg/plugin-gen.c), so that these become wrong.
 */
void quirks_count(struct qemu_plugin_insn *insn, uint64_t *counter, unsigned int addend)
{
	void *both = (void *)((uintptr_t)counter + addend - 1);

	qemu_plugin_register_vcpu_insn_exec_cb(insn, add, QEMU_PLUGIN_CB_NO_REGS, both);
}

void quirks_get_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t size)
{
	qemu_plugin_insn_data(insn, bytes, size);
}

void quirks_after_reset(unsigned int cpus)
{
	(void)cpus;
}

unsigned int quirks_find_cpu(void)
{
	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++)
		if (qemu_get_cpu(cpu) == current_cpu)
			return cpu;
	die("a callback runs on no CPU");
}

#endif
