"""`wqlab ab root@HOST` on an emulated Debian: the effect on the machine, and the messages to the user.

Each test prints the messages with their times; docs/own-machine.md has the table of events.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wqlab_bench import rootfs
from wqlab_rehearsal import debian_system, ext4

from .conftest import ENVIRONMENT, free_port, until

pytestmark = [pytest.mark.device, pytest.mark.nightly]

KERNEL = "deb:linux-image-6.1.0-50-amd64"
MEMORY_MIB = 3072
_CONFIG = """\
Host *
	IdentityFile {folder}/login
	UserKnownHostsFile {folder}/known_hosts
	StrictHostKeyChecking accept-new
"""


@dataclass
class Debian:
    """An emulated PC with an e1000e card and memory for crash logs, on which Debian is installed."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def install(self, image: Path) -> None:
        root = self.folder / "root.ext4"
        subprocess.run(["cp", "--sparse=always", image, root], check=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "login"], check=True)
        ext4.write(root, {"/root/.ssh/authorized_keys": self.folder / "login.pub"}, self.folder)
        for name in ("vmlinuz", "initrd.img"):
            target = subprocess.run(
                ["debugfs", "-R", f"stat /{name}", root], capture_output=True, text=True, check=True
            ).stdout
            link = next(line for line in target.splitlines() if "Fast link dest" in line).split('"')[1]
            subprocess.run(["debugfs", "-R", f"dump /{link} {self.folder / name}", root], check=True)
        (self.folder / "config").write_text(_CONFIG.format(folder=self.folder))
        program = self.folder / "bin" / "ssh"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.folder}/config "$@"\n')
        program.chmod(0o755)

    def start(
        self, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], watchdog: str, arguments: str = ""
    ) -> None:
        """Start it, and wait until it answers. `watchdog`: i6300esb, iTCO_wdt, or empty for none."""
        dog = ["-device", watchdog] if watchdog == "i6300esb" else []
        self.process = run([
            "qemu-system-x86_64", "-nodefaults", "-display", "none", "-machine", "q35" if watchdog else "pc",
            "-accel", "tcg,thread=single",
            # Time passes with its instructions, so that no kernel takes a busy host for broken hardware or a lockup.
            "-icount", "shift=2",
            # Without erms pages are cleared by words, which is the faster way in an emulator.
            "-cpu", "max,-erms", "-smp", "1", "-m", str(MEMORY_MIB),
            # ERST: memory of the firmware for crash logs.
            "-object", f"memory-backend-file,id=erst,size=64K,share=on,mem-path={self.folder / 'erst'}",
            "-device", "acpi-erst,memdev=erst",
            "-kernel", str(self.folder / "vmlinuz"), "-initrd", str(self.folder / "initrd.img"),
            "-append", f"root=LABEL={debian_system.LABEL} ro console=ttyS0 {arguments}",
            "-drive", f"if=none,id=disk,format=raw,file={self.folder / 'root.ext4'}",
            "-device", "ahci,id=ahci", "-device", "ide-hd,drive=disk,bus=ahci.0",
            "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22", "-device", "e1000e,netdev=net,id=card",
            # iTCO is a part of q35, and may reset it only without this strap.
            "-global", "ICH9-LPC.noreboot=off", "-action", "watchdog=reset",
            "-serial", f"file:{self.folder / 'console'}",
            "-monitor", f"unix:{self.folder / 'monitor'},server=on,wait=off", *dog,
        ])  # fmt: skip
        until(lambda: self.ssh("login", "true").returncode == 0)

    def ssh(self, key: str | Path, command: str) -> subprocess.CompletedProcess[str]:
        options = ["-o", "ConnectTimeout=20", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
        options += ["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes"]
        words = ["ssh", "-F", "none", "-i", str(self.folder / key), "-p", str(self.port), *options]
        return subprocess.run([*words, "root@127.0.0.1", command], capture_output=True, text=True, check=False)

    def login(self, run: Callable[[Sequence[str]], subprocess.Popen[bytes]]) -> None:
        """Log in as a user at a terminal, who stays, once Debian lets one in."""
        words = [str(self.folder / "bin" / "ssh"), "-tt", "-p", str(self.port), "root@127.0.0.1", "sleep 100000"]
        run(["sh", "-c", f"until {shlex.join(words)}; do sleep 1; done"])
        until(lambda: "pts/" in self.ssh("login", "who").stdout)

    def boots(self) -> int:
        """Return how often Debian was started."""
        return (self.folder / "console").read_bytes().count(b"Command line: root=LABEL")

    def monitor(self, command: str) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.folder / "monitor"))
            client.sendall(f"{command}\n".encode())
            answer = b""
            while answer.count(b"(qemu) ") < 2:  # the greeting has one
                answer += client.recv(4096)


