"""Measure how many machines one lab host can hold: 200 outlets and consoles, without machines behind them.

    python benchmarks/rack.py [BOARDS [SESSIONS,...]]       # 200 1,10,25,50; as the lab's user, without a lab

The outlets are those of APC PDUs (25 times net-snmp's snmpd with 8 outlets), the consoles are terminals behind ser2net,
and labgrid's coordinator and exporter offer them as places. For each number of sessions, so many runs begin at once, as
the lab's worker begins them: a session switches its outlet on and reads its console, on which a line of 115,200 baud is
busy all the time. All of it is real but what prints (`rack_boards.py`).

Prints for each number: the seconds until every console is read, the power cycles a minute while runs begin and end, the
bytes that were printed and that arrived, and memory (PSS) and CPU of each group of processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from wqlab_contracts.enums import Arm, ArtifactKind, Outcome, RunPurpose
from wqlab_contracts.loading import DataFolder, load_data
from wqlab_contracts.messages import Artifact, BlockPlan, BootKey, DeviceFacts, Kernel, RunEvent, RunJob, RunResult
from wqlab_rehearsal.pdu import COMMUNITY, COUNT, OUTLETS
from wqlab_worker.backends.cancellation import Stop, canceled
from wqlab_worker.backends.labgrid import LabgridBackend
from wqlab_worker.backends.labgrid_places import sync

ROOT = Path(__file__).resolve().parents[1]
LAB = "rack"
RATE = 11_520
"""Bytes a second of a console at 115,200 baud with eight bits and a stop bit."""
HOLD_S = 20.0
"""Time for which all consoles of a round are read."""
LIMIT_S = 600.0
TICKS = os.sysconf("SC_CLK_TCK")


def free_ports(count: int, kind: socket.SocketKind) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket(socket.AF_INET, kind)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Daemons:
    """The processes of a rack, in the groups for which memory and CPU are printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.groups: dict[str, list[subprocess.Popen[bytes]]] = defaultdict(list)

    def start(self, group: str, *command: str) -> None:
        with (self.folder / f"{group}.log").open("ab") as log:
            self.groups[group].append(
                subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    def stop(self) -> None:
        for process in [each for group in self.groups.values() for each in group]:
            process.terminate()
        for process in [each for group in self.groups.values() for each in group]:
            process.wait(30)


def write_pdu(folder: Path, first: int, port: int) -> Path:
    """Write the configuration of snmpd as the PDU of the boards FIRST to FIRST + 7; return the file."""
    own = folder / f"pdu-{first}"
    own.mkdir()
    file = own / "snmpd.conf"
    program = f"{sys.executable} {ROOT / 'benchmarks/rack_boards.py'} {folder} {first} {RATE}"
    file.write_text(
        f"[snmp] persistentDir {own}\nagentaddress udp:127.0.0.1:{port}\nrwcommunity {COMMUNITY} 127.0.0.1\n"
        f"pass_persist {OUTLETS} {program}\n"
    )
    return file


@contextlib.contextmanager
def rack(folder: Path, boards: int) -> Iterator[tuple[Daemons, str]]:
    """Start the daemons; yield them and the coordinator's address."""
    daemons = Daemons(folder)
    pdus = free_ports(-(-boards // COUNT), socket.SOCK_DGRAM)
    *consoles, coordinator = free_ports(boards + 1, socket.SOCK_STREAM)
    address = f"127.0.0.1:{coordinator}"
    try:
        for number, port in enumerate(pdus):
            file = write_pdu(folder, number * COUNT, port)
            daemons.start(
                "snmpd", "snmpd", "-f", "-C", "-c", str(file), "-I", "-smux", "-p", str(file.with_name("pid"))
            )
        for board in range(boards):
            _ask(pdus[board // COUNT], board % COUNT + 1)  # starts the PDU's program, which makes the terminals
        (folder / "ser2net.yaml").write_text(
            "".join(
                f"connection: &c{board}\n  accepter: tcp,127.0.0.1,{port}\n"
                f"  connector: serialdev,{folder}/console-{board},115200n81,local\n  options: {{kickolduser: true}}\n"
                for board, port in enumerate(consoles)
            )
        )
        daemons.start("ser2net", "ser2net", "-d", "-u", "-c", "ser2net.yaml", "-P", str(folder / "ser2net.pid"))
        daemons.start("coordinator", "labgrid-coordinator", "-l", address)
        resources = {
            f"board-{board}": {
                "NetworkSerialPort": {"host": "127.0.0.1", "port": port, "protocol": "raw", "speed": 115200},
                "NetworkPowerPort": {
                    "model": "apc", "host": f"127.0.0.1:{pdus[board // COUNT]}", "index": board % COUNT + 1,
                },
                "NetworkService": {"address": "127.0.0.1", "username": "root", "port": 9},
            }
            for board, port in enumerate(consoles)
        }  # fmt: skip
        (folder / "exporter.yaml").write_text(yaml.safe_dump(resources))
        options = ("-c", address, "-n", LAB, "--hostname", "127.0.0.1")
        daemons.start("exporter", "labgrid-exporter", *options, "exporter.yaml")
        list(sync(address, LAB, list(resources)))
        yield daemons, address
    finally:
        daemons.stop()


def _ask(port: int, outlet: int) -> None:
    command = ["snmpget", "-v1", "-c", COMMUNITY, "-t", "1", "-r", "20", f"127.0.0.1:{port}", f"{OUTLETS}.{outlet}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@dataclass
class ReadConsole:
    """`EventSink` that counts the console's bytes and tells of the first ones."""

    first: threading.Event = field(default_factory=threading.Event)
    arrived: int = 0

    def event(self, event: RunEvent) -> None:
        return

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self.arrived += len(data)
        self.first.set()

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        return


def job_of(data: DataFolder, board: int, run: int) -> RunJob:
    kind, plan = data.device_types["tiny"], data.plans["xfs-fsync"]
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="kernel")
    return RunJob(
        run_id=run,
        purpose=RunPurpose.MEASURE,
        device=DeviceFacts(
            name=f"board-{board}", device_type=kind.name, lab=LAB, arch=kind.arch, topology=kind.topology,
            boot=kind.boot.model_copy(update={"golden_timeout_s": int(LIMIT_S)}), emulated=True, backend="labgrid",
        ),
        plan=plan,
        profile=plan.emulated,
        files=data.plan_files(plan.name),
        kernels={Arm.BASELINE: Kernel(recipe="measure", build_id_gnu="0" * 40, release="6.12.0", image=image)},
        blocks=[BlockPlan(block=0, arms=[Arm.BASELINE])],
        seed=1,
    )  # fmt: skip


def processes() -> dict[int, tuple[int, str]]:
    """Return parent and command line of every process, by its number."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = (parent, (entry / "cmdline").read_bytes().decode(errors="replace"))
    return found


def groups_of(daemons: Daemons) -> dict[str, list[int]]:
    """Return the processes of each group, with all their children; sessions are children of this process."""
    known = processes()
    roots = {process.pid: group for group, all_of in daemons.groups.items() for process in all_of}
    own = os.getpid()
    roots |= {pid: "sessions" for pid, (parent, line) in known.items() if parent == own and "labgrid_session" in line}
    roots |= {pid: "boards" for pid, (_, command) in known.items() if f"rack_boards.py\0{daemons.folder}" in command}
    found: dict[str, list[int]] = defaultdict(list)
    for pid in known:
        ancestor = pid
        while ancestor in known and ancestor not in roots:
            ancestor = known[ancestor][0]
        if ancestor in roots:
            found[roots[ancestor]].append(pid)
    return {**found, "worker": [own]}


def cpu_s(pids: Sequence[int]) -> float:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return total / TICKS


def memory_mib(pids: Sequence[int]) -> float:
    """Return the proportional set size: pages that processes share are counted once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def counts(folder: Path) -> dict[str, int]:
    """Return what the boards have counted, after the next time that all of them have written it."""
    began = time.time()
    files = list(folder.glob("boards-*.json"))
    while any(file.stat().st_mtime < began for file in files):
        time.sleep(0.05)
    total: dict[str, int] = defaultdict(int)
    for file in files:
        for key, value in json.loads(file.read_text()).items():
            total[key] += value
    return total


def measure(daemons: Daemons, address: str, data: DataFolder, sessions: int, round_number: int) -> None:
    """Run `sessions` sessions at once and print what they took."""
    folder = daemons.folder
    key = folder / "key"
    readers, stops = [ReadConsole() for _ in range(sessions)], [Stop() for _ in range(sessions)]
    before, began = counts(folder), time.monotonic()

    def run(board: int) -> RunResult:
        backend = LabgridBackend(
            coordinator=address, state=folder, ssh_key=key, logs=folder / "sessions", fence=round_number,
            fetch=lambda artifact: key,
        )  # fmt: skip
        stops[board].extend(time.monotonic() + LIMIT_S)
        job = job_of(data, board, round_number * 1000 + board)
        return backend.execute(job, job.blocks, readers[board], stops[board])

    with ThreadPoolExecutor(sessions) as pool:
        results = [pool.submit(run, board) for board in range(sessions)]
        for each, result in zip(readers, results, strict=True):
            while not each.first.wait(1.0):
                if result.done():
                    raise SystemExit(f"a session ended early: {result.result()}")
        reading_s = time.monotonic() - began
        groups = groups_of(daemons)
        start_cpu, start, start_arrived = (
            {name: cpu_s(pids) for name, pids in groups.items()},
            counts(folder),
            _sum(readers),
        )
        held = time.monotonic()
        time.sleep(HOLD_S)
        end, arrived = counts(folder), _sum(readers) - start_arrived
        held_s = time.monotonic() - held
        used = {name: (cpu_s(pids) - start_cpu[name]) / held_s for name, pids in groups.items()}
        memory = {name: memory_mib(pids) for name, pids in groups.items()}
        ending = time.monotonic()
        for stop in stops:
            stop.request(canceled())
        outcomes = {result.result().outcome for result in results}
        ending_s = time.monotonic() - ending
    if outcomes != {Outcome.CANCELED}:
        raise SystemExit(f"sessions ended as {outcomes}: {results[0].result().failure}")
    cycles = counts(folder)["switched_on"] - before["switched_on"]
    printed, lost = ((end[key] - start[key]) / held_s / 1000 for key in ("written", "lost"))
    print(
        f"{sessions} sessions: all consoles read after {reading_s:.1f} s, ended in {ending_s:.1f} s:"
        f" {cycles / (reading_s + ending_s) * 60:.0f} power cycles a minute; printed {printed:.0f} kB/s,"
        f" arrived {arrived / held_s / 1000:.0f} kB/s, not read {lost:.0f} kB/s"
    )
    shown = (f"{name} {memory[name]:.0f} MiB, {100 * used[name]:.0f} % CPU" for name in sorted(groups))
    print("   " + "; ".join(shown), flush=True)


def _sum(readers: Sequence[ReadConsole]) -> int:
    return sum(each.arrived for each in readers)


def main() -> None:
    boards = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rounds = [int(word) for word in (sys.argv[2] if len(sys.argv) > 2 else "1,10,25,50").split(",")]
    if max(rounds) > boards:
        raise SystemExit(f"{max(rounds)} sessions need {max(rounds)} boards; there are {boards}")
    data = load_data(ROOT)
    with tempfile.TemporaryDirectory(prefix="wqlab-rack-") as name:
        folder = Path(name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        began = time.monotonic()
        with rack(folder, boards) as (daemons, address):
            print(f"{boards} boards: places ready after {time.monotonic() - began:.1f} s")
            groups = groups_of(daemons)
            print(
                "   idle: " + "; ".join(f"{group} {memory_mib(pids):.0f} MiB" for group, pids in sorted(groups.items()))
            )
            for number, sessions in enumerate(rounds, start=1):
                measure(daemons, address, data, sessions, number)


if __name__ == "__main__":
    main()
