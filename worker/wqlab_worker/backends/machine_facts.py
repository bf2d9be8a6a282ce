"""Facts about the machine below the kernel: firmware, microcode, memory, frequency driver, cache allocation.

Pure functions on what `probe.COMMAND` prints. A change of a fact cuts the history, except user processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

_CPU = "/sys/devices/system/cpu"
_DMI = "/sys/class/dmi/id/"
_TREE = "/proc/device-tree/"
_EDAC = "/sys/devices/system/edac/mc/"
_DEVFREQ = "/sys/class/devfreq/"
FILES = (
    *(f"{_DMI}{name}" for name in ("sys_vendor", "product_name", "bios_vendor", "bios_version", "bios_date")),
    f"{_CPU}/cpufreq/policy0/scaling_driver",
    f"{_CPU}/cpufreq/policy0/energy_performance_preference",
    f"{_CPU}/amd_pstate/status",
    f"{_CPU}/intel_pstate/status",
    f"{_CPU}/cpu0/cpuidle/state[0-9]*/name",
    f"{_CPU}/cpu0/cpuidle/state[0-9]*/disable",
    "/sys/devices/system/cpu/cpuidle/current_governor",
    f"{_EDAC}mc[0-9]*/mc_name",
    f"{_DEVFREQ}*dmc*/cur_freq",
    "/sys/kernel/mm/ksm/run",
)
"""Facts that are read from files in /sys with one line of text."""
_TREE_FILES = (f"{_TREE}model", f"{_TREE}chosen/u-boot,version", f"{_TREE}firmware/chromeos/*firmware-version")
MICROCODE_PATTERN = "^microcode"
"""Extended regular expression of the /proc/cpuinfo lines that `facts` reads."""
TABLE_MARK = "==dmi=="
RESCTRL_MARK = "==resctrl=="

# The device tree's texts end with a zero byte. While resctrl is mounted, context switches cost more.
COMMAND = (
    # Kernel threads have no command line.
    'printf "processes:"; for process in /proc/[0-9]*; do words=; read -r words 2>/dev/null <"$process/cmdline"; '
    '[ -z "$words" ] || { read -r name 2>/dev/null <"$process/comm" && printf " %s" "$name"; }; done; echo; '
    f"for file in {' '.join(_TREE_FILES)}; do "
    '[ ! -r "$file" ] || { printf "%s:" "$file"; tr -d "\\0" <"$file"; echo; }; done; '
    "if grep -qw resctrl /proc/filesystems && mount -t resctrl resctrl /sys/fs/resctrl 2>/dev/null; then "
    f"echo '{RESCTRL_MARK}'; grep -H '' /sys/fs/resctrl/schemata /sys/fs/resctrl/info/L*/cbm_mask; "
    "umount /sys/fs/resctrl; fi; "
    f"[ ! -r /sys/firmware/dmi/tables/DMI ] || {{ echo '{TABLE_MARK}'; od -An -v -tx1 /sys/firmware/dmi/tables/DMI; }}"
)
"""Prints the names of the processes of user space and `PATH:TEXT` lines; then, behind RESCTRL_MARK, the schemata of the
default group; then, behind TABLE_MARK, the firmware's table of the machine's parts as hexadecimal bytes."""

_MEMORY_TYPES = {0x18: "DDR3", 0x1A: "DDR4", 0x1D: "LPDDR3", 0x1E: "LPDDR4", 0x22: "DDR5", 0x23: "LPDDR5"}
"""Memory types of SMBIOS (DSP0134, table 77)."""
_MEMORY_DEVICE, _END_OF_TABLE = 17, 127
_STRUCTURE_LIMIT = 100_000


def facts(files: Mapping[str, str], lines: Sequence[str], schemata: Iterable[str], table: str) -> dict[str, str]:
    """Return facts by name; those that the machine does not report are missing.

    `files` are path -> content; `lines` its other lines; `schemata` and `table` are the last two parts of the
    output of COMMAND.
    """
    found = {
        "machine": _joined(files.get(f"{_DMI}sys_vendor"), files.get(f"{_DMI}product_name"))
        or files.get(f"{_TREE}model", ""),
        "firmware": _firmware(files),
        "microcode": _microcode(lines),
        "memory": _memory(table) or _memory_clock(files),
        "memory controller": _different(text for path, text in files.items() if path.startswith(_EDAC)),
        "frequency driver": _frequency_driver(files),
        "energy preference": files.get(f"{_CPU}/cpufreq/policy0/energy_performance_preference", ""),
        "idle states": _idle_states(files),
        "cache allocation": _cache_allocation(schemata),
        "user processes": _processes(lines),
        "ksm": {"0": "off", "1": "on", "2": "off"}.get(files.get("/sys/kernel/mm/ksm/run", ""), ""),
    }
    return {name: value for name, value in found.items() if value}


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _different(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))


def _firmware(files: Mapping[str, str]) -> str:
    """Return maker, version and date of the BIOS, or what the boot loader wrote into the device tree."""
    version, date = files.get(f"{_DMI}bios_version"), files.get(f"{_DMI}bios_date")
    if version or date:
        return _joined(files.get(f"{_DMI}bios_vendor"), version, f"({date})" if date else None)
    folders = (f"{_TREE}chosen/", f"{_TREE}firmware/")
    texts = {path.rpartition("/")[2]: text for path, text in files.items() if path.startswith(folders)}
    return ", ".join(f"{name} {text}" for name, text in sorted(texts.items()))


def _microcode(lines: Iterable[str]) -> str:
    """Return the revision of all CPUs, or each with its number of CPUs."""
    pairs = (line.partition(":") for line in lines)
    seen = Counter(value.strip() for name, _, value in pairs if name.strip() == "microcode")
    return next(iter(seen)) if len(seen) == 1 else ", ".join(f"{n}x {revision}" for revision, n in seen.items())


def _processes(lines: Iterable[str]) -> str:
    """Return the names of all processes of user space; those of the lab's own connection among them."""
    found = next((text for line in lines for name, _, text in [line.partition(":")] if name == "processes"), "")
    return " ".join(sorted(set(found.split())))


