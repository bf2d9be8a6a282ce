"""Prepare the folder of a comparison in an emulator: kernels, initramfs, key and plan."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from wqlab_bench import accelerator, qemu_program, rootfs
from wqlab_bench.qemu import Golden
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import Arm, ArtifactKind
from wqlab_contracts.messages import Kernel
from wqlab_worker.backends.ab import initramfs
from wqlab_worker.backends.ssh import public_key_blob
from wqlab_worker.build.module_tree import ModuleError, ModuleTree

from ..errors import LabUnavailable, UsageError
from .job import chosen_plan, emulated_device, emulated_type, make_job
from .kernels import GivenKernel
from .state import CHANGES, CONFIG, IMAGE, INITRAMFS, MODULES, KernelNote, Plan, StateFolder

Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What to compare, from the command line."""

    plan: str
    kernels: Mapping[Arm, GivenKernel]
    """Baseline and candidate, or only a baseline, whose settings are compared."""
    blocks: int | None = None
    scenarios: Sequence[str] = ()
    settings: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


def prepare_emulator(
    folder: StateFolder, data: DataFolder, wanted: Wanted, topology: str, *, cache: Path, root: Path | None, say: Say
) -> Plan:
    """Fill a new folder for kernels that an emulator boots, and return its plan. `root`: the lab's root filesystem
    image; None: make it, unless it is in the cache.

    Raises UsageError for what the user can correct, LabUnavailable if the root filesystem cannot be made.
    """
    device_type = emulated_type(data, topology)
    plan = chosen_plan(data, wanted.plan, device_type, wanted.scenarios)
    _need_emulator()
    base = root_filesystem(root, cache, say)
    folder.make_key()
    kernels = {
        arm: add_kernel(folder, arm, kernel, plan.modules, base, initramfs.VIRTIO)
        for arm, kernel in wanted.kernels.items()
    }
    device = emulated_device(device_type, initramfs.module_arguments(initramfs.VIRTIO))
    seed = secrets.randbits(48)
    job = make_job(
        data, device_type, device, plan, kernels, seed=seed, blocks=wanted.blocks, settings=wanted.settings,
        parameters=wanted.parameters,
    )  # fmt: skip
    first = folder.kernel(Arm.BASELINE, IMAGE), folder.kernel(Arm.BASELINE, INITRAMFS)
    say("looking for KVM")
    chosen = accelerator.choose("auto", Golden(*first, public_key_blob(folder.key.with_suffix(".pub"))), cache)
    made = Plan(
        created_at=datetime.now(UTC),
        target="qemu",
        device_type=device_type,
        kernels={arm: note_of(folder, arm, kernel) for arm, kernel in wanted.kernels.items()},
        job=job,
        accelerator=chosen,
    )
    folder.write_plan(made)
    return made


def note_of(folder: StateFolder, arm: Arm, kernel: GivenKernel) -> KernelNote:
    """Return the note about a kernel that ab.json keeps beside its files."""
    return KernelNote(
        name=kernel.name,
        commit=kernel.commit,
        has_changes=bool(kernel.changes),
        has_config=folder.kernel(arm, CONFIG).exists(),
        reproducer=kernel.reproducer,
        compiler=kernel.compiler,
    )


def add_kernel(  # noqa: PLR0917 - a kernel, and what its initramfs has
    folder: StateFolder,
    arm: Arm,
    given: GivenKernel,
    needed: Sequence[str],
    base: Path,
    first: Sequence[str],
    firmware: Mapping[str, bytes] | None = None,
    *,
    is_sent: bool = False,
) -> Kernel:
    """Copy a kernel into the folder, write its initramfs on the root filesystem `base`, and return it for the job.

    `needed`: modules that the plan takes along. `first`: modules that are loaded before the network comes up.
    `is_sent`: the initramfs goes over a network. Raises UsageError if the modules cannot be read.
    """
    image = folder.add(given.image, arm, IMAGE, ArtifactKind.KERNEL)
    tree = None
    if given.modules is not None:
        tree = ModuleTree(given.modules, initramfs.SKIPPED, named=(*first, *needed))
    own = None
    compressed = is_sent and _unpacks_gzip(given)
    try:
        target = folder.kernel(arm, INITRAMFS)
        initramfs.write(base, given.release, tree, target, firmware, compressed=compressed)
        if needed and tree is not None:
            archive = folder.kernel(arm, MODULES)
            archive.write_bytes(tree.archive())
            own = folder.add(archive, arm, MODULES, ArtifactKind.MODULES)
    except ModuleError as error:
        raise UsageError(f"the modules of {given.name}: {error}") from None
    if given.changes:
        folder.kernel(arm, CHANGES).write_bytes(given.changes)
    if given.config is not None:
        folder.add(given.config, arm, CONFIG, ArtifactKind.CONFIG)
    built = [folder.add(path, arm, each.name, each.kind) for each, path in given.built]
    layout = next((each for each in built if each.kind is ArtifactKind.WORKQUEUE_LAYOUT), None)
    modules = {
        Path(each.name).stem: each
        for each in built
        if each.kind is ArtifactKind.MODULE and Path(each.name).stem in needed
    }
    return Kernel(
        build_id_gnu=given.build_id_gnu,
        release=given.release,
        image=image,
        modules=modules,
        failed_modules={name: reason for name, reason in given.failed_modules.items() if name in needed},
        own_modules=own,
        workqueue_layout=layout,
        recipe=given.recipe,
    )


def _unpacks_gzip(given: GivenKernel) -> bool:
    """Return True if a kernel's configuration says that it unpacks an initramfs compressed by gzip."""
    return given.config is not None and "\nCONFIG_RD_GZIP=y" in given.config.read_text(errors="replace")


def root_filesystem(given: Path | None, cache: Path, say: Say) -> Path:
    """Return the root filesystem image that devices boot: `given`, or the one that is made and cached here.

    Raises UsageError if `given` does not exist, LabUnavailable if none can be made on this host.
    """
    if given is not None:
        if not given.is_file():
            raise UsageError(f"--rootfs {given}: no such file", "make one with `wqlab-bench rootfs` on a Debian host")
        return given
    say("making the root filesystem from Debian packages, unless it is in the cache")
    try:
        return rootfs.build(cache)
    except (rootfs.RootfsError, OSError) as error:
        raise LabUnavailable(
            f"the root filesystem cannot be made on this host: {error}",
            "it is made by apt, dpkg-deb and gcc of Debian 12; on another host give one with --rootfs FILE",
        ) from None


def _need_emulator() -> None:
    if qemu_program.file("x86_64") is None:
        raise UsageError(f"there is no {qemu_program.PROGRAM['x86_64']} on this host", "install qemu-system-x86")
