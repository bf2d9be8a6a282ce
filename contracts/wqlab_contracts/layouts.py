"""Layouts of a kernel: the same objects, linked with text and data at other addresses."""

from __future__ import annotations

from typing import NamedTuple

MOST_LAYOUTS = 8
"""Most layouts of a build, the ordinary one included. Each more is a link of the kernel and some 70 MB."""
PAGE = 4096
LINE = 64


class Shift(NamedTuple):
    """Bytes by which a layout moves functions, variables and zeroed variables; all less than a page."""

    text: int
    data: int
    bss: int


def shift_of(layout: int) -> Shift:
    """Return the shifts of a layout; the number of the layout is its seed. Layout 0 is the ordinary link.

    The multiples of a cache line are spread over the page by odd factors, so that no two layouts of a build are equal
    modulo a page. Odd multiples of 16 bytes are added to the text, because compilers align functions to 16 bytes by
    default; on a kernel that aligns them to more, the linker rounds up. Raises ValueError for another number.
    """
    if not 0 <= layout < MOST_LAYOUTS:
        raise ValueError(f"there is no layout {layout}: layouts are numbered from 0 to {MOST_LAYOUTS - 1}")
    if layout == 0:
        return Shift(0, 0, 0)
    lines = PAGE // LINE
    return Shift(
        text=LINE * (layout * 29 % lines) + 16 * (layout % 4),
        data=LINE * (layout * 37 % lines) + 32 * (layout % 2),
        bss=LINE * (layout * 23 % lines) + 32 * (layout % 2),
    )
