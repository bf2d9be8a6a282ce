"""Start a separate lab for the end-to-end tests, with its own device types and the shared cache."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, sync_playwright

from wqlab_client.client import Client
from wqlab_contracts import bench_addresses

from .browser import Person, start_chromium
from .mounts import MountNamespace
from .processes import family_of_lab, processes_of_lab, survivors
from .user_git import Topic, git_daemon

MakePerson = Callable[..., Person]
ROOT = Path(__file__).resolve().parents[2]
SERIES = ROOT / "tests/series"
NOOP = SERIES / "noop.mbox"
EXAMPLE = ROOT / "kernels/examples/flush-lock-runs.mbox"

# Devices that differ in number of CPUs, L3 layout and CPU numbering, to which the plans react:
# (sockets, l3_per_socket, cores_per_l3, threads_per_core, numa_nodes, numbering).
FOUR_L3 = (1, 4, 1, 1, 1, "contiguous")
TWO_SOCKETS_SMT_LAST = (2, 1, 2, 2, 2, "smt_last")
BIG_LITTLE = "chromebook-biglittle"
INSTRUMENTED = "instrumented-tiny"
ARM64 = "arm64" in os.environ.get("WQLAB_ARCHITECTURES", "")
"""Whether the tests' labs have the arm64 device: in the nightly suite only, because it needs kernels of its own."""
COUNTED_TARGET = ("--target", f"xfs-fsync@{INSTRUMENTED}", "--param", "file_kib=640", "--layouts", "1")
"""Arguments of a submission to an instrumented device, with a short window and the kernels of other submissions."""
WORK_LATENCY = ("percpu", "highpri", "bh", "unbound-loaded", "delayed", "rescuer")
"""Scenarios of plan work-latency in the submission of each plan."""
REDUCED_PARAMETERS = {
    "xfs-fsync": {"jobs": 4, "mounts": 1},
    "dm-crypt-affinity": {"disk_mib": 32, "total_ios": 32, "traced_ios": 400},
    "fan-out": {"disk_mib": 32, "total_ios": 32, "traced_ios": 100},
    "aio-migration": {"file_mib": 12},
    "netperf-stream": {"runtime_s": 1, "traced_runtime_s": 1},
    "max-active": {"steps": 4, "rounds": 3, "greedy_works": 100, "polite_works": 10, "shared_works": 32},
    "work-latency": {"works": 200, "loaded_works": 100, "rescuer_works": 3},
    "isolation": {"changes": 3, "spin_s": 1},
    "hotplug": {"cycles": 6},
    "xfs-inodegc": {"files": 100, "traced_files": 100},
    "wireguard": {"runtime_s": 1, "traced_runtime_s": 1},
    "verity-erofs": {"data_mib": 4, "reads": 128, "traced_reads": 128},
    "nvme-tcp": {"total_ios": 200, "traced_ios": 200},
    "hackbench": {"loops": 40},
    "rt-app": {"requests": 20},
    "rt-app-scopes": {"requests": 20},
    "btrfs": {"file_mib": 2, "traced_file_mib": 2, "old_mib": 4},
}
"""Parameters of the emulated profiles that shorten the tests. Shares that vary by chance need some hundred works."""


