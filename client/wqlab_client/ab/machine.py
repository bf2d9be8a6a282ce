"""Prepare a comparison on a machine: inspect it, say what will be done there, and fill the folder."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.messages import DeviceFacts, MeasuredTopology
from wqlab_contracts.specs import BootMethod, Conditions, DeviceType, OwnSystem, Topology, Unit
from wqlab_worker.backends import probe
from wqlab_worker.backends.ab import initramfs, recovery
from wqlab_worker.backends.ab.look import COMMAND, Look, LookError, parse, refusals, warnings
from wqlab_worker.backends.ab.machine import Machine
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.backends.declare_topology import declare, describe
from wqlab_worker.backends.ssh import HOST_KEY_REFUSED, CommandResult, FixedSsh, SshServer, is_key_refused
from wqlab_worker.build.module_tree import ModuleTree

from ..errors import LabUnavailable, UsageError
from .job import chosen_plan, make_job
from .kernels import GivenKernel
from .prepare import Say, Wanted, add_kernel, note_of, root_filesystem
from .state import INITRAMFS, ROOTFS, MachineNote, Plan, StateFolder

RESTART_S = 600
"""Longest time of a restart in seconds; the firmware of a server takes minutes."""
LEAST_IMAGE_KIB = 30 << 10
"""Lower limit in KiB for the size of a kernel with its root filesystem, used before both are built."""
CONNECT_S = 20.0
LOOK_S = 60.0
ALWAYS = ("watchdog.stop_on_reboot=0", "console=tty0")
"""Kernel arguments: a started watchdog keeps running during the next kexec; messages are shown on the screen too."""
MEASURING = Conditions(governor="performance", transparent_hugepages="never", ksm=False)
"""Conditions of a machine while it measures; its restart undoes them."""


@dataclass(frozen=True)
class Seen:
    """What `look_at` found out about a machine."""

    target: str
    look: Look
    topology: Topology
    measured: MeasuredTopology
    facts: dict[str, str]

    @property
    def name(self) -> str:
        """Name of the machine in reports."""
        return _address(self.target)[1]


def own_server(target: str) -> SshServer:
    """Return the SSH server of the machine's own system, as the user's configuration reaches it. Raises UsageError."""
    user, host, port = _address(target)
    return SshServer(host, port, user, "", user_config=True, new_host_key=False)


def lab_server(target: str, key: Path) -> SshServer:
    """Return the SSH server of kernels under test, at the same address."""
    _, host, port = _address(target)
    return SshServer(host, port, "root", str(key), user_config=True)


def _address(target: str) -> tuple[str, str, int]:
    """Return user, host and port of `USER@HOST[:PORT]`; port 0 is that of the user's configuration, by default 22."""
    match = re.fullmatch(r"(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?([A-Za-z0-9_][A-Za-z0-9_.-]*)(?::([0-9]{1,5}))?", target)
    if match is None:
        raise UsageError(f"{target} is no SSH address", "write root@HOST or root@HOST:PORT")
    return match[1] or "root", match[2], int(match[3] or 0)


def look_at(target: str) -> Seen:
    """Look at the machine; nothing is changed. Raises UsageError if its answer is unusable, LabUnavailable if it does
    not answer."""
    ssh, wakeup = FixedSsh(own_server(target)), Wakeup()
    try:
        reason = ssh.connect(wakeup, lambda: False, CONNECT_S)
        if reason is not None:
            raise LabUnavailable(f"{target} does not answer by SSH: {reason}", _ssh_advice(target, reason))
        look = parse(_ask(ssh, wakeup, target, "sh -s", COMMAND.encode()).text)
        seen = probe.parse(_ask(ssh, wakeup, target, "sh -s", probe.COMMAND.encode()).stdout)
    except LookError as error:
        raise UsageError(f"{target}: {error}", "see that its login shell runs commands") from None
    except probe.ProbeError as error:
        raise UsageError(f"{target}: {error}", "its kernel must show its CPUs in /sys") from None
    finally:
        ssh.close()
    topology = declare(seen.topology)
    if topology is None:
        raise UsageError(f"{target}: its CPUs have a layout that no device type describes", "choose another machine")
    return Seen(target, look, topology, seen.topology, seen.environment)


