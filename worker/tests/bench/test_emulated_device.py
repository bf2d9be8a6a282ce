"""An emulated device with its outlet, console and SSH. Needs QEMU and the lab's golden kernel."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from wqlab_bench import topology
from wqlab_bench.bench import Bench, Settings
from wqlab_bench.device_types import load_device_types
from wqlab_bench.qemu import Golden
from wqlab_contracts.bench_addresses import Published
from wqlab_contracts.specs import DeviceType, Topology

from .conftest import Client

ROOT = Path(__file__).resolve().parents[3]
READY = re.compile(rb"^wqlab-ready token=- boot_id=([0-9a-f-]{36})\r?$", re.MULTILINE)
LAYOUT = """
cd /sys/devices/system
cat cpu/cpu*/topology/thread_siblings_list | sort -u | paste -sd ' '
cat node/node*/cpulist | paste -sd ' '
cat cpu/cpu*/cache/index3/shared_cpu_list | sort -u | paste -sd ' '
"""
TOOLS = """
for tool in fio kexec mkfs.xfs dmsetup xfs_io lscpu blkdiscard taskset chrt; do
    $tool --help > /dev/null 2>&1
    [ $? != 127 ] || echo missing $tool
done
echo 016 | awk '{ print $1 + 0 }'
"""


@pytest.fixture
def golden(tmp_path: Path) -> Iterator[tuple[Golden, Path]]:
    """The golden system prepared by `make test`, with a new SSH key."""
    prepared = Path(os.environ.get("WQLAB_STATE", "/nonexistent")) / "golden.json"
    if not prepared.exists():
        pytest.fail(f"no {prepared}: set WQLAB_STATE and WQLAB_CACHE and run `python -m wqlab_lab.prepare` first")
    files = json.loads(prepared.read_text())["x86_64"]
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    blob = key.with_suffix(".pub").read_text().split()[1]
    base64.b64decode(blob, validate=True)
    yield Golden(Path(files["kernel"]), Path(files["rootfs"]), blob), key


class RunningBench:
    """A running bench with one device, and the actions of its user."""

    def __init__(self, published: Published, key: Path, http: aiohttp.ClientSession) -> None:
        [self.name] = published.devices
        self.device = published.devices[self.name]
        self._published, self._key, self._http = published, key, http

    async def power(self, value: str) -> None:
        async with self._http.put(self.device.power_url, data=value) as answer:
            assert answer.status == 200, await answer.text()

    async def faults(self, *faults: dict[str, object]) -> None:
        async with self._http.put(
            f"{self._published.http}/devices/{self.name}/faults", json={"faults": faults}
        ) as answer:
            assert answer.status == 200, await answer.text()

    async def console(self) -> Client:
        return await Client.connect(int(self.device.console.rpartition(":")[2]))

    async def ssh(self, command: str, timeout_s: float | None = None) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            "ssh", "-i", str(self._key), "-p", str(self.device.ssh_port), "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes",
            "root@127.0.0.1", command,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = await asyncio.wait_for(process.communicate(), timeout_s)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        return process.returncode or 0, output.decode()

    async def is_reachable(self) -> bool:
        """Return True if SSH works within a few seconds."""
        try:
            return (await self.ssh("true", 5))[0] == 0
        except TimeoutError:
            return False


def one_device(name: str, layout: Topology | None = None) -> dict[str, DeviceType]:
    device_type = load_device_types(ROOT)[name]
    changes: dict[str, object] = {"units": device_type.units[:1]}
    if layout is not None:
        changes["topology"] = layout
    return {name: device_type.model_copy(update=changes)}


def with_bench(types: dict[str, DeviceType], golden: tuple[Golden, Path], tmp_path: Path, scenario: object) -> None:
    async def run() -> None:
        bench = Bench(types, Settings(tmp_path, {"x86_64": golden[0]}, tmp_path, "local", "tcg", 1))
        published = await bench.start()
        try:
            async with aiohttp.ClientSession() as http:
                await scenario(RunningBench(published, golden[1], http))  # type: ignore[operator]
        finally:
            await bench.stop()
        assert not (tmp_path / "bench" / "bench.json").exists()

    (tmp_path / "bench").mkdir()
    asyncio.run(run())


async def boot_id(client: Client) -> str:
    """Wait for the next ready line and return its boot id."""
    await client.until(b"wqlab-ready ")
    await client.until(b"\n")
    return READY.findall(client.seen.replace(b"\r\n", b"\n"))[-1].decode()


@pytest.mark.device
def test_device_boots_and_shows_injected_faults(golden: tuple[Golden, Path], tmp_path: Path) -> None:
    image = hashlib.sha256(golden[0].rootfs.read_bytes()).hexdigest()
    log = tmp_path / "bench" / "consoles" / "tiny-1.log"

    async def scenario(bench: RunningBench) -> None:
        client = await bench.console()
        await bench.power("1")
        first = await boot_id(client)
        status, output = await bench.ssh("cat /proc/sys/kernel/random/boot_id; sha256sum < /sys/firmware/initrd; nproc")
        assert status == 0, output
        assert output.split() == [first, image, "-", "2"]
        # The guest reaches no network.
        assert (await bench.ssh("wget -q -T 3 -O- http://10.0.2.2/"))[0] != 0
        assert (await bench.ssh(TOOLS))[1] == "16\n"

        await bench.faults({"kind": "hang"})
        assert not await bench.is_reachable()
        await bench.faults()
        assert await bench.ssh("echo back") == (0, "back\n")

        await bench.faults({"kind": "panic", "once": True})
        await client.until(b"Kernel panic - not syncing")
        await bench.power("0")
        await bench.power("1")
        assert await boot_id(client) != first
        await bench.faults({"kind": "network_cut"})
        assert not await bench.is_reachable()
        await bench.faults()
        assert await bench.ssh("echo back") == (0, "back\n")
        await bench.power("0")
        await client.drain()
        assert log.with_name(f"{log.name}.1").read_bytes() + log.read_bytes() == client.seen

    with_bench(one_device("tiny"), golden, tmp_path, scenario)


@pytest.mark.device
def test_guest_is_confined(golden: tuple[Golden, Path], tmp_path: Path) -> None:
    """QEMU runs under a seccomp filter and in namespaces of its own."""

    async def scenario(bench: RunningBench) -> None:
        client = await bench.console()
        await bench.power("1")
        await boot_id(client)
        (process,) = processes_of("qemu-system-x86_64")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        assert status["Seccomp"].strip() == "2"
        assert status["NoNewPrivs"].strip() == "1"
        assert status["NSpid"].split()[1:] == ["1"]
        assert int(status["CapBnd"], 16) == 0
        assert await bench.ssh("echo up") == (0, "up\n")
        await bench.power("0")
        assert not process.exists()

    with_bench(one_device("tiny"), golden, tmp_path, scenario)


def processes_of(program: str) -> list[Path]:
    """Return the folders in /proc of the descendants of this process that run `program`."""
    folders = {int(folder.name): folder for folder in Path("/proc").glob("[0-9]*")}
    parents = {}
    for pid, folder in folders.items():
        with suppress(OSError):
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return [folders[pid] for pid in family if (folders[pid] / "comm").read_text().strip() == program[:15]]


@pytest.mark.device
@pytest.mark.nightly  # test_findings.py of tests/scenarios also depends on this numbering
def test_smt_last_numbering_survives_kexec(golden: tuple[Golden, Path], tmp_path: Path) -> None:
    layout = Topology(
        sockets=2, l3_per_socket=2, cores_per_l3=2, threads_per_core=2, numa_nodes=2, numbering="smt_last"
    )
    expected = [
        " ".join(f"{a},{b}" for a, b in topology.siblings(layout)),
        "0-3,8-11 4-7,12-15",
        "0-1,8-9 2-3,10-11 4-5,12-13 6-7,14-15",
    ]

    async def scenario(bench: RunningBench) -> None:
        client = await bench.console()
        await bench.power("1")
        await boot_id(client)
        assert sorted((await bench.ssh(LAYOUT))[1].splitlines()[0].split()) == sorted(expected[0].split())
        kernel = shutil.copy(golden[0].kernel, tmp_path / "image")
        key, port = str(golden[1]), str(bench.device.ssh_port)
        copy = await asyncio.create_subprocess_exec(
            "scp", "-q", "-i", key, "-P", port, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
            str(kernel), "root@127.0.0.1:/lab/image",
        )  # fmt: skip
        assert await copy.wait() == 0
        # Without wqlab.ip the guest uses DHCP, as on hardware.
        arguments = f"console=ttyS0,115200 panic=-1 tsc=reliable nokaslr wqlab.token=t1 wqlab.ssh={golden[0].ssh_key}"
        load = f"kexec -l /lab/image --initrd=/sys/firmware/initrd --command-line='{arguments}'"
        assert (await bench.ssh(load))[0] == 0
        client.send(b"kexec -e\n")
        await client.until(b"network: eth0: 10.0.2.15/24")
        await client.until(b"wqlab-ready token=t1 boot_id=")
        siblings, nodes, caches = (await bench.ssh(LAYOUT))[1].splitlines()
        assert sorted(siblings.split()) == sorted(expected[0].split())
        assert nodes == expected[1]
        assert sorted(caches.split()) == sorted(expected[2].split())

    with_bench(one_device("tiny", layout), golden, tmp_path, scenario)
