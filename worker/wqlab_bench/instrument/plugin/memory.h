/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocate memory, or end QEMU with a message: a plugin has no other way to report that it cannot go on. */
#ifndef WQLAB_MEMORY_H
#define WQLAB_MEMORY_H

#include <stddef.h>

/* Print `wqlab-instrument: ` and the message to stderr and end QEMU with status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* Return `count` zeroed elements of `size` bytes. */
void *allocate(size_t count, size_t size);

/* Return `old` with room for `count` elements of `size` bytes; new room is not zeroed. */
void *resize(void *old, size_t count, size_t size);

#endif
