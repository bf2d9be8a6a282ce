"""Make the ACPI table of a temperature sensor. QEMU gives its machines no sensor.

In ACPI's source language, the table is:

    Scope (\\_SB) {
        ThermalZone (CPUT) {
            Method (_TMP) {
                If (Timer < COOL_AFTER) { Return (HOT) }
                Return (COOL)
            }
            Method (_CRT) { Return (CRITICAL) }
        }
    }

`Timer` counts from the start of the running kernel, also of one that kexec has started.
"""

from __future__ import annotations

HOT_C, COOL_C, CRITICAL_C = 85.0, 45.0, 120.0
_TICKS_S = 10_000_000
_METHOD, _IF, _RETURN, _LESS = b"\x14", b"\xa0", b"\xa4", b"\x95"
_SCOPE, _ZONE, _TIMER = b"\x10", b"\x5b\x85", b"\x5b\x33"
_WORD, _QWORD = b"\x0b", b"\x0e"
_NO_ARGUMENTS = b"\0"


def table(hot_s: float) -> bytes:
    """Return the body (AML, without the header) of an SSDT whose sensor shows HOT_C for `hot_s` seconds after the start
    of each kernel, and COOL_C from then on."""
    limit = _QWORD + int(hot_s * _TICKS_S).to_bytes(8, "little")
    hot = _package(_IF, _LESS + _TIMER + limit + _RETURN + _temperature(HOT_C))
    current = _package(_METHOD, b"_TMP" + _NO_ARGUMENTS + hot + _RETURN + _temperature(COOL_C))
    critical = _package(_METHOD, b"_CRT" + _NO_ARGUMENTS + _RETURN + _temperature(CRITICAL_C))
    return _package(_SCOPE, b"\\_SB_" + _package(_ZONE, b"CPUT" + current + critical))


def qemu_arguments(file: str) -> list[str]:
    """Return the options that give a machine the table in `file`. Revision 2: numbers have 64 bits."""
    return ["-acpitable", f"sig=SSDT,rev=2,oem_id=WQLAB,oem_table_id=SENSOR,data={file}"]


def _package(operator: bytes, content: bytes) -> bytes:
    """Return an operator with the length of its content, which counts the one or two bytes of the length itself."""
    if len(content) + 1 < 1 << 6:
        return operator + bytes([len(content) + 1]) + content
    length = len(content) + 2
    return operator + bytes([1 << 6 | length & 0xF, length >> 4]) + content


def _temperature(celsius: float) -> bytes:
    """Return a temperature as ACPI has it: tenths of a kelvin."""
    return _WORD + round((celsius + 273.2) * 10).to_bytes(2, "little")