class Lab:
    """Running lab of the end-to-end tests."""

    def __init__(self, environment: dict[str, str], data: Path, git_url: str) -> None:
        self.environment = environment
        self.data = data
        self.git_url = git_url
        """URL of a user's git server; it serves the repository in `WQLAB_LOCAL_GIT_PATHS` as linux.git."""
        self._reports: dict[int, dict[str, Any]] = {}

    @property
    def url(self) -> str:
        return self.environment["WQLAB_URL"]

    def client(self) -> Client:
        return Client(self.url, self.environment["WQLAB_TOKEN"])

    def fault(self, device: str, *faults: dict[str, Any]) -> None:
        """Inject faults into an emulated device; without arguments, remove them."""
        bench = bench_addresses.read(Path(self.environment["WQLAB_STATE"]))
        answer = httpx.put(f"{bench.http}/devices/{device}/faults", json={"faults": list(faults)}, timeout=None)
        answer.raise_for_status()

    def wqlab(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        result = subprocess.run(
            ["wqlab", *arguments], env=self.environment, text=True, capture_output=True, check=False
        )
        message = f"wqlab {' '.join(arguments)} ended with {result.returncode}:\n{result.stdout}{result.stderr}"
        assert result.returncode in codes, message
        return result.stdout

    def refused(self, *arguments: str) -> str:
        """Run a command that must end with a usage error; return its message."""
        result = subprocess.run(
            ["wqlab", *arguments], env=self.environment, text=True, capture_output=True, check=False
        )
        assert result.returncode == 2, result
        return result.stderr

    def submit(self, *arguments: str) -> int:
        return int(json.loads(self.wqlab("submit", "--json", *arguments))["id"])

    def finish(self, submission: int, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """Wait until a submission is finished and return its JSON report, the same one at each call."""
        if submission not in self._reports:
            self.wqlab("watch", str(submission), codes=codes)
            self._reports[submission] = json.loads(self.wqlab("report", str(submission), "--format", "json"))
        return self._reports[submission]


def comparisons(report: dict[str, Any], **values: str) -> list[dict[str, Any]]:
    """Return the report's comparisons that have these values."""
    found = [c for target in report["targets"] for c in target["comparisons"]]
    return [c for c in found if all(c[key] == value for key, value in values.items())]


def reduce_work(data: Path) -> None:
    for plan, parameters in REDUCED_PARAMETERS.items():
        path = data / "testplans" / plan / "plan.yaml"
        spec = yaml.safe_load(path.read_text())
        for profile in ("emulated", "instrumented"):
            if profile in spec:
                spec[profile]["parameters"] |= parameters
        path.write_text(yaml.safe_dump(spec, sort_keys=False))


def write_device_type(
    data: Path, name: str, layout: tuple[int, int, int, int, int, str], units: int = 1, **more: Any
) -> None:
    """Write a device type's YAML file. `more`: keys besides topology, emulation and units."""
    keys = ("sockets", "l3_per_socket", "cores_per_l3", "threads_per_core", "numa_nodes", "numbering")
    spec = {
        "name": name,
        "summary": f"test device {name}",
        "arch": "x86_64",
        "topology": dict(zip(keys, layout, strict=True)),
        "emulation": {"memory_mib": 2048},
        "units": [{"name": f"{name}-{n}"} for n in range(1, units + 1)],
        **more,
    }
    (data / "device-types" / f"{name}.yaml").write_text(yaml.safe_dump(spec))


@contextmanager
def one_start_at_a_time() -> Iterator[None]:
    """Wait until no other process of this test run starts a lab: two labs that start at once may choose one port."""
    with (Path(tempfile.gettempdir()) / f"wqlab-e2e-start-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_data(state: Path, *device_types: str) -> Path:
    """Copy the data folders with only these device types, because each device is checked before its first run.

    The default tree is that of the golden kernel, which is then the baseline: no test has to build another one, unless
    it is about other trees.
    """
    data = state / "data"
    for folder in ("device-types", "kernels", "testplans"):
        shutil.copytree(ROOT / folder, data / folder)
    make_golden_tree_default(data)
    for path in (data / "device-types").glob("*.yaml"):
        if path.stem not in {"common", *device_types}:
            path.unlink()
    reduce_work(data)
    return data


def make_golden_tree_default(data: Path) -> None:
    path = data / "kernels/trees.yaml"
    trees = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**trees, "default": trees["golden"]}, sort_keys=False))


def write_fragile_devices(data: Path) -> None:
    """Add two devices for injected faults: no other tests use them, and the second one takes over.

    Their timeout is short, but several times what a boot takes beside the other tests.
    """
    write_device_type(data, "fragile", (1, 1, 2, 1, 1, "contiguous"), units=2, boot={"golden_timeout_s": 60})


