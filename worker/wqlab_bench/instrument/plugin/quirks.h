/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between versions of QEMU, and how to live with their bugs. */
#ifndef WQLAB_QUIRKS_H
#define WQLAB_QUIRKS_H

#include <stdbool.h>

#include "decode.h"
#include "lines.h"
#include "qemu_api.h"

enum { ADDEND_MAX = 8 };

/*
 * Add 1 to ADDEND_MAX to a counter each time an instruction starts. The counter must exist until QEMU ends.
 */
void quirks_count(struct qemu_plugin_insn *insn, uint64_t *counter, unsigned int addend);

/* Copy the bytes of an instruction. */
void quirks_get_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes, size_t size);

/*
 * Return true if QEMU may not execute the last instruction of a block, at this address: QEMU before 8.1 reports one of
 * x86 that crosses the end of the page, with the bytes before the end, although it drops its code again.
 */
static inline bool quirks_may_be_dropped(uint64_t last)
{
	return WQLAB_PLUGIN_API == 1 && last >> PAGE_SHIFT != (last + INSN_MAX - 1) >> PAGE_SHIFT;
}

/* Call this in the callback of qemu_plugin_reset(). */
void quirks_after_reset(unsigned int cpus);

/*
 * Copy memory of the guest from a virtual address of its kernel; return false if it cannot be read. The CPU that executes
 * a callback may be in user space, where the kernel is not visible to it (arm64, page table isolation), so that it is
 * read as another CPU sees it, most of which are idle in the kernel.
 */
bool quirks_read(uint64_t address, void *to, size_t size);

#if WQLAB_PLUGIN_API == 1

static inline unsigned int quirks_cpu(unsigned int cpu)
{
	return cpu;
}

#else

unsigned int quirks_find_cpu(void);

/*
 * Return the number of the CPU that executes a callback. With all CPUs on one host thread, QEMU 10.0 passes the number
 * of the CPU for which the code was translated, although all CPUs share the code.
 */
static inline unsigned int quirks_cpu(unsigned int cpu)
{
	static CPUState *last;
	static unsigned int number;

	(void)cpu;
	if (current_cpu != last) {
		number = quirks_find_cpu();
		last = current_cpu;
	}
	return number;
}

#endif
#endif
