/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talk to the plugin of an instrumented device (instrument/plugin) that runs this program.
 *
 *   wqmark track | begin | end | untrack     begin to follow cache lines; open and close a window; stop following
 *   wqmark send NAME < FILE                  send a file of up to 64 MiB
 *
 * The plugin finds instructions that no compiler emits and that do nothing without it; a file's bytes are the addresses
 * of stores. No system call and no device takes part, so the kernel under test does nothing else than without them.
 * Without the plugin, nothing happens.
 *
 * There is no C library, because a window includes the end of the process that opens it and the start of the process
 * that closes it; they are short for a program of one page of code.
 */
#include "wqmark.h"

/* The target of stores: 64 KiB at a multiple of 64 KiB. */
static unsigned char window[1 << 16] __attribute__((aligned(1 << 16)));
static unsigned char input[1 << 16];

#ifdef __x86_64__

static long call(long number, long first, const void *second, long third)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}

enum { SYS_READ = 0, SYS_WRITE = 1, SYS_EXIT = 231 };

__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call start\n");

#elif defined(__aarch64__)

static long call(long number, long first, const void *second, long third)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = first;
	register const void *x1 __asm__("x1") = second;
	register long x2 __asm__("x2") = third;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}

enum { SYS_READ = 63, SYS_WRITE = 64, SYS_EXIT = 94 };

__asm__(".globl _start\n_start: mov x0, sp\n bl start\n");

#else
#error "no markers for this architecture"
#endif

static long length(const char *text)
{
	long size = 0;

	while (text[size])
		size++;
	return size;
}

static int is_equal(const char *text, const char *other)
{
	while (*text && *text == *other)
		text++, other++;
	return *text == *other;
}

__attribute__((noreturn)) static void quit(int status)
{
	for (;;)
		call(SYS_EXIT, status, 0, 0);
}

__attribute__((noreturn)) static void die(int status, const char *message)
{
	call(SYS_WRITE, 2, message, length(message));
	quit(status);
}

/* Bytes are sent in pairs; `pending` is the first of a pair, or -1. */
static int pending = -1;

static void send_bytes(const unsigned char *bytes, long size)
{
	for (long i = 0; i < size; i++) {
		if (pending < 0) {
			pending = bytes[i];
		} else {
			wqmark_store(window + (pending | bytes[i] << 8));
			pending = -1;
		}
	}
}

static void send_input(const char *name)
{
	long size;

	WQMARK(WQMARK_FRAME);
	send_bytes((const unsigned char *)name, length(name) + 1);
	while ((size = call(SYS_READ, 0, input, sizeof(input))) > 0)
		send_bytes(input, size);
	if (pending >= 0) {
		wqmark_store(window + pending);
		WQMARK(WQMARK_FRAME_END_ODD);
	} else {
		WQMARK(WQMARK_FRAME_END);
	}
	if (size < 0)
		die(1, "wqmark: cannot read standard input\n");
}

__attribute__((noreturn, used)) static void start(long *stack)
{
	long count = stack[0];
	char **words = (char **)(stack + 1);
	const char *command = count > 1 ? words[1] : "";

	if (count == 2 && is_equal(command, "track"))
		WQMARK(WQMARK_TRACK);
	else if (count == 2 && is_equal(command, "begin"))
		WQMARK(WQMARK_BEGIN);
	else if (count == 2 && is_equal(command, "end"))
		WQMARK(WQMARK_END);
	else if (count == 2 && is_equal(command, "untrack"))
		WQMARK(WQMARK_UNTRACK);
	else if (count == 3 && is_equal(command, "send"))
		send_input(words[2]);
	else
		die(2, "usage: wqmark track|begin|end|untrack, or wqmark send NAME < FILE\n");
	quit(0);
}