@dataclass
class Ab:
    """A running `wqlab ab`, and its output."""

    machine: Debian
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            print(f"{time.monotonic() - self.began:7.0f} s  {line.rstrip()}", flush=True)

    def until(self, words: str) -> None:
        until(lambda: any(words in line for line in self.said) or self.process.poll() is not None)
        assert any(words in line for line in self.said), self.said[-20:]

    def in_kernel(self, command: str) -> None:
        """Run a command on the kernel under test."""
        key = next(self.machine.folder.glob("wqlab-ab-*/key"))
        self.machine.ssh(key, f"({command}) > /dev/null 2>&1 < /dev/null &")


@pytest.fixture
def machine(tmp_path: Path) -> Debian:
    found = Debian(tmp_path, free_port())
    found.install(debian_system.build(Path(os.environ["WQLAB_CACHE"])))
    return found


@pytest.fixture
def ab(machine: Debian) -> Iterator[Callable[..., Ab]]:
    started: list[Ab] = []

    def start(*arguments: str) -> Ab:
        command = [str(Path(sys.executable).parent / "wqlab"), "ab", *arguments]
        if "--resume" not in arguments:
            image = rootfs.build(Path(os.environ["WQLAB_CACHE"]))
            command += [f"root@127.0.0.1:{machine.port}", "--yes", "--rootfs", str(image), "--kernels", KERNEL, KERNEL]
            command += ["--plan", "hackbench", "--scenario", "pipes", "--blocks", "1"]
        path = f"{machine.folder / 'bin'}:{ENVIRONMENT['PATH']}"
        process = subprocess.Popen(
            command, cwd=machine.folder, env={**ENVIRONMENT, "PATH": path}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        made = Ab(machine, process)
        threading.Thread(target=made.read, daemon=True).start()
        started.append(made)
        return made

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_panic_is_read_from_the_firmware_and_the_block_repeated(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "i6300esb")
    running = ab()
    running.until("baseline: pipes")
    running.in_kernel("echo c > /proc/sysrq-trigger")
    running.until("its own system runs again")
    assert running.process.wait() == 0
    report = next(machine.folder.glob("wqlab-ab-*/report.txt")).read_text()
    assert "sysrq triggered crash" in report.lower(), report


@pytest.mark.parametrize("watchdog", ["i6300esb", "iTCO_wdt", ""])
def test_hang_is_ended_by_the_watchdog_or_by_hand(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab], watchdog: str
) -> None:
    """The watchdog is no longer fed, and the network is silent."""
    machine.start(run, watchdog)
    running = ab()
    running.until("baseline: pipes")
    running.in_kernel("killall -STOP watchdog; ip link set dev eth0 down")
    if not watchdog:
        running.until("press its button")
        machine.monitor("system_reset")
    running.until("its own system runs again")
    assert running.process.wait() == 0


def test_kernel_that_never_answers_is_ended_by_the_watchdog(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "i6300esb")
    running = ab()
    running.until("its watchdog runs")
    machine.monitor("set_link card off")
    began = machine.boots()
    until(lambda: machine.boots() > began)
    machine.monitor("set_link card on")
    running.until("its own system runs again")
    assert running.process.wait() == 0


def test_user_who_logs_in_after_a_panic_loses_nothing(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "i6300esb")
    running = ab()
    running.until(": pipes")
    running.in_kernel("echo c > /proc/sysrq-trigger")
    machine.login(run)
    assert running.process.wait() == 4
    running.until("logged in: root on pts/0")
    assert "pts/0" in machine.ssh("login", "who").stdout


def test_network_that_dies_is_ended_by_the_watchdog(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "i6300esb")
    running = ab()
    running.until("baseline: pipes")
    machine.monitor("set_link card off")
    running.until("waiting for")
    machine.monitor("set_link card on")
    running.until("its own system runs again")
    assert running.process.wait() == 0


def test_interrupted_run_is_resumed_unless_a_user_works_there(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "i6300esb")
    running = ab()
    running.until("baseline: pipes")
    running.process.send_signal(signal.SIGINT)
    running.until("its own system runs again")
    assert running.process.wait() == 130
    machine.login(run)
    refused = ab("--resume")
    refused.until("WARNING: logged in: root on pts/0")
    assert refused.process.wait() == 2
    resumed = ab("--resume", "--yes")
    resumed.until("its own system runs again")
    assert resumed.process.wait() == 0


def test_refusals_name_the_way_out(
    machine: Debian, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], ab: Callable[..., Ab]
) -> None:
    machine.start(run, "", "lockdown=integrity")
    machine.ssh("login", "sysctl -w kernel.kexec_load_disabled=1; mount -o remount,size=20M /dev/shm")
    refused = ab()
    refused.until("kexec is switched off until its next boot")
    assert refused.process.wait() == 2
    refused.until("the kernel is locked down: none [integrity] confidentiality")
    refused.until("/dev/shm has 20 MiB free")
    machine.ssh("login", "rm /root/.ssh/authorized_keys")
    refused = ab("--name", "again")
    refused.until(shlex.join(["ssh-copy-id", f"root@127.0.0.1:{machine.port}"]))
    assert refused.process.wait() == 4
