"""Facts about the machine below the kernel, as the probe's own command prints them on trees of /sys and /proc."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.backends import machine_facts, probe

from .sysfs_trees import ACPI_CPUFREQ, AMD_PSTATE, CPU, EDAC, INTEL_PSTATE, Device
from .test_probe import NOTES

PROC = {
    "proc/cmdline": "console=ttyS0 wqlab.token=ab",
    "proc/sys/kernel/random/boot_id": "2c5bd1a6-4dd0-4a0d-8d2e-f6f2f2a6b6a1",
    "proc/sys/kernel/osrelease": "6.12.117",
    "proc/filesystems": "nodev\tsysfs",
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) Platinum 8380\nmicrocode\t: 0xd0003a5\n"
    "model name\t: Intel(R) Xeon(R) Platinum 8380\nmicrocode\t: 0xd0003a5",
    f"{CPU}/online": "0-1",
}
DMI = {
    "sys/class/dmi/id/sys_vendor": "Supermicro",
    "sys/class/dmi/id/product_name": "SYS-620U-TNR",
    "sys/class/dmi/id/bios_vendor": "American Megatrends International, LLC.",
    "sys/class/dmi/id/bios_version": "1.4b",
    "sys/class/dmi/id/bios_date": "09/08/2022",
}


def structure(kind: int, body: bytes, *strings: str) -> bytes:
    texts = b"".join(text.encode() + b"\0" for text in strings) or b"\0"
    return bytes([kind, len(body) + 4, 0, 0]) + body + texts + b"\0"


def module(size_mib: int, kind: int, rated: int, configured: int | None, *, extended: int = 0) -> bytes:
    """A memory device as DSP0134 lays it out, up to its configured speed; of SMBIOS 2.3 without one."""
    body = bytearray(0x22 - 4 if configured is not None else 0x17 - 4)
    body[0x0C - 4 : 0x0E - 4] = size_mib.to_bytes(2, "little")
    body[0x12 - 4] = kind
    body[0x15 - 4 : 0x17 - 4] = rated.to_bytes(2, "little")
    if configured is not None:
        body[0x1C - 4 : 0x20 - 4] = extended.to_bytes(4, "little")
        body[0x20 - 4 : 0x22 - 4] = configured.to_bytes(2, "little")
    return structure(17, bytes(body), "DIMM_A1", "Samsung")


END = structure(127, b"")
SERVER = structure(0, bytes(14), "AMI", "1.4b") + 16 * module(0x7FFF, 0x1A, 3200, 2933, extended=32768) + END


def environment(folder: Path, files: dict[str, str], table: bytes = b"") -> dict[str, str]:
    device = Device(folder, PROC | files)
    for name, data in {"sys/kernel/notes": NOTES, "sys/firmware/dmi/tables/DMI": table}.items():
        if data:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    return probe.parse(device.run_for_bytes(probe.COMMAND)).environment


def test_server_reports_firmware_microcode_and_memory(tmp_path: Path) -> None:
    seen = environment(tmp_path, DMI | INTEL_PSTATE | EDAC, SERVER)
    expected = {
        "machine": "Supermicro SYS-620U-TNR",
        "firmware": "American Megatrends International, LLC. 1.4b (09/08/2022)",
        "microcode": "0xd0003a5",
        "memory": "16x 32 GiB DDR4 at 2933 MT/s",
        "memory controller": "Intel_10nm Socket#0 IMC#0",
        "frequency driver": "intel_pstate (active)",
        "energy preference": "balance_performance",
        "idle states": "POLL, C1_ACPI, C1E, C6",
        "cpu model": "Intel(R) Xeon(R) Platinum 8380",
    }
    assert {name: seen.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("driver", "text"),
    [(ACPI_CPUFREQ, "acpi-cpufreq"), (AMD_PSTATE, "amd-pstate-epp (active)"), (INTEL_PSTATE, "intel_pstate (active)")],
)
def test_frequency_driver_is_named_with_its_mode(tmp_path: Path, driver: dict[str, str], text: str) -> None:
    assert environment(tmp_path, driver)["frequency driver"] == text


def test_disabled_idle_state_is_shown(tmp_path: Path) -> None:
    seen = environment(tmp_path, INTEL_PSTATE | {f"{CPU}/cpu0/cpuidle/state3/disable": "1"})
    assert seen["idle states"] == "POLL, C1_ACPI, C1E (C6 disabled)"


def test_board_with_a_device_tree_names_its_boot_loader(tmp_path: Path) -> None:
    files = {
        "proc/device-tree/model": "Google Kevin\0",
        "proc/device-tree/firmware/chromeos/firmware-version": "Google_Kevin.8785.94.0\0",
        "proc/device-tree/chosen/u-boot,version": "2024.01\0",
        "sys/class/devfreq/dmc/cur_freq": "800000000",
    }
    seen = environment(tmp_path, files)
    assert seen["machine"] == "Google Kevin"
    assert seen["firmware"] == "firmware-version Google_Kevin.8785.94.0, u-boot,version 2024.01"
    assert seen["memory"] == "800 MHz"


def test_emulated_device_reports_none_of_it(tmp_path: Path) -> None:
    seen = environment(tmp_path, {})
    assert not {"machine", "firmware", "memory", "frequency driver", "idle states", "cache allocation"} & seen.keys()


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (module(16384, 0x1A, 3200, 3200) + module(0, 2, 0, 0) + END, "1x 16 GiB DDR4 at 3200 MT/s"),
        (module(512, 0x13, 667, None) + END, "1x 512 MiB memory at 667 MT/s"),
        (module(0xFFFF, 0x1A, 3200, 3200) + END, ""),
        (module(4096, 0x99, 0, 0) + module(8192, 0x22, 4800, 4400), "1x 4 GiB memory, 1x 8 GiB DDR5 at 4400 MT/s"),
        (SERVER[:200], "3x 32 GiB DDR4 at 2933 MT/s"),
        (b"\x11", ""),
        (b"\x11\x00\x00\x00" * 50, ""),
        (b"\xff" * 300, ""),
    ],
)
def test_memory_of_any_table_is_read(table: bytes, text: str) -> None:
    found = machine_facts.facts({}, [], [], table.hex(" ")).get("memory", "")
    assert found == text


def test_cpus_with_different_microcode_are_counted() -> None:
    lines = 3 * ["microcode\t: 0x2b"] + ["microcode\t: 0x2c"]
    assert machine_facts.facts({}, lines, [], "")["microcode"] == "3x 0x2b, 1x 0x2c"


RESCTRL = "/sys/fs/resctrl"


@pytest.mark.parametrize(
    ("l3", "bandwidth", "text"),
    [
        ("0=fff;1=fff", "0=100;1=100", "whole"),
        ("0=fff;1=00f", "0=100;1=100", "L3:0=fff;1=00f; MB:0=100;1=100"),
        ("0=fff;1=fff", "0=100;1= 50", "L3:0=fff;1=fff; MB:0=100;1= 50"),
    ],
)
def test_cache_allocation_of_the_default_group(l3: str, bandwidth: str, text: str) -> None:
    lines = [
        f"{RESCTRL}/schemata:    L3:{l3}",
        f"{RESCTRL}/schemata:    MB:{bandwidth}",
        f"{RESCTRL}/info/L3/cbm_mask:fff",
    ]
    assert machine_facts.facts({}, [], lines, "")["cache allocation"] == text
