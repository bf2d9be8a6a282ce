"""Boots that are shared with other hosts, without emulators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from wqlab_contracts.enums import ArtifactKind, JobState
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.shared_boots import BootFiles, ShareAnswer, SharedBootView
from wqlab_worker.backends.instrumented import sharing
from wqlab_worker.backends.instrumented.boots import Boots
from wqlab_worker.backends.instrumented.emulator import Emulator, Seeded
from wqlab_worker.backends.instrumented.sharing import Offer, Sharing
from wqlab_worker.claims.server import sha256_of

from .test_boots import PLAN, A, B, HeldEmulator

FILES = BootFiles(
    console=Artifact(sha256="c" * 64, size=1, kind=ArtifactKind.BOOT_FILE, name="console"),
    output=Artifact(sha256="d" * 64, size=1, kind=ArtifactKind.BOOT_FILE, name="output"),
    seconds=3.0,
)


class Hosts:
    """The server and the other hosts. `held` and `made` are their boots."""

    def __init__(self) -> None:
        self.count = 1
        self.held: set[Seeded] = set()
        self.made: set[Seeded] = set()
        self.failure: Exception | None = None
        self.needed: list[Seeded] = []
        self.uploads: list[str] = []
        self.fetched: list[str] = []
        self.asked = threading.Condition()
        self.messages = 0

    def share(self, offer: Offer) -> ShareAnswer:
        with self.asked:
            self.messages += 1
            self.asked.notify_all()
            if self.failure:
                raise self.failure
            assert (offer.emulator, offer.limit_s) == ("QEMU 1", 60.0)
            keys = [(boot.arm, boot.seed) for boot in offer.boots]
            if not self.count or not offer.initramfs:
                return ShareAnswer(hosts=self.count, boots=[])
            self.needed = keys
            return ShareAnswer(hosts=self.count, boots=[self._view(key) for key in keys])

    def _view(self, key: Seeded) -> SharedBootView:
        made = key in self.made
        state = JobState.FINISHED if made else JobState.RUNNING if key in self.held else JobState.QUEUED
        return SharedBootView(arm=key[0], seed=key[1], state=state, holder="far/1", files=FILES if made else None)

    def upload(self, path: Path, name: str) -> Artifact:
        self.uploads.append(name)
        return Artifact(sha256=sha256_of(path), size=1, kind=ArtifactKind.BOOT_FILE, name=name)

    def fetch(self, artifact: Artifact, folder: Path) -> Path:
        self.fetched.append(artifact.name)
        return folder / artifact.name

    def interrupt(self) -> None:
        pass

    def wait_messages(self, more: int = 2) -> None:
        """Wait until `more` messages were answered."""
        with self.asked:
            target = self.messages + more
            assert self.asked.wait_for(lambda: self.messages >= target)


Start = Callable[[Hosts], Sharing]


@pytest.fixture
def emulator() -> HeldEmulator:
    return HeldEmulator()


@pytest.fixture
def boots(emulator: HeldEmulator) -> Iterator[Boots]:
    boots = Boots(cast("Emulator", emulator), 1)
    boots.plan([*PLAN, (A, 9)])
    emulator.wait_started(1)
    yield boots
    boots.close()


@pytest.fixture
def start(boots: Boots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setattr(sharing, "INTERVAL_S", 0.01)
    monkeypatch.setattr(sharing, "ALONE_INTERVAL_S", 0.01)
    image = tmp_path / "initramfs"
    image.write_bytes(b"the same for both kernels")

    def start(hosts: Hosts) -> Sharing:
        return Sharing(
            boots,
            hosts,
            PLAN,
            initramfs={A: image, B: image},
            layouts={},
            emulator=lambda: "QEMU 1",
            folder=tmp_path,
            limit_s=60.0,
        )

    return start


def test_boots_that_are_not_begun_are_shared_and_results_used(start: Start, boots: Boots) -> None:
    hosts = Hosts()
    with start(hosts):
        hosts.wait_messages()
        # This host makes the first one, and the last is a repetition that no block has.
        assert hosts.needed == [(B, 0), (A, 1), (B, 1)]
        assert hosts.uploads == ["initramfs-baseline"], "the other kernel's has the same content"
        hosts.made = {(B, 1)}
        made = boots.boot((B, 1)).result()
        hosts.wait_messages()
        assert hosts.needed == [(B, 0), (A, 1)]
    assert (made.status, made.timed_out, made.seconds) == (0, False, 3.0)
    assert hosts.fetched == ["console", "output"]


def test_boot_that_another_host_makes_stays_shared_when_this_host_begins_with_it(
    start: Start, boots: Boots, emulator: HeldEmulator
) -> None:
    hosts = Hosts()
    hosts.held = {(B, 0)}
    with start(hosts):
        hosts.wait_messages()
        emulator.end((A, 0))
        assert emulator.wait_started(2) == [(A, 0), (B, 0)], "this host does not wait"
        hosts.wait_messages()
        assert hosts.needed == [(B, 0), (A, 1), (B, 1)]
        hosts.made = {(B, 0)}
        assert boots.boot((B, 0)).result().seconds == 3.0
        assert emulator.wait_started(3)[2] == (A, 1)
        hosts.wait_messages()
        assert hosts.needed == [(B, 1)], "the one that this host has begun with is withdrawn"


def test_without_other_hosts_nothing_is_uploaded(start: Start, boots: Boots, emulator: HeldEmulator) -> None:
    hosts = Hosts()
    hosts.count = 0
    with start(hosts):
        hosts.wait_messages()
        assert hosts.uploads == []
        hosts.count = 1  # a host appears
        hosts.wait_messages(3)
        assert hosts.uploads == ["initramfs-baseline"]


@pytest.mark.parametrize("error", [RuntimeError("the server is gone"), ValueError("422")], ids=repr)
def test_run_continues_alone_when_the_server_fails(
    start: Start, boots: Boots, emulator: HeldEmulator, error: Exception
) -> None:
    hosts = Hosts()
    hosts.failure = error
    with start(hosts):
        hosts.wait_messages()
        for boot in PLAN:
            emulator.end(boot)
        assert [boots.boot(boot).result().status for boot in PLAN] == [0] * 4
        hosts.failure = None
        hosts.wait_messages()