@contextmanager
def running_lab(
    state: Path, data: Path, settings: Mapping[str, str], place: MountNamespace | None = None, git_url: str = ""
) -> Iterator[Lab]:
    """Start a lab in `state`, in the mount namespace `place` if given; at the end, require that no process is left."""
    environment = {**os.environ, "WQLAB_STATE": str(state), "WQLAB_DATA_DIR": str(data), "NO_COLOR": "1", **settings}
    # The lease of a killed lab worker expires after this time, and its runs are queued again.
    environment["WQLAB_LEASE_S"] = "60"
    visible = place.path(state) if place else state

    def wqlab_lab(command: str) -> None:
        words = ["wqlab-lab", command]
        subprocess.run(place.command(*words) if place else words, env=environment, check=True)

    try:
        with one_start_at_a_time():
            wqlab_lab("up")
        user = {
            "WQLAB_URL": f"http://127.0.0.1:{(visible / 'run/api.port').read_text()}",
            "WQLAB_TOKEN": (visible / "keys/admin.token").read_text().strip(),
        }
        yield Lab({**environment, **user}, data, git_url)
    finally:
        family = family_of_lab(state)
        wqlab_lab("stop")
        if keep := os.environ.get("WQLAB_KEEP_LOGS"):
            shutil.copytree(visible / "log", Path(keep) / "-".join(state.parts[1:]), dirs_exist_ok=True)
        subprocess.run(["wqlab-lab", "down"], env=environment, check=True)  # outside, where no volume is in use
        left = [*processes_of_lab(state), *survivors(family)]
        shutil.rmtree(state, ignore_errors=True)
    assert not left, f"`wqlab-lab down` left processes behind: {left}"


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Start the lab with the devices that its tests need."""
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny", INSTRUMENTED, *([BIG_LITTLE] if ARM64 else []))
    write_device_type(data, "two-sockets-smt-last", TWO_SOCKETS_SMT_LAST)
    # The timeout ends the wait for a kernel that hangs. With one device, the next run uses the same one.
    write_device_type(data, "lone", (1, 1, 2, 1, 1, "contiguous"), boot={"variant_timeout_s": 90})
    write_fragile_devices(data)
    (state / "git").mkdir()
    settings = {"WQLAB_LOCAL_GIT_PATHS": str(state / "git/linux.git")}
    with git_daemon(state / "git") as git_url:
        settings["WQLAB_PRIVATE_GIT_HOSTS"] = git_url.removeprefix("git://")
        with running_lab(state, data, settings, git_url=git_url) as started:
            yield started


@pytest.fixture(scope="session")
def topic(lab: Lab) -> Topic:
    return Topic(lab, NOOP)


@pytest.fixture(scope="session")
def study(lab: Lab) -> int:
    """Submit a settings study for a device with four L3 domains, added to the running lab; return the submission's id.

    It must be the first submission, because adding the device restarts the bench.
    """
    write_device_type(lab.data, "four-l3", FOUR_L3)
    subprocess.run(["wqlab-lab", "up"], env=lab.environment, check=True)
    return lab.submit(
        *("--settings-only", "--target", "dm-crypt-affinity@four-l3", "--scenario", "HIGH", "--blocks", "2"),
    )


@pytest.fixture(scope="session")
def tripled(lab: Lab) -> int:
    """Submit a series that takes a lock three times instead of once; return the submission's id."""
    return lab.submit("--mbox", str(SERIES / "inverted.mbox"), "--target", "xfs-fsync@tiny", "--no-trace")


@pytest.fixture(scope="session")
def broken(lab: Lab) -> int:
    """Submit a series that does not compile; return the submission's id."""
    return lab.submit("--mbox", str(SERIES / "does-not-compile.mbox"), "--target", "xfs-fsync@tiny")


@pytest.fixture(scope="session")
def conflict(lab: Lab) -> int:
    """Submit a series that does not apply; return the submission's id."""
    return lab.submit("--mbox", str(SERIES / "does-not-apply.mbox"), "--target", "xfs-fsync@tiny")


@pytest.fixture(scope="session")
def branch(lab: Lab, topic: Topic) -> int:
    """Submit a branch without effect; return the submission's id."""
    return lab.submit(*("--git", str(topic.path), "--ref", "topic", "--target", "xfs-fsync@tiny", "--blocks", "1"))


def scenarios(*names: str) -> tuple[str, ...]:
    """Return the arguments of a submission that select these scenarios of the target before."""
    return tuple(word for name in names for word in ("--scenario", name))