def _ask(ssh: FixedSsh, wakeup: Wakeup, target: str, command: str, stdin: bytes) -> CommandResult:
    running = ssh.start(command, wakeup, stdin)
    wakeup.wait_for(lambda: running.done, LOOK_S)
    if running.answer is None:
        running.kill()
        raise LabUnavailable(f"{target} did not answer in {LOOK_S:.0f} s", "try again")
    return running.answer


def _ssh_advice(target: str, reason: str) -> str:
    if is_key_refused(reason):
        return f"let your key in there: `ssh-copy-id {target}`; root's password is not asked for"
    if HOST_KEY_REFUSED in reason:
        return f"log in once by hand, to check its host key: `ssh ssh://{target}`"
    return f"see that `ssh ssh://{target}` works without a password"


_CONFIG = "zcat /proc/config.gz 2>/dev/null || cat /boot/config-$(uname -r) /lib/modules/$(uname -r)/config 2>/dev/null"


def configuration(target: str) -> tuple[str, list[str]]:
    """Return the configuration of the kernel that runs on a machine, and the modules that it has loaded.

    Raises UsageError if the machine has no file with it, LabUnavailable if it does not answer.
    """
    ssh, wakeup = FixedSsh(own_server(target)), Wakeup()
    try:
        reason = ssh.connect(wakeup, lambda: False, CONNECT_S)
        if reason is not None:
            raise LabUnavailable(f"{target} does not answer by SSH: {reason}", _ssh_advice(target, reason))
        config = _ask(ssh, wakeup, target, "sh -s", _CONFIG.encode()).text
        loaded = _ask(ssh, wakeup, target, "sh -s", b"cat /proc/modules").text
    finally:
        ssh.close()
    if "CONFIG_64BIT=y" not in config:
        raise UsageError(f"{target} has no file with the configuration of its kernel", "give one with --config FILE")
    return config, [line.partition(" ")[0] for line in loaded.splitlines()]


def check(seen: Seen, image_kib: int, kernels: Sequence[GivenKernel]) -> None:
    """Raise UsageError if kernels cannot be started on the machine, with everything that prevents it."""
    found = [f"{reason}; {fix}" for reason, fix in refusals(seen.look, image_kib)]
    driver = seen.look.one("driver_module") or seen.look.one("driver")
    found += [
        f"{kernel.name} has no driver {driver} for its network card; give its modules with --modules"
        for kernel in kernels
        if not _has_driver(kernel, driver)
    ]
    if found:
        raise UsageError(f"{seen.target} cannot be used: {'. '.join(found)}", "nothing was changed on it")


def _has_driver(kernel: GivenKernel, driver: str) -> bool:
    """Return False if a kernel is known to lack a driver, both as a module and built in."""
    name = driver.replace("-", "_")
    if kernel.modules is None:
        text = kernel.config.read_text(errors="replace") if kernel.config is not None else ""
        # The option has another name for some drivers: then nothing is known.
        return not re.search(rf"^(CONFIG_{name.upper()}=m|# CONFIG_{name.upper()} is not set)$", text, re.MULTILINE)
    tree = ModuleTree(kernel.modules)
    builtin = tree.builtin.replace("-", "_")
    return name in tree.files or f"/{name}.ko" in builtin or not builtin


def _is_known_to_have(kernel: GivenKernel, module: str) -> bool:
    tree = ModuleTree(kernel.modules) if kernel.modules is not None else None
    return tree is not None and (module in tree.files or f"/{module}.ko" in tree.builtin.replace("-", "_"))


