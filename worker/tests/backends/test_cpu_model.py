"""Names of CPUs from /proc/cpuinfo."""

from __future__ import annotations

import pytest

from wqlab_worker.backends.cpu_model import cpu_models


def arm64(implementer: str, part: str) -> list[str]:
    return [f"CPU implementer\t: {implementer}", f"CPU part\t: {part}"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (2 * ["model name\t: AMD Ryzen 9 3900X 12-Core Processor"], "AMD Ryzen 9 3900X 12-Core Processor"),
        (4 * arm64("0x41", "0xd03") + 4 * arm64("0x41", "0xd09"), "4x Cortex-A53, 4x Cortex-A73"),
        (8 * arm64("0x41", "0xd08"), "Cortex-A72"),
        (6 * arm64("0x51", "0x805") + 2 * arm64("0x51", "0x804"), "6x Kryo 4xx Silver, 2x Kryo 4xx Gold"),
        (arm64("0x41", "0xfff"), "CPU part 0xfff of implementer 0x41"),
        (arm64("", "?"), "CPU part ? of implementer "),
        ([], ""),
    ],
)
def test_cpus_are_named_in_their_order(lines: list[str], named: str) -> None:
    assert cpu_models(lines) == named
