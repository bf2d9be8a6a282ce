"""A panic is the hardware's only after lines about an uncorrected error."""

from __future__ import annotations

import pytest

from wqlab_contracts.consoles.detect import Detector, Report


def reports(console: bytes) -> list[Report]:
    detector = Detector()
    return [each for each in [*detector.feed(console), *detector.flush()] if isinstance(each, Report)]


def stamped(*lines: str) -> bytes:
    return b"".join(b"[   20.%06d] %s\n" % (number, line.encode()) for number, line in enumerate(lines))


MCE = "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070f0f"
GHES = "{1}[Hardware Error]: event severity: fatal"
FATAL_HARDWARE = "Kernel panic - not syncing: Fatal hardware error!"


@pytest.mark.parametrize(
    ("lines", "of_hardware"),
    [
        ((MCE, "Kernel panic - not syncing: Fatal machine check"), True),
        ((MCE.replace("mce: ", "core: "), "Kernel panic - not syncing: Fatal machine check"), True),  # 5.x
        ((GHES, FATAL_HARDWARE), True),
        (
            ("NMI: PCI system error (SERR) for reason b1 on CPU 0.", "Kernel panic - not syncing: NMI: Not continuing"),
            True,
        ),
        ((MCE, "Kernel panic - not syncing: VFS: no root"), False),
        ((MCE.replace("b2000", "9c000"), "Kernel panic - not syncing: Fatal machine check"), False),
        (("Kernel panic - not syncing: Fatal machine check",), False),
        (("wq_test: [Hardware Error]: a test", "Kernel panic - not syncing: Fatal machine check"), False),
        ((GHES.replace("fatal", "corrected"), FATAL_HARDWARE), False),
        (("BERT: Error records from previous boot:", GHES.removeprefix("{1}"), FATAL_HARDWARE), False),
    ],
)
def test_the_hardware_is_blamed_by_the_lines_before_a_panic(lines: tuple[str, ...], of_hardware: bool) -> None:
    (report,) = reports(stamped(*lines))
    assert report.of_hardware is of_hardware
    assert (lines[0] in report.excerpt) is (of_hardware or len(lines) == 1)