def watchdogs(look: Look, kernels: Iterable[GivenKernel]) -> list[str]:
    """Return the watchdog drivers that all kernels have. A watchdog would restart a kernel that cannot feed it."""
    return [each for each in look.watchdog_modules if all(_is_known_to_have(kernel, each) for kernel in kernels)]


def what_will_happen(seen: Seen, plan: str, blocks: int, wanted: Wanted) -> list[str]:
    """Return lines that describe the machine, what is done there and what can go wrong."""
    look, one = seen.look, seen.look.one
    dogs = ", ".join(f"{each.identity or each.module}" for each in look.watchdogs)
    log = f"; its log is read from the firmware ({one('pstore')}) then" if look.keeps_crash_log else ""
    releases = [kernel.release for kernel in wanted.kernels.values()]
    boots = "1 boot" if blocks == 1 else f"{blocks} boots"
    boots += " of each kernel, in turn" if len(releases) > 1 else ""
    lines = [
        f"{seen.target}: {one('system')}, Linux {one('release')}, {seen.facts.get('machine', 'unknown machine')}",
        f"CPUs: {seen.facts.get('cpu model', 'unknown')}, {describe(seen.topology)}",
        f"{int(one('memory_kib') or 0) / 2**20:.0f} GiB; disks {', '.join(look.all('disk')) or 'none'}, not written",
        f"network: {one('card')} ({one('driver')}), {one('address')}/{one('prefix')}, kept by the kernels under test",
        f"{boots}: kexec into {' or '.join(releases)}, with a root filesystem in memory",
        f"each boot measures plan {plan}",
        f"its services end with the first boot; at the end it restarts into {one('system') or 'its own system'}",
        f"it restarts some seconds after a panic{log}",
    ]
    if dogs and watchdogs(look, wanted.kernels.values()):
        lines.append(f"after a hang its watchdog ({dogs}) restarts it within {recovery.FIRST_WATCHDOG_S // 60} minutes")
    elif dogs:
        lines.append(f"its watchdog ({dogs}) is not used: a kernel lacks its driver; after a hang, press its button")
    return [*lines, *(f"WARNING: {each}" for each in warnings(look))]


def prepare_machine(
    folder: StateFolder, data: DataFolder, wanted: Wanted, seen: Seen, *, cache: Path, root: Path | None, say: Say
) -> Plan:
    """Fill a new folder for kernels that a machine boots, and return its plan; nothing is changed on the machine.

    Raises UsageError for what the user can correct, LabUnavailable if the root filesystem cannot be made.
    """
    device_type = _device_type(seen)
    plan = chosen_plan(data, wanted.plan, device_type, wanted.scenarios)
    base = root_filesystem(root, cache, say)
    check(seen, sum(_kib(each.image) for each in wanted.kernels.values()) + _kib(base), list(wanted.kernels.values()))
    folder.make_key()
    firmware = _firmware(seen, wanted, say)
    kernels = {
        arm: add_kernel(folder, arm, kernel, plan.modules, base, seen.look.first_modules, firmware, is_sent=True)
        for arm, kernel in wanted.kernels.items()
    }
    image_kib = max(_kib(folder.kernel(arm, INITRAMFS)) for arm in kernels)
    check(seen, image_kib, [])
    folder.keep(base, ROOTFS)
    seed = secrets.randbits(48)
    job = make_job(
        data, device_type, _device(seen, device_type), plan, kernels, seed=seed, blocks=wanted.blocks,
        settings=wanted.settings, parameters=wanted.parameters,
    )  # fmt: skip
    made = Plan(
        created_at=datetime.now(UTC),
        target=seen.target,
        device_type=device_type,
        kernels={arm: note_of(folder, arm, kernel) for arm, kernel in wanted.kernels.items()},
        job=job,
        machine=MachineNote(
            name=seen.name,
            has_systemd=seen.look.one("init") == "systemd",
            watchdogs=watchdogs(seen.look, wanted.kernels.values()),
            warnings=warnings(seen.look),
        ),
    )
    folder.write_plan(made)
    return made


