"""wqmark, which talks to the plugin: on a device with the plugin, and without it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from wqlab_bench import cpio, rootfs
from wqlab_bench.instrument import build_plugin, qemu_arguments, stream
from wqlab_bench.instrument.qemu_arguments import Boot, Guest
from wqlab_bench.instrument.stream import Frame, StreamError, Window
from wqlab_bench.qemu import Firmware
from wqlab_contracts.specs import Topology

from . import boots

INIT = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    FILE *commands = fopen("/commands", "r"); /* lines: file for standard input, command, argument */
    char line[300], *words[5];

    while (fgets(line, sizeof(line), commands)) {
        int count = 0;

        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
            words[count++] = word;
        words[count] = NULL;
        if (fork() == 0) {
            dup2(open(words[0], O_RDONLY), 0);
            words[0] = "/wqmark";
            execv(words[0], words);
        }
        wait(NULL);
    }
    reboot(RB_POWER_OFF);
}
"""
CONTENTS = {
    "empty": b"",
    "odd": b"123",
    "even": b"1234",
    "zeros": bytes(4097),
    "every-byte": bytes(range(256)),
    "text": b"window 1 3\nabc\n",
    "large": random.Random(1).randbytes(300_001),
}


@pytest.fixture
def wqmark(tmp_path: Path) -> Path:
    program = tmp_path / "wqmark"
    program.write_bytes(rootfs.compile_marker("x86_64", tmp_path))
    program.chmod(0o755)
    return program


def boot(commands: list[str], wqmark: Path, folder: Path, plugin: Path | None) -> tuple[Boot, bytes]:
    """Run commands of wqmark one after the other on a device, and return its boot and its console."""
    source, init = folder / "init.c", folder / "init"
    source.write_text(INIT)
    subprocess.run(["gcc", "-O2", "-static", str(source), "-o", str(init)], check=True)
    entries = [cpio.directory("dev"), cpio.character_device("dev/console", 5, 1)]
    entries += [cpio.file(path.name, path.read_bytes(), True) for path in (init, wqmark)]
    entries += [cpio.file(name, data) for name, data in CONTENTS.items()]
    entries.append(cpio.file("commands", "".join(f"{line}\n" for line in commands).encode()))
    initramfs = folder / "initramfs.cpio"
    with initramfs.open("wb") as output:
        cpio.write_archive(entries, output)
    two = Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=1)
    guest = Guest("two", "x86_64", two, "qemu64", 256)
    words = "console=ttyS0 panic=-1 nokaslr mitigations=off"
    started = Boot(boots.golden_kernel("x86_64"), initramfs, words, 1, folder / "stream", folder / "console")
    command = qemu_arguments.command(guest, started, plugin, Firmware(folder))
    subprocess.run(command, check=True, timeout=boots.LIMIT_S)
    return started, started.console.read_bytes()


@pytest.mark.device
def test_files_and_windows_arrive_unchanged(wqmark: Path, tmp_path: Path) -> None:
    sends = [f"{name} send {name}.bin" for name in CONTENTS]
    marks = [f"empty {command}" for command in ("begin", "end", "track", "begin", "end", "untrack")]
    started, _ = boot(sends[:3] + marks + sends[3:], wqmark, tmp_path, build_plugin.plugin(tmp_path))
    records = list(stream.read(started.output))
    assert [record.name if isinstance(record, Frame) else record.number for record in records] == [
        "empty.bin", "odd.bin", "even.bin", 1, 2, "zeros.bin", "every-byte.bin", "text.bin", "large.bin",
    ]  # fmt: skip
    for record in records:
        if isinstance(record, Window):
            # The end of a process, and a fork, an exec and a wait.
            assert 10_000 < record.kernel_instructions < record.instructions < 2_000_000
        else:
            assert record.data == CONTENTS[record.name.removesuffix(".bin")]


@pytest.mark.device
@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (["empty end"], "a window ended that had not begun"),
        (["empty begin", "empty begin", "empty end"], "a window began before the one before it ended"),
        (["empty begin"], "the guest ended within a window"),
        (["empty send \x01"], "a frame had no valid name"),
    ],
)
def test_broken_protocol_is_reported(wqmark: Path, tmp_path: Path, commands: list[str], message: str) -> None:
    started, _ = boot(commands, wqmark, tmp_path, build_plugin.plugin(tmp_path))
    with pytest.raises(StreamError, match=message):
        list(stream.read(started.output))


def test_nothing_happens_without_the_plugin(wqmark: Path) -> None:
    for command in ("track", "begin", "end", "untrack", "send name"):
        done = subprocess.run([wqmark, *command.split()], input=b"text", capture_output=True, check=True)
        assert done.stdout + done.stderr == b""


@pytest.mark.parametrize("words", [[], ["start"], ["send"], ["begin", "now"], ["track\n"]])
def test_invalid_command_is_refused(wqmark: Path, words: list[str]) -> None:
    done = subprocess.run([wqmark, *words], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"usage: wqmark track|begin|end|untrack")


def test_unreadable_input_is_reported(wqmark: Path, tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as write_only:
        done = subprocess.run([wqmark, "send", "name"], stdin=write_only, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"wqmark: cannot read standard input\n")