def submit_each_plan(lab: Lab, device_type: str) -> tuple[int, int]:
    """Submit one short block of each plan that the other fixtures do not run.

    Return the ids of a series, in two boots of each plan, and of a study of settings, in one boot of each plan.
    """
    study = lab.submit(
        *("--settings-only", "--blocks", "1"),
        *("--target", f"aio-migration@{device_type}", "--scenario", "rand-overwrite"),
        *("--setting", "base_slice=default,granularity=default", "--setting", "base_slice=4ms,granularity=default"),
        *("--target", f"fan-out@{device_type}", "--scenario", "ONE", "--scenario", "FOURFOLD"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
        *("--target", f"work-latency-scopes@{device_type}", "--scenario", "idle"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cpu,strict=1"),
        *("--target", f"queue-rate@{device_type}", "--setting", "scope=system", "--setting", "scope=cpu"),
        *("--target", f"rt-app-scopes@{device_type}", "--scenario", "HIGH"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cpu,strict=1"),
    )
    series = lab.submit(
        *("--mbox", str(NOOP), "--blocks", "1"),
        *("--target", f"netperf-stream@{device_type}", "--scenario", "udp-lo-64", "--scenario", "tcp-netns-4096"),
        *("--target", f"cmwq-load@{device_type}", "--scenario", "wl0-S"),
        *("--target", f"work-latency@{device_type}", *scenarios(*WORK_LATENCY)),
        *("--target", f"max-active@{device_type}", "--setting", "max_active=4"),
        *("--target", f"isolation@{device_type}", "--target", f"hotplug@{device_type}"),
        *("--target", f"xfs-inodegc@{device_type}"),
        *("--target", f"hackbench@{device_type}", *scenarios("pipes", "sockets-loaded")),
        *("--target", f"rt-app@{device_type}"),
    )
    return series, study


@pytest.fixture(scope="session")
def each_plan(lab: Lab) -> tuple[int, int]:
    return submit_each_plan(lab, "tiny")


@pytest.fixture(scope="session")
def bound(lab: Lab) -> tuple[int, int]:
    """Submit plans that bind jobs and memory disks, for a device with two NUMA nodes; return the submissions' ids.

    The scripts read both back and fail if they are not obeyed.
    """
    device_type = "two-sockets-smt-last"
    placed = lab.submit(
        *("--settings-only", "--target", f"dm-crypt-affinity@{device_type}", "--scenario", "HIGH"),
        *("--setting", "scope=system,strict=0", "--setting", "scope=cache,strict=1"),
        *("--param", "disk_nodes=1", "--param", "job_cpus=node:1", "--blocks", "1"),
    )
    streams = lab.submit(
        *("--mbox", str(NOOP), "--target", f"netperf-stream@{device_type}", "--scenario", "udp-lo-64"),
        *("--setting", "endpoints=other_node", "--blocks", "1"),
    )
    return placed, streams


@pytest.fixture(scope="session")
def big_little(lab: Lab) -> int:
    """Submit a settings study for the emulated arm64 device; return the submission's id."""
    settings = [word for setting in ("system,strict=0", "cache,strict=1") for word in ("--setting", f"scope={setting}")]
    return lab.submit(
        *("--settings-only", "--target", f"dm-crypt-affinity@{BIG_LITTLE}", "--scenario", "HIGH", *settings),
        *("--blocks", "1"),
    )


@pytest.fixture(scope="session")
def counted(lab: Lab) -> int:
    """Submit the example series for two seeds of an instrumented device; return the submission's id."""
    return lab.submit("--mbox", str(EXAMPLE), *COUNTED_TARGET, "--blocks", "2")


@pytest.fixture(scope="session")
def submissions(
    lab: Lab,
    study: int,
    tripled: int,
    branch: int,
    broken: int,
    conflict: int,
    each_plan: tuple[int, int],
    counted: int,
) -> dict[str, int]:
    """Submit everything at once, as several users would; each test waits for its own submission."""

    def tiny(series: str, *more: str) -> int:
        return lab.submit("--mbox", str(SERIES / series), "--target", "xfs-fsync@tiny", *more)

    return {
        "settings": study,
        # A listed series in test_listening.py has the traced boots that follow a verdict.
        "example": lab.submit("--mbox", str(EXAMPLE), "--target", "xfs-fsync@two-sockets-smt-last", "--no-trace"),
        "tripled": tripled,
        "each plan": each_plan[0],
        "counted": counted,
        "branch": branch,
        "conflict": conflict,
        "broken": broken,
        "panic": tiny("panics-at-boot.mbox", "--blocks", "1"),
    }


@pytest.fixture(scope="session")
def passwords(lab: Lab) -> dict[str, str]:
    """Create a user of each role; return role -> password."""
    made = {}
    headers = {"Authorization": f"Bearer {lab.environment['WQLAB_TOKEN']}"}
    with httpx.Client(base_url=lab.url, headers=headers, timeout=None) as api:
        for role in ("viewer", "submitter", "maintainer", "admin"):
            answer = api.post("/api/v1/users", json={"name": f"a-{role}", "role": role})
            answer.raise_for_status()
            made[role] = answer.json()["password"]
    return made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start Chromium for one module: while Playwright runs, nothing else in the process can have an event loop."""
    with sync_playwright() as playwright:
        browser = start_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def person(lab: Lab, chromium: Browser, passwords: dict[str, str]) -> Iterator[MakePerson]:
    """Create users with separate browsers, signed in by role or not at all.

    An error on a browser's console fails the module's last test.
    """
    people = []

    def make(role: str | None = None, **browser: bool) -> Person:
        made = Person(chromium, lab.url, **browser)
        people.append(made)
        if role is not None:
            made.sign_in(f"a-{role}", passwords[role])
        return made

    yield make
    errors = [error for each in people for error in each.errors]
    for each in people:
        each.close()
    assert not errors, f"errors on the browsers' consoles: {errors}"


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Return the folder for screenshots."""
    return Path(os.environ.get("WQLAB_ARTIFACTS", Path(os.environ["WQLAB_CACHE"]) / "artifacts")) / "screenshots"
