/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions by which a program talks to the plugin of an instrumented device (instrument/plugin/decode.h).
 *
 * WQMARK(code) is a marker. wqmark_store() stores into a window of 64 KiB at a multiple of 64 KiB, and the plugin takes
 * the low 16 bits of the address as two bytes of data. No compiler emits these encodings.
 */
#ifndef WQMARK_H
#define WQMARK_H

/* The codes of enum marker in instrument/plugin/decode.h; words, because the assembler reads them. */
#define WQMARK_TRACK 1
#define WQMARK_BEGIN 2
#define WQMARK_END 3
#define WQMARK_UNTRACK 4
#define WQMARK_FRAME 5
#define WQMARK_FRAME_END 6
#define WQMARK_FRAME_END_ODD 7 /* the last byte of the frame is padding */

#define WQMARK_STRING_(text) #text
#define WQMARK_STRING(text) WQMARK_STRING_(text)

#ifdef __x86_64__

/* nopl DISPLACEMENT(%rax) */
#define WQMARK(code) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, " WQMARK_STRING(code) ", 'L', 'Q', 'W'" ::: "memory")

static inline void wqmark_store(unsigned char *target)
{
	/* movb %al, DISPLACEMENT(%rdi), whose displacement has the bytes 5, 'L', 'Q', 'W' */
	__asm__ volatile(".byte 0x88, 0x87, 5, 'L', 'Q', 'W'" ::"D"(target - 0x57514c05), "a"(0) : "memory");
}

#elif defined(__aarch64__)

#define WQMARK(code) __asm__ volatile("movz xzr, #(0x5700 + " WQMARK_STRING(code) ")" ::: "memory")

static inline void wqmark_store(unsigned char *target)
{
	register unsigned char *base __asm__("x9") = target;
	register long index __asm__("x10") = 0;

	__asm__ volatile(".inst 0x382a793f" ::"r"(base), "r"(index) : "memory"); /* strb wzr, [x9, x10, lsl #0] */
}

#else
#error "no markers for this architecture"
#endif

#endif