def new_warnings(target: str, note: MachineNote) -> list[str]:
    """Return the warnings about a machine that its folder does not have. Raises what `look_at` raises."""
    return [each for each in warnings(look_at(target).look) if each not in note.warnings]


def machine_of(folder: StateFolder, plan: Plan) -> Machine:
    """Return the machine of a folder's plan. Raises UsageError if it has none."""
    if plan.machine is None:
        raise UsageError(f"{folder.path} names no machine", "start again")
    return Machine(
        name=plan.machine.name,
        own=own_server(plan.target),
        lab=lab_server(plan.target, folder.key),
        has_systemd=plan.machine.has_systemd,
        watchdogs=plan.machine.watchdogs,
        restart_s=RESTART_S,
        warnings=plan.machine.warnings,
    )


def _kib(path: Path) -> int:
    return path.stat().st_size >> 10


def _device_type(seen: Seen) -> DeviceType:
    virtual = seen.look.is_virtual
    return DeviceType(
        name=seen.name,
        summary=", ".join(filter(None, (seen.facts.get("machine", ""), seen.facts.get("cpu model", "")))) or seen.name,
        arch="x86_64",
        topology=seen.topology,
        # The clock of a virtual machine is no evidence of speed.
        rehearsal=virtual,
        conditions=Conditions() if virtual else MEASURING,
        boot=BootMethod(variant_timeout_s=300, golden_timeout_s=RESTART_S),
        units=[Unit(name=seen.name)],
    )


def _device(seen: Seen, device_type: DeviceType) -> DeviceFacts:
    words = [
        device_type.variant_arguments,
        seen.look.address_argument,
        initramfs.module_arguments(seen.look.first_modules),
        *ALWAYS,
        # A driver that finds its watchdog running sets this timeout, by default half a minute.
        *(f"{each}.heartbeat={recovery.FIRST_WATCHDOG_S}" for each in seen.look.watchdog_modules),
    ]
    return DeviceFacts(
        name=seen.name,
        device_type=device_type.name,
        lab="ab",
        arch=device_type.arch,
        topology=device_type.topology,
        boot=device_type.boot.model_copy(update={"kernel_arguments": " ".join(filter(None, words))}),
        conditions=device_type.conditions,
        emulated=False,
        own_system=OwnSystem(timeout_s=RESTART_S),
    )


def _firmware(seen: Seen, wanted: Wanted, say: Say) -> dict[str, bytes]:
    """Return the firmware files on the machine that the drivers of its network card need, as path below /lib/firmware
    -> content."""
    names: set[str] = set()
    for kernel in wanted.kernels.values():
        tree = ModuleTree(kernel.modules) if kernel.modules else None
        for module in seen.look.first_modules if tree else ():
            if tree is not None and module in tree.files:
                names |= {name for each in (module, *tree.needed(module)) for name in tree.infos[each].firmware}
    found = {}
    ssh, wakeup = FixedSsh(own_server(seen.target)), Wakeup()
    try:
        if names and ssh.connect(wakeup, lambda: False, CONNECT_S) is None:
            for name in sorted(names):
                found.update(_firmware_file(ssh, wakeup, seen.target, name))
    finally:
        ssh.close()
    if found:
        say(f"firmware of its network card: {', '.join(found)}")
    return found


def _firmware_file(ssh: FixedSsh, wakeup: Wakeup, target: str, name: str) -> dict[str, bytes]:
    """Return path below /lib/firmware -> content; empty if the machine has no such file."""
    for suffix in ("", ".zst", ".xz"):
        command = f"cat {shlex.quote(f'/lib/firmware/{name}{suffix}')}"
        answer = _ask(ssh, wakeup, target, "sh -s", command.encode())
        if answer.status == 0:
            return {f"{name}{suffix}": answer.stdout}
    return {}
