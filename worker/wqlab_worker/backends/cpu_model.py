"""Name a device's CPU models from /proc/cpuinfo: by `model name` on x86, by implementer and part number on arm64."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

CPUINFO_PATTERN = "^(model name|CPU implementer|CPU part)"
"""Extended regular expression of the /proc/cpuinfo lines that `cpu_models` reads."""

_ARM64 = {
    # (implementer, part), as arch/arm64/include/asm/cputype.h lists them
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x51, 0x802): "Kryo 3xx Gold",
    (0x51, 0x803): "Kryo 3xx Silver",
    (0x51, 0x804): "Kryo 4xx Gold",
    (0x51, 0x805): "Kryo 4xx Silver",
}


def cpu_models(lines: Iterable[str]) -> str:
    """Return the models in CPU order, as in `4x Cortex-A53, 4x Cortex-A73`; the name alone if all are the same."""
    models: list[str] = []
    implementer = ""
    for line in lines:
        name, _, value = (word.strip() for word in line.partition(":"))
        if name == "CPU implementer":
            implementer = value
        elif name == "CPU part":
            models.append(_arm64(implementer, value))
        elif name == "model name":
            models.append(value)
    runs = [(model, len(list(run))) for model, run in groupby(models)]
    return runs[0][0] if len(runs) == 1 else ", ".join(f"{count}x {model}" for model, count in runs)


def _arm64(implementer: str, part: str) -> str:
    numbers = f"CPU part {part} of implementer {implementer}"
    try:
        return _ARM64.get((int(implementer, 16), int(part, 16)), numbers)
    except ValueError:
        return numbers
