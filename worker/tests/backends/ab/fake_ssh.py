"""A program in place of ssh, to a machine that is a folder: $FAKE_MACHINE.

`running` names the system that answers: `own` (without a key), `lab` (with a key) or `none`. `after` has the systems
that start one after the other at each kexec or restart. `lets_in`: `own` accepts a key of the user's configuration
beside the lab's key. Commands are appended to `commands`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

MACHINE = Path(os.environ["FAKE_MACHINE"])


def read(name: str) -> str:
    try:
        return (MACHINE / name).read_text().strip()
    except FileNotFoundError:
        return ""


def start_next() -> None:
    after = read("after").split()
    (MACHINE / "after").write_text(" ".join(after[1:]))
    (MACHINE / "running").write_text(after[0] if after else "none")
    (MACHINE / "boot").write_text(str(int(read("boot") or 1) + 1))


def main() -> int:
    arguments = sys.argv[1:]
    options = dict(each.split("=", 1) for each in arguments if "=" in each and " " not in each)
    wanted = (
        "lab"
        if options.get("IdentitiesOnly") == "yes" and not (read("lets_in") and read("running") == "own")
        else "own"
    )
    if "-MN" in arguments:
        if read("running") != wanted:
            print("root@machine: Permission denied (publickey).", file=sys.stderr)
            return 255
        print("connected", flush=True)
        while read("running") == wanted:
            time.sleep(0.01)
        return 255
    command = arguments[-1]
    with (MACHINE / "commands").open("a") as log:
        log.write(f"{wanted}: {command}\n")
    if read("running") != wanted:
        return 255
    return answer(command, wanted)


def answer(command: str, system: str) -> int:
    line = read("command_line") if system == "lab" else "root=/dev/sda2 quiet"
    if command.startswith("cat /proc/sys/kernel/random/boot_id"):
        print(f"boot-{read('boot') or 1}\n10.00 20.00\n{line}")
    elif command == "cat /proc/cmdline":
        print(line)
    elif command.startswith("mktemp"):
        print("/dev/shm/wqlab.abc123")
    elif command.startswith("cat > "):
        print(len(sys.stdin.buffer.read()))
    elif command.startswith("tar "):
        sys.stdin.buffer.read()
    elif "--command-line=" in command:
        if said := read("kexec_refuses"):
            print(said, file=sys.stderr)
            return 1
        (MACHINE / "command_line").write_text(command.partition("--command-line=")[2].partition("'")[0])
    elif command == "systemctl kexec" or "kexec -e" in command or "reboot -f" in command:
        start_next()
    elif command == "cat /dev/kmsg":
        print("6,1,100000,-;Linux version 6.12.1", flush=True)
        while read("running") == system:
            time.sleep(0.01)
    elif command.startswith("find /sys/fs/pstore"):
        # The log of a crash is there once the distribution runs again.
        kept = ["/sys/fs/pstore/dmesg-efi-1", "/var/lib/systemd/pstore/2/dmesg.txt"]
        print("\n".join(kept[: int(read("boot") or 1)]))
    elif command.startswith("sed "):
        print(read("crash_log") if command.endswith("/2/dmesg.txt") else "a log of last year")
    elif command == "sh -s":
        sys.stdin.buffer.read()
        print(f"user=0\narch=x86_64\nboot_id=boot\naddress=192.0.2.5\n{read('logins')}")
    elif command.startswith("sh -s 300 "):
        sys.stdin.buffer.read()
        print(read("armed"))
        return 0 if read("armed") else 1
    elif "watchdog -T" in command:
        return 0 if read("watchdog") else 1
    return 0


sys.exit(main())
