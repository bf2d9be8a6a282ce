"""The kernel under test panics on an emulated machine, and the machine boots its own system again."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_bench import cpio, qemu
from wqlab_contracts.enums import Arm
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import BootKey, DeviceFacts
from wqlab_worker.backends.ab import kexec_program
from wqlab_worker.backends.ab.machine import Machine, MachineAccess
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.backends.send_image import VariantImage
from wqlab_worker.backends.ssh import SshServer, public_key_blob

from ..conftest import Golden, RecordingSink, _free_port

pytestmark = pytest.mark.device

ROOT = Path(__file__).parents[4]
KEY = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)


def own_system(golden: Golden, path: Path, blob: str) -> Path:
    """Write the root filesystem image of a system that lets a person in, and is none of the lab by its command line."""
    init = next(data for name, data in kexec_program.members(golden.rootfs) if name == "init")
    own = init.replace(b"ssh_key= address=", f"ssh_key={blob} address=".encode())
    assert own != init
    appended = io.BytesIO()
    cpio.write_archive([cpio.file("init", own, executable=True)], appended)
    data = golden.rootfs.read_bytes()
    path.write_bytes(data + b"\0" * (-len(data) % 4) + appended.getvalue())
    return path


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in ("person", "lab")}
    for path in found.values():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return found


@pytest.fixture
def said() -> list[str]:
    """Messages to the user."""
    return []


@pytest.fixture
def access(golden: Golden, tmp_path: Path, keys: dict[str, Path], said: list[str]) -> Iterator[MachineAccess]:
    kind, port = load_data(ROOT).device_types["tiny"], _free_port()
    blobs = {name: public_key_blob(path.with_suffix(".pub")) for name, path in keys.items()}
    image = own_system(golden, tmp_path / "own.cpio", blobs["person"])
    system = qemu.System(golden.kernel, image, f"console=ttyS0 {kind.kernel_arguments}")
    command = qemu.guest_command(kind, system, port, "tcg", qemu.Firmware(tmp_path / "firmware"))
    servers = {name: SshServer("127.0.0.1", port, "root", str(path)) for name, path in keys.items()}
    boot = kind.boot.model_copy(update={"kernel_arguments": kind.kernel_arguments, "variant_timeout_s": 300})
    device = DeviceFacts(
        name="guest", device_type="tiny", lab="ab", arch=kind.arch, topology=kind.topology, boot=boot, emulated=True
    )
    made = MachineAccess(
        Machine("guest", servers["person"], servers["lab"], has_systemd=False),
        device, dict.fromkeys(Arm, golden.rootfs), kexec_program.archive(golden.rootfs), RecordingSink(), Stop(),
        Wakeup(), public_key=blobs["lab"], say=said.append,
    )  # fmt: skip
    with (tmp_path / "console").open("wb") as console:
        guest = subprocess.Popen([*command, "-serial", "stdio"], stdin=subprocess.DEVNULL, stdout=console)
    yield made
    made.close()
    guest.kill()
    guest.wait()


def test_own_system_returns_after_a_panic(golden: Golden, access: MachineAccess, said: list[str]) -> None:
    access.boot_variant(KEY, VariantImage(golden.kernel, "0" * 64))
    assert access.tap.contains("Linux version")
    assert f"wqlab.token={access.token}" in access.command("cat /proc/cmdline", 60).text
    access.command("(sleep 1; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 < /dev/null &", 60)
    found = None
    while found is None or access.token in found:  # the kernel answers until it panics
        found = access.running_command_line(lambda: False, 5, 60)
    assert "wqlab.ssh=" not in found, found
    access.end_boot()
    access.restart_into_distribution()
    assert said[-1] == "guest: its own system runs again"