def _frequency_driver(files: Mapping[str, str]) -> str:
    driver = files.get(f"{_CPU}/cpufreq/policy0/scaling_driver", "")
    status = files.get(f"{_CPU}/{driver.partition('-epp')[0].replace('-', '_')}/status", "")
    return f"{driver} ({status})" if driver and status else driver


def _idle_states(files: Mapping[str, str]) -> str:
    """Return the states of CPU 0 as in `POLL, C1 (C6 disabled)`."""
    prefix = f"{_CPU}/cpu0/cpuidle/"
    names = {path: text for path, text in files.items() if path.startswith(prefix) and path.endswith("/name")}
    off = [name for path, name in names.items() if files.get(path.removesuffix("name") + "disable") == "1"]
    on = [name for name in names.values() if name not in off]
    if not names:
        return ""
    return (", ".join(on) or "none") + (f" ({', '.join(off)} disabled)" if off else "")


def _cache_allocation(lines: Iterable[str]) -> str:
    """Return `whole` if the default group may use every cache way and all bandwidth, else its schemata."""
    schemata: list[str] = []
    masks: dict[str, int] = {}
    for line in lines:
        path, _, text = line.partition(":")
        if path.endswith("/schemata"):
            schemata.append(text.strip())
        elif path.endswith("/cbm_mask"):
            masks[path.split("/")[-2]] = _hexadecimal(text)
    if not schemata:
        return ""
    for line in schemata:
        resource, _, domains = line.partition(":")
        whole = masks.get(resource)
        for domain in domains.split(";"):
            value = domain.partition("=")[2].strip()
            # Without a mask of ways it is a bandwidth, in percent on Intel.
            if value != "100" if whole is None else _hexadecimal(value) != whole:
                return "; ".join(schemata)
    return "whole"


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _memory_clock(files: Mapping[str, str]) -> str:
    """Return the clock of a memory controller that the kernel scales (Rockchip)."""
    clocks = [text for path, text in files.items() if path.startswith(_DEVFREQ) and text.isdecimal()]
    return ", ".join(f"{int(clock) / 1e6:.0f} MHz" for clock in clocks if len(clock) < 15)


def _memory(table: str) -> str:
    """Return the modules as in `16x 32 GiB DDR4 at 3200 MT/s`, from the machine's SMBIOS table."""
    kinds: Counter[str] = Counter()
    for kind, data in _structures(_bytes(table)):
        if kind != _MEMORY_DEVICE or len(data) < 0x15 or not (size := _size_mib(data)):
            continue
        # The configured speed follows in SMBIOS 2.7, and both have 32-bit successors for 64 GT/s and more in 3.3.
        speed = _word(data, 0x20) or _word(data, 0x15)
        name = _MEMORY_TYPES.get(data[0x12], "memory")
        gib = f"{size / 1024:g} GiB" if size >= 1024 else f"{size} MiB"
        kinds[f"{gib} {name}" + (f" at {speed} MT/s" if 0 < speed < 0xFFFF else "")] += 1
    return ", ".join(f"{number}x {what}" for what, number in sorted(kinds.items()))


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _structures(table: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and formatted area of each structure; the strings behind it end with two zero bytes."""
    at = 0
    for _ in range(_STRUCTURE_LIMIT):
        if at + 4 > len(table) or table[at + 1] < 4:
            return
        kind, length = table[at], table[at + 1]
        yield kind, table[at : at + length]
        end = table.find(b"\0\0", at + length)
        if end < 0 or kind == _END_OF_TABLE:
            return
        at = end + 2


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "little") if at + 2 <= len(data) else 0


def _size_mib(data: bytes) -> int:
    """Return a module's size in MiB; 0 for an empty slot or an unknown size."""
    size = _word(data, 0x0C)
    if size == 0x7FFF:
        return int.from_bytes(data[0x1C:0x20], "little") & 0x7FFFFFFF if len(data) >= 0x20 else 0
    if size == 0xFFFF:
        return 0
    return (size & 0x7FFF) // 1024 if size & 0x8000 else size
