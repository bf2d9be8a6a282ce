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
from wqlab_contracts.specs import Cluster, CpuArch, Topology

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


TWO_CPUS: dict[CpuArch, Topology] = {
    "x86_64": Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=1),
    "arm64": Topology(sockets=1, l3_per_socket=0, threads_per_core=1, clusters=[Cluster(cores=2, capacity=1024)]),
}


def boot(arch: CpuArch, commands: list[str], folder: Path, plugin: Path | None) -> Boot:
    """Run commands of wqmark one after the other on a device with two CPUs."""
    source, init = folder / "init.c", folder / "init"
    source.write_text(INIT)
    subprocess.run([f"{rootfs.TRIPLET[arch]}-gcc", "-O2", "-static", str(source), "-o", str(init)], check=True)
    entries = [cpio.directory("dev"), cpio.character_device("dev/console", 5, 1)]
    entries.append(cpio.file("init", init.read_bytes(), True))
    entries.append(cpio.file("wqmark", rootfs.compile_marker(arch, folder), True))
    entries += [cpio.file(name, data) for name, data in CONTENTS.items()]
    entries.append(cpio.file("commands", "".join(f"{line}\n" for line in commands).encode()))
    initramfs = folder / "initramfs.cpio"
    with initramfs.open("wb") as output:
        cpio.write_archive(entries, output)
    guest = Guest("two", arch, TWO_CPUS[arch], boots.MODEL[arch], 256, instruction_ns=8)
    words = f"console={boots.CONSOLE[arch]} panic=-1 nokaslr mitigations=off"
    started = Boot(boots.golden_kernel(arch), initramfs, words, 1, folder / "stream", folder / "console")
    command = qemu_arguments.command(guest, started, plugin, Firmware(folder))
    subprocess.run(command, check=True)
    return started


SENDS = [f"{name} send {name}.bin" for name in CONTENTS]


@pytest.mark.device
@pytest.mark.parametrize("arch", ["x86_64", pytest.param("arm64", marks=pytest.mark.nightly)])
def test_files_and_windows_arrive_unchanged(arch: CpuArch, tmp_path: Path) -> None:
    marks = [f"empty {command}" for command in ("begin", "end", "track", "begin", "end", "untrack")]
    started = boot(arch, SENDS[:3] + marks + SENDS[3:], tmp_path, build_plugin.plugin(tmp_path, arch))
    *records, blocks = stream.read(started.output)
    assert isinstance(blocks, stream.Blocks)
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
def test_plugin_does_not_change_a_boot_before_tracking(tmp_path: Path) -> None:
    folders = [tmp_path / "with", tmp_path / "without"]
    for folder in folders:
        folder.mkdir()
    with_plugin = boot("x86_64", SENDS, folders[0], build_plugin.plugin(tmp_path, "x86_64"))
    without = boot("x86_64", SENDS, folders[1], None)
    # The console has the time of each message in microseconds, that is, its number of instructions.
    assert with_plugin.console.read_bytes() == without.console.read_bytes()


@pytest.mark.device
def test_broken_protocol_is_reported(tmp_path: Path) -> None:
    marks = [f"empty {command}" for command in ("end", "begin", "begin", "end", "send \x01", "begin")]
    started = boot("x86_64", marks, tmp_path, build_plugin.plugin(tmp_path, "x86_64"))
    lines = started.output.read_text().splitlines()
    assert [line for line in lines if line.startswith("lost ")] == [
        "lost a window ended that had not begun",
        "lost a window began before the one before it ended",
        "lost a frame had no valid name",
        "lost the guest ended within a window",
    ]
    with pytest.raises(StreamError, match="a window ended that had not begun"):
        list(stream.read(started.output))


@pytest.fixture
def wqmark(tmp_path: Path) -> Path:
    """wqmark for this machine."""
    program = tmp_path / "wqmark"
    program.write_bytes(rootfs.compile_marker("x86_64", tmp_path))
    program.chmod(0o755)
    return program


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
