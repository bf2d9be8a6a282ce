/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "decode.h"

#include <string.h>

static const uint8_t magic[] = { 'L', 'Q', 'W' };
static const uint8_t x86_nopl[] = { 0x0f, 0x1f, 0x80 }; /* nopl disp32(%rax) */
static const uint8_t x86_store[] = { 0x88, 0x87, 0x05 }; /* movb %al, disp32(%rdi); 0x05 begins the displacement */

enum {
	ARM64_MARKER = 0xd28ae01f, /* movz xzr, #0x5700; the code is in bits 5 to 9 */
	ARM64_MARKER_MASK = 0xfffffc1f,
	ARM64_STORE = 0x382a793f, /* strb wzr, [x9, x10, lsl #0]; without the shift it is another encoding */
};

static uint32_t word(const uint8_t *bytes)
{
	return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static enum marker marker_of_code(unsigned int code)
{
	return code > MARKER_NONE && code < MARKER_DATA ? (enum marker)code : MARKER_NONE;
}

enum marker decode_marker(enum arch arch, const uint8_t *insn, size_t size)
{
	if (arch == ARCH_ARM64) {
		if (size != 4)
			return MARKER_NONE;
		if (word(insn) == ARM64_STORE)
			return MARKER_DATA;
		if ((word(insn) & ARM64_MARKER_MASK) == ARM64_MARKER)
			return marker_of_code(word(insn) >> 5 & 0x1f);
		return MARKER_NONE;
	}
	if (size == 6 && !memcmp(insn, x86_store, 3) && !memcmp(insn + 3, magic, 3))
		return MARKER_DATA;
	if (size == 7 && !memcmp(insn, x86_nopl, 3) && !memcmp(insn + 4, magic, 3))
		return marker_of_code(insn[3]);
	return MARKER_NONE;
}

static bool is_x86_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return byte >= 0x40 && byte <= 0x4f; /* REX */
	}
}

static bool is_locked_x86(const uint8_t *insn, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (insn[i] == 0xf0)
			return true;
		if (is_x86_prefix(insn[i]))
			continue;
		/* xchg locks without a prefix. A ModRM byte from 0xc0 means two registers. */
		return (insn[i] == 0x86 || insn[i] == 0x87) && i + 1 < size && insn[i + 1] < 0xc0;
	}
	return false;
}

static bool is_locked_arm64(uint32_t insn)
{
	/* Load and store exclusive, and compare and swap (Arm ARM, C4.1.94): o2 is bit 23, L bit 22, o1 bit 21. */
	if ((insn & 0x3f000000) == 0x08000000) {
		bool ordered = insn & 1u << 23, load = insn & 1u << 22, pair = insn & 1u << 21;

		if (ordered)
			return pair; /* CAS; else LDAR, STLR and their kind */
		if (pair && !(insn & 1u << 31))
			return true; /* CASP; with bit 31 LDXP and STXP */
		return !load;
	}
	/* Atomic memory operations and SWP; LDAPR is encoded among them. */
	return (insn & 0x3f200c00) == 0x38200000 && (insn & 0x3ffffc00) != 0x38bfc000;
}

bool decode_is_locked(enum arch arch, const uint8_t *insn, size_t size)
{
	if (arch == ARCH_X86_64)
		return is_locked_x86(insn, size);
	return size == 4 && is_locked_arm64(word(insn));
}

bool decode_loads_to_write(enum arch arch, const uint8_t *insn, size_t size, const uint8_t *previous)
{
	if (arch == ARCH_ARM64 && size == 4 && previous && (word(previous) & 0xffc0001f) == 0xf9800011)
		/* LDXR, LDAXR and their pairs: o2 is 0, L is 1. */
		return (word(insn) & 0x3fc00000) == 0x08400000;
	return decode_is_locked(arch, insn, size);
}

static bool changes_translation_x86(const uint8_t *insn, size_t size)
{
	while (size && is_x86_prefix(*insn))
		insn++, size--;
	if (size < 3 || insn[0] != 0x0f)
		return false;
	return insn[1] == 0x22 || /* mov to a control register */
	       (insn[1] == 0x01 && (insn[2] & 0x38) == 0x38 && insn[2] < 0xc0) || /* invlpg */
	       (insn[1] == 0x38 && insn[2] == 0x82); /* invpcid */
}

bool decode_changes_translation(enum arch arch, const uint8_t *insn, size_t size)
{
	uint32_t code;

	if (arch == ARCH_X86_64)
		return changes_translation_x86(insn, size);
	code = size == 4 ? word(insn) : 0;
	return (code & 0xfff8f000) == 0xd5088000 || /* tlbi */
	       (code & 0xfffff000) == 0xd5181000 || /* SCTLR_EL1 and its kind */
	       (code & 0xfffff000) == 0xd5182000; /* TTBR0_EL1, TTBR1_EL1, TCR_EL1 */
}
