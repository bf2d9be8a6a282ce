"""Layouts: shifts by number, places in linker scripts, and a real kernel that is linked again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_contracts.layouts import LINE, MOST_LAYOUTS, PAGE, shift_of
from wqlab_worker.build.shift_layout import shifted

X86_6_12 = """SECTIONS
{
 .text : AT(ADDR(.text) - 0xffffffff80000000) {
  _text = .;
  . = ALIGN(64); *(.text.hot .text.hot.*) *(.text .text.fixup) *(.text.unlikely .text.unlikely.*)
 } :text = 0xcccccccc
 .data : AT(ADDR(.data) - 0xffffffff80000000) {
  *(.xiptext) *(.data) *(.data..decrypted) *(.ref.data)
 }
 .bss : AT(ADDR(.bss) - 0xffffffff80000000) {
  *(.bss..page_aligned)
  *(.bss)
 }
}
"""
SPELLED_OUT = [word[:end] for word in ("startup", "exit") for end in range(1, len(word))]


def test_layouts_differ_modulo_a_page() -> None:
    shifts = [shift_of(layout) for layout in range(MOST_LAYOUTS)]
    assert shifts[0] == (0, 0, 0), "layout 0 is the ordinary link"
    for kind in zip(*shifts, strict=True):
        assert all(0 <= size < PAGE for size in kind)
        # The linker rounds up to the alignment of functions, at most a cache line here.
        assert len({-(-size // LINE) * LINE % PAGE for size in kind}) == MOST_LAYOUTS
    with pytest.raises(ValueError, match="numbered from 0 to 7"):
        shift_of(MOST_LAYOUTS)


def test_each_folder_is_shifted_once_in_the_first_matching_place() -> None:
    script = shifted(X86_6_12, (1872, 2400, 2784))
    assert ". += 1872; kernel/*(.text .text.fixup)" in script
    assert ". += 1872; *(.text .text.fixup) *(.text.unlikely" in script
    assert ". += 2400; mm/*(.data)" in script
    assert ". += 2400; *(.data) *(.data..decrypted)" in script
    assert ". += 2784; *(.bss)\n" in script
    assert "*(.bss..page_aligned)\n" in script, "page-aligned data stays where it is"
    assert script.count("kernel/*(") == 3


def test_sections_of_each_function_are_shifted_too() -> None:
    script = X86_6_12.replace("*(.text .text.fixup)", "*(.text .text.[0-9a-zA-Z_]* .text.fixup)")
    assert ". += 64; fs/*(.text .text.[0-9a-zA-Z_]* .text.fixup)" in shifted(script, (64, 64, 64))


def test_long_list_of_sections_of_linux_7_3_is_found() -> None:
    """It names each prefix of `.text.startup` and `.text.exit` that is neither."""
    prefixes = " ".join(f".text.{prefix}[_0-9A-Za-z]* .text.{prefix} .text.{prefix}.*" for prefix in SPELLED_OUT)
    script = X86_6_12.replace("*(.text .text.fixup)", f"*(.text {prefixes} .text.fixup)")
    assert f". += 64; fs/*(.text {prefixes} .text.fixup)" in shifted(script, (64, 64, 64))


@pytest.mark.parametrize(
    ("section", "name"),
    [("*(.text .text.fixup)", "functions"), ("*(.data)", "variables"), ("*(.bss)\n", "zeroed variables")],
)
def test_script_without_a_place_names_it(section: str, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        shifted(X86_6_12.replace(section, "\n"), (64, 64, 64))


def test_linker_moves_every_object_of_a_folder(tmp_path: Path) -> None:
    """A function behind one that is aligned to a page moves by less than a page, which a single shift would not do."""
    for folder, align in (("arch", 4096), ("kernel", 16)):
        (tmp_path / folder).mkdir()
        source = f".text\n.balign {align}\n.global {folder}_f\n{folder}_f: ret\n.data\n.quad 1\n.bss\n.skip 8\n"
        subprocess.run(["/usr/bin/as", "-o", f"{folder}/f.o", "-"], input=source, text=True, cwd=tmp_path, check=True)
    script = "SECTIONS { .text : { *(.text .text.fixup) } .data : { *(.data) } .bss : { *(.bss) } }"
    found = []
    for layout in (0, 1):
        text = shifted(script, shift_of(layout)) if layout else script
        (tmp_path / "script").write_text(text)
        subprocess.run(
            ["/usr/bin/ld", "-T", "script", "-e", "0", "-o", "linked", "arch/f.o", "kernel/f.o"],
            cwd=tmp_path, check=True, capture_output=True,
        )  # fmt: skip
        listed = subprocess.run(["/usr/bin/nm", "linked"], cwd=tmp_path, text=True, capture_output=True, check=True)
        found.append({line.split()[2]: int(line.split()[0], 16) for line in listed.stdout.splitlines()})
    ordinary, moved = found
    distance = moved["kernel_f"] - moved["arch_f"] - (ordinary["kernel_f"] - ordinary["arch_f"])
    assert distance % PAGE == shift_of(1).text
