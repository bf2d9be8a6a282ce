"""The instructions that the plugin recognizes, as the assembler encodes them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_bench.rootfs import TRIPLET
from wqlab_contracts.specs import CpuArch
from wqlab_host import tool

PLUGIN = Path(build_plugin.__file__).parent / "plugin"
GUEST = PLUGIN.parents[1] / "guest"
ARCHES: tuple[CpuArch, ...] = ("x86_64", "arm64")
LOCKED: dict[CpuArch, list[str]] = {
    "x86_64": [
        "lock incl (%rax)", "lock cmpxchg %rcx, 8(%rdx)", "lock xadd %eax, %gs:4(%r9)", "lock btsq $1, (%rdi)",
        "xchg %rax, (%rdi)", "xchg %cl, 4(%r12,%r13)", "lock cmpxchg16b (%rsi)", "xchgw %ax, (%r8)",
    ],
    "arm64": [
        "stxr w0, x1, [x2]", "stlxr w0, w1, [x2]", "stxrb w0, w1, [x2]", "stxp w0, x1, x2, [x3]", "cas x0, x1, [x2]",
        "casal w0, w1, [x2]", "caspal x0, x1, x2, x3, [x4]", "ldadd x0, x1, [x2]", "ldaddal w0, w1, [x2]",
        "swpal x0, x1, [x2]", "stset x0, [x1]", "ldumaxb w0, w1, [x2]",
    ],
}  # fmt: skip
PLAIN: dict[CpuArch, list[str]] = {
    "x86_64": [
        "incl (%rax)", "xchg %rax, %rbx", "nop", "xchg %ax, %ax", "pause", "mov %eax, (%rdi)", "movb $0xf0, %al",
        "cmpxchg %rcx, (%rdx)", "nopl 0x57514c(%rax)", "movb %al, 0x57514c(%rdi)", "test %al, %al",
    ],
    "arm64": [
        "ldxr x0, [x1]", "ldaxr x0, [x1]", "ldxp x0, x1, [x2]", "ldar x0, [x1]", "stlr x0, [x1]", "ldapr x0, [x1]",
        "str x0, [x1]", "strb wzr, [x9, x10]", "ldr x0, [x1, x2]", "movz x0, #0x5701", "movz xzr, #0x5601", "yield",
        "prfm pstl1strm, [x0]", "stp x0, x1, [sp]", "add x0, x1, x2",
    ],
}  # fmt: skip
TRANSLATION: dict[CpuArch, list[str]] = {
    "x86_64": ["mov %rax, %cr3", "mov %r9, %cr4", "mov %rdx, %cr0", "invlpg (%rdi)", "invpcid (%rsi), %rdi"],
    "arm64": [
        "tlbi vmalle1is", "tlbi vaae1is, x0", "tlbi aside1, x3", "msr ttbr0_el1, x0", "msr ttbr1_el1, x1",
        "msr tcr_el1, x2", "msr sctlr_el1, x0",
    ],
}  # fmt: skip
NO_TRANSLATION: dict[CpuArch, list[str]] = {
    "x86_64": ["mov %cr3, %rax", "swapgs", "lidt (%rax)", "rdtscp", "clflush (%rax)", "pshufb %xmm0, %xmm1"],
    "arm64": ["mrs x0, ttbr0_el1", "dc civac, x0", "isb", "msr daifset, #2", "msr tpidr_el1, x0", "at s1e1r, x0"],
}
COMPLETES: dict[CpuArch, list[str]] = {
    "x86_64": [
        "mov %rax, %rbx", "movb $1, %al", "movl $1, %r9d", "movabs $0x123456789abcdef, %rax", "movzbl %al, %eax",
        "movslq %eax, %rbx", "lea 8(%rdi,%rsi,4), %rax", "add %rax, %rbx", "add $5, %rax", "cmp $0x12345, %eax",
        "sbb %r8, %r9", "test %rax, %rax", "test $1, %al", "xor %eax, %eax", "shl $3, %rax", "sar %cl, %edx",
        "inc %rax", "decl %r9d", "neg %rax", "not %eax", "mul %rbx", "imul %rax, %rbx", "imul $3, %rax, %rbx",
        "xchg %rbx, %rcx", "nop", "nopw 0x200(%rax,%rax,1)", "cltq", "cqto", "cmove %rax, %rbx",
        "setne %al", "bt %rbx, %rax", "bsf %rax, %rbx", "bswap %rax", "and $-8, %rsp",
    ],
    "arm64": [
        "mov x0, x1", "mov w0, #5", "movk x0, #1, lsl #16", "add x0, x1, #8", "sub sp, sp, #32", "adrp x0, .",
        "and x0, x1, #0xff", "orr x0, x1, x2, lsl #3", "add x0, x1, w2, uxtw #2", "cmp x0, x1", "csel x0, x1, x2, eq",
        "cset w0, ne", "ubfx x0, x1, #3, #5", "madd x0, x1, x2, x3", "umulh x0, x1, x2", "lsl x0, x1, #3",
    ],
}  # fmt: skip
MAY_NOT_COMPLETE: dict[CpuArch, list[str]] = {
    "x86_64": [
        "mov (%rax), %rbx", "mov %rax, (%rbx)", "add %rax, (%rbx)", "add (%rbx), %rax", "addl $5, (%rax)",
        "push %rax",
        "pop %rax", "call .", "ret", "jmp .", "jne .", "jmp *%rax", "call *%rax", "div %rbx", "idivl (%rax)", "pause",
        "cli", "sti", "hlt", "syscall", "int3", "ud2", "rep movsb", "stosq", "mov %eax, %ds", "mov %cr3, %rax",
        "mov %rax, %cr3", "swapgs", "rdtsc", "wrmsr", "xbegin .", "xabort $1", "xchg %rax, (%rbx)",
        "cmpxchg %rcx, (%rdx)", "movzbl (%rax), %eax", "setne (%rax)", "cmove (%rax), %rbx", "incl (%rax)",
        "negl (%rax)", "movb $1, (%rax)",
        "bt %rbx, (%rax)", "paddd %xmm0, %xmm1", "vpaddd %ymm0, %ymm1, %ymm2", "fadd %st, %st(1)", "in %dx, %al",
        "verw (%rax)", "iretq", "cpuid", "lfence", "invlpg (%rdi)", "enter $8, $0", "leave", "shll (%rax)",
    ],
    "arm64": [
        "ldr x0, [x1]", "str x0, [x1]", "ldp x0, x1, [sp]", "b .", "bl .", "b.eq .", "cbz x0, .", "br x0", "ret",
        "svc #0", "brk #1", "mrs x0, ttbr0_el1", "msr daifset, #2", "wfi", "wfe", "yield", "nop", "isb", "dsb sy",
        "ldxr x1, [x0]", "ldadd x1, x2, [x0]", "tlbi vmalle1is", "dc civac, x0", "fadd d0, d1, d2",
        "add v0.4s, v1.4s, v2.4s", "eret",
    ],
}  # fmt: skip
MARKED = """
#include "wqmark.h"
void marks(void) {
    WQMARK(WQMARK_TRACK); WQMARK(WQMARK_BEGIN); WQMARK(WQMARK_END); WQMARK(WQMARK_UNTRACK);
    WQMARK(WQMARK_FRAME); WQMARK(WQMARK_FRAME_END); WQMARK(WQMARK_FRAME_END_ODD);
}
void stores(unsigned char *target) { wqmark_store(target); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = str(tmp_path_factory.mktemp("decode") / "decode.so")
    tool.output(["gcc", "-O2", "-fPIC", "-shared", str(PLUGIN / "decode.c"), "-o", built], OSError)
    loaded = ctypes.CDLL(built)
    for name in ("decode_is_locked", "decode_loads_to_write", "decode_changes_translation", "decode_always_completes"):
        getattr(loaded, name).restype = ctypes.c_bool
    return loaded


def encodings(arch: CpuArch, source: Path) -> list[bytes]:
    """Return the instructions of a source file, in order."""
    tools, binary = TRIPLET[arch], source.with_suffix(".o")
    flags = ["-march=armv8.3-a"] if arch == "arm64" else []
    tool.output([f"{tools}-gcc", "-O2", "-I", str(GUEST), *flags, "-c", str(source), "-o", str(binary)], OSError)
    listing = tool.output([f"{tools}-objdump", "-d", "-w", "-z", str(binary)], OSError)
    found = []
    for line in listing.splitlines():
        if "\t" in line:
            words = line.split("\t")[1].split()
            # objdump prints arm64's instructions as one number, x86's as bytes.
            code = int(words[0], 16).to_bytes(4, "little") if arch == "arm64" else bytes.fromhex("".join(words))
            found.append(code)
    return found


def assemble(arch: CpuArch, folder: Path, instructions: list[str]) -> list[bytes]:
    source = folder / "code.s"
    source.write_text("".join(f"{line}\n" for line in instructions))
    found = encodings(arch, source)
    assert len(found) == len(instructions)
    return found


@pytest.mark.parametrize("arch", ARCHES)
def test_locked_instructions_are_recognized(library: ctypes.CDLL, arch: CpuArch, tmp_path: Path) -> None:
    def locked(lines: list[str]) -> dict[str, bool]:
        codes = assemble(arch, tmp_path, lines)
        return {
            line: library.decode_is_locked(ARCHES.index(arch), code, ctypes.c_size_t(len(code)))
            for line, code in zip(lines, codes, strict=True)
        }

    assert locked(LOCKED[arch]) == dict.fromkeys(LOCKED[arch], True)
    assert locked(PLAIN[arch]) == dict.fromkeys(PLAIN[arch], False)


@pytest.mark.parametrize("arch", ARCHES)
def test_changes_of_address_translation_are_recognized(library: ctypes.CDLL, arch: CpuArch, tmp_path: Path) -> None:
    def changes(lines: list[str]) -> dict[str, bool]:
        codes = assemble(arch, tmp_path, lines)
        return {
            line: library.decode_changes_translation(ARCHES.index(arch), code, ctypes.c_size_t(len(code)))
            for line, code in zip(lines, codes, strict=True)
        }

    assert changes(TRANSLATION[arch]) == dict.fromkeys(TRANSLATION[arch], True)
    others = NO_TRANSLATION[arch] + LOCKED[arch] + PLAIN[arch]
    assert changes(others) == dict.fromkeys(others, False)


@pytest.mark.parametrize("arch", ARCHES)
def test_instructions_that_always_complete_are_recognized(library: ctypes.CDLL, arch: CpuArch, tmp_path: Path) -> None:
    def completes(lines: list[str]) -> dict[str, bool]:
        codes = assemble(arch, tmp_path, lines)
        return {
            line: library.decode_always_completes(ARCHES.index(arch), code, ctypes.c_size_t(len(code)))
            for line, code in zip(lines, codes, strict=True)
        }

    assert completes(COMPLETES[arch]) == dict.fromkeys(COMPLETES[arch], True)
    others = MAY_NOT_COMPLETE[arch] + TRANSLATION[arch]
    assert completes(others) == dict.fromkeys(others, False)


@pytest.mark.parametrize("arch", ARCHES)
def test_only_marks_are_recognized_as_markers(library: ctypes.CDLL, arch: CpuArch, tmp_path: Path) -> None:
    source = tmp_path / "marks.c"
    source.write_text(MARKED)

    def markers(codes: list[bytes]) -> list[int]:
        found = [library.decode_marker(ARCHES.index(arch), code, ctypes.c_size_t(len(code))) for code in codes]
        return [marker for marker in found if marker]

    assert markers(encodings(arch, source)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert markers(assemble(arch, tmp_path, LOCKED[arch] + PLAIN[arch])) == []


def test_load_exclusive_after_prefetch_to_write_takes_the_line(library: ctypes.CDLL, tmp_path: Path) -> None:
    prefetch, other, exclusive, pair, plain = assemble(
        "arm64", tmp_path,
        ["prfm pstl1strm, [x0]", "prfm pldl1strm, [x0]", "ldxr x1, [x0]", "ldaxp x1, x2, [x0]", "ldr x1, [x0]"],
    )  # fmt: skip

    def takes(code: bytes, previous: bytes | None) -> bool:
        return bool(library.decode_loads_to_write(1, code, ctypes.c_size_t(4), previous))

    assert takes(exclusive, prefetch)
    assert takes(pair, prefetch)
    assert [takes(exclusive, None), takes(exclusive, other), takes(plain, prefetch)] == [False] * 3
