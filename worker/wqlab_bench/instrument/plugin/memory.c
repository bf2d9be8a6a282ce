/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("wqlab-instrument: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die("no memory for %zu elements of %zu bytes", count, size);
	return memory;
}

void *resize(void *old, size_t count, size_t size)
{
	void *memory = count <= SIZE_MAX / size ? realloc(old, count * size) : NULL;

	if (!memory)
		die("no memory for %zu elements of %zu bytes", count, size);
	return memory;
}
