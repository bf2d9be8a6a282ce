"""A machine with a system of its own, as the lab uses it: by SSH, `grub-reboot` and the BMC's power switch."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from wqlab_bench import qemu, rootfs
from wqlab_rehearsal import debian_system, prepare
from wqlab_rehearsal.machines import DUAL_BOOT

from .conftest import ENVIRONMENT, until

pytestmark = [pytest.mark.device, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
"""Longest time of a start on a busy host."""
GOLDEN = " wqlab.ssh="
OWN = f" root=LABEL={debian_system.LABEL} "
RESTART_GOLDEN = "(sleep 1; reboot -f) > /dev/null 2>&1 < /dev/null &"


@dataclass(frozen=True)
class Login:
    """root's SSH login on the machine."""

    key: Path
    port: int

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
        # A machine that shuts down may take a connection and never close it.
        options += ("ConnectTimeout=20", "ServerAliveInterval=5", "ServerAliveCountMax=4")
        words = ["ssh", "-F", "none", "-i", str(self.key), "-p", str(self.port)]
        words += [word for option in options for word in ("-o", option)]
        return subprocess.run([*words, "root@127.0.0.1", command], capture_output=True, text=True, check=False)

    def output(self, command: str) -> str:
        answer = self.run(command)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def until_up(self, mark: str) -> str:
        """Wait for the system that has `mark` on its command line; return its boot id."""
        while True:
            answer = self.run("cat /proc/sys/kernel/random/boot_id /proc/cmdline")
            if answer.returncode == 0 and mark in answer.stdout:
                return answer.stdout.split()[0]
            time.sleep(1)


@pytest.fixture
def settings(tmp_path: Path) -> prepare.Settings:
    cache = Path(os.environ["WQLAB_CACHE"])
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    build = ["python", "-m", "wqlab_worker.build.prepare", "kernel", "--recipe", "measure-hardware"]
    made = subprocess.run(build, check=True, stdout=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT).stdout
    kernel = Path(json.loads(made)["image"])
    golden = qemu.Golden(kernel, rootfs.build(cache), (tmp_path / "key.pub").read_text().split()[1])
    folder = tmp_path / "rehearsal"
    folder.mkdir()
    return prepare.Settings(ROOT, folder, tmp_path / "state", {"x86_64": golden}, "tcg", "local", cache)


def test_the_golden_system_starts_once(
    settings: prepare.Settings, run: Callable[[Sequence[str]], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    name = DUAL_BOOT.name
    device_type = prepare.write_data([name], settings)[name]
    programs = prepare.write_machine(name, device_type, settings)
    for program in programs:
        run(program.command)
    ports = json.loads((settings.folder / "ports.json").read_text())[name]
    login, power = Login(tmp_path / "key", ports["ssh"]), device_type.units[0].power
    assert power is not None

    def switch(command: str) -> None:
        subprocess.run(shlex.split(command), check=True, env=ENVIRONMENT)

    until(lambda: answers(ports["power"]) and answers(ports["console"]))
    with socket.create_connection(("127.0.0.1", ports["console"])) as console:
        switch(power.turn_on)
        login.until_up(OWN)
        assert login.output("systemctl --failed --quiet") == ""
        login.output("grub-reboot wqlab")
        assert login.output("grub-editenv list") == "next_entry=wqlab\n"
        login.run("reboot")
        golden = login.until_up(GOLDEN)
        seen = b""
        while f"wqlab-ready token=- boot_id={golden}".encode() not in seen:
            seen += console.recv(65536)
    login.output(RESTART_GOLDEN)
    login.until_up(OWN)
    assert login.output("grub-editenv list") == "next_entry=\n"

    # A system that is silent loses its power while it has files open for writing.
    login.output("echo kept > /root/kept && sync /root/kept && (yes > /root/written 2> /dev/null < /dev/null &)")
    switch(power.turn_off)
    switch(power.turn_on)
    login.until_up(OWN)
    assert login.output("cat /root/kept") == "kept\n"
    assert login.output("systemctl --failed --quiet") == ""


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
