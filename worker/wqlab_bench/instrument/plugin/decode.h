/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognize the few instructions that matter to the plugin by their encoding. */
#ifndef WQLAB_DECODE_H
#define WQLAB_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What guest/wqmark.c says to the plugin. Codes of instructions that no compiler emits and that do nothing on real
 * hardware: x86-64 `nopl DISPLACEMENT(%rax)`, arm64 `movz xzr, #IMMEDIATE`.
 */
enum marker {
	MARKER_NONE,
	MARKER_TRACK, /* follow cache lines from now on */
	MARKER_BEGIN, /* open a window, and track if not tracking */
	MARKER_END, /* close the window */
	MARKER_UNTRACK, /* close the window and stop tracking */
	MARKER_FRAME, /* begin a frame of data: a name, a zero byte, the content */
	MARKER_FRAME_END, /* end the frame */
	MARKER_FRAME_END_ODD, /* end the frame; its last byte is padding */
	MARKER_DATA, /* not a code: a store; the low 16 bits of its address are two bytes of the frame */
};

enum arch { ARCH_X86_64, ARCH_ARM64 };

enum { INSN_MAX = 16 };

/* Return the marker that an instruction of `size` bytes is, or MARKER_NONE. */
enum marker decode_marker(enum arch arch, const uint8_t *insn, size_t size);

/*
 * Return true if an instruction changes memory atomically: on x86-64 a lock prefix or xchg with memory, on arm64 a
 * store exclusive (one per attempt), a compare and swap or another atomic instruction of ARMv8.1 (LSE).
 */
bool decode_is_locked(enum arch arch, const uint8_t *insn, size_t size);

/*
 * Return true if the loads of an instruction fetch the line for writing, so that its store moves nothing more: the
 * locked instructions, and on arm64 a load exclusive that follows `prfm pstl1strm` in memory, as in the kernel's
 * atomics. `previous` is the instruction before it, of 4 bytes, or NULL.
 */
bool decode_loads_to_write(enum arch arch, const uint8_t *insn, size_t size, const uint8_t *previous);

/*
 * Return true if an instruction may change which physical page a virtual address means: on x86-64 a write of a control
 * register, invlpg or invpcid, on arm64 tlbi or a write of a register of the translation.
 */
bool decode_changes_translation(enum arch arch, const uint8_t *insn, size_t size);

#endif
