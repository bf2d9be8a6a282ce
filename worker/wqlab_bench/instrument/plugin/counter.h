/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters that translated code increments inline, without a call of the plugin. */
#ifndef WQLAB_COUNTER_H
#define WQLAB_COUNTER_H

#include "qemu_api.h"

#if WQLAB_PLUGIN_API == 1
typedef uint64_t *counter;
#else
typedef qemu_plugin_u64 counter;
#endif

/* Return a new counter with value 0. It exists until QEMU ends, because translated code refers to it. */
counter counter_new(void);

uint64_t counter_read(counter counter);
void counter_clear(counter counter);

/* Add 1 each time the instruction starts. */
void counter_count(counter counter, struct qemu_plugin_insn *insn);

#endif
