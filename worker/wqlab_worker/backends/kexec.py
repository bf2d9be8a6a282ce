"""Boot a labgrid device into a variant: off -> golden system -> variant, each state reached through the one before.

Each state waits for events: the ready line on the console, a fatal report, the end of a command, a cancellation. A
timeout ends only a wait that no event ended.
"""

from __future__ import annotations

import enum
import secrets
import shlex
import time
from collections.abc import Callable

import attr
from labgrid import target_factory
from labgrid.strategy import Strategy

from wqlab_contracts.enums import DeviceStep
from wqlab_contracts.messages import BootKey, DeviceFacts

from . import answering_system, device_access, diagnose_boot, labgrid_ssh  # noqa: F401 - registers the SSH driver
from .console_tap import ConsoleTap, Wakeup
from .device_access import GOLDEN, BootTimes, DeviceAccess
from .interface import LOAD_TIMEOUT_S, Cancel, kexec_options
from .power import power_errors, power_time_limit
from .send_image import IMAGE_ON_DEVICE, VariantImage, send_image
from .verify_boot import infrastructure_failure

SETTLE_S = 3.0
"""After this time without power nothing is left to print: buffers of a BMC and console server are empty."""
REOPEN_S = 120.0
"""Longest time to open a console again whose connection broke; a BMC restarts in a minute or two."""
UPTIME_SLACK_S = 5.0
"""Largest difference between the device's clock and the worker's during a boot."""


class Status(enum.Enum):
    """State of the device, in the order in which a boot passes them."""

    unknown = 0
    off = 1
    """Without power; a device with an operating system of its own: left to that (`own_system.py`)."""
    golden = 2
    variant = 3


@target_factory.reg_driver
@attr.s(eq=False)
class KexecStrategy(DeviceAccess, Strategy):  # type: ignore[misc]
    """labgrid strategy for one device.

    Set `device`, `tap`, `wakeup`, `cancel` and `place_lost` before the first transition.
    """

    bindings = {"power": "PowerProtocol", "console": "ConsoleProtocol", "ssh": "DeviceSSHDriver"}
    device: DeviceFacts = attr.ib(default=None)
    tap: ConsoleTap = attr.ib(default=None)
    wakeup: Wakeup = attr.ib(default=None)
    cancel: Cancel = attr.ib(default=None)
    public_key: str = attr.ib(default="")
    place_lost: Callable[[], str | None] = attr.ib(default=lambda: None)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.status = Status.unknown
        self.times = BootTimes()
        self.token = ""
        self.golden_boot_id = ""
        self.jumped = False
        self.stage = DeviceStep.POWER

    def boot_variant(self, key: BootKey, image: VariantImage) -> None:
        self.transition(Status.variant, key=key, image=image)

    def end_boot(self) -> None:
        self.transition(Status.off)

    def type_line(self) -> None:
        self.console.write(b"\n")

    def transition(self, to: Status, *, key: BootKey | None = None, image: VariantImage | None = None) -> None:
        """Bring the device to state `to`, through the states below it.

        `golden` needs `key`; `variant` needs `key` and `image`. Raises DeviceFailure if a state is not reached or the
        run is interrupted, ValueError if an argument is missing.
        """
        if to is Status.off:
            self._switch_off()
        elif to is Status.golden:
            if key is None:
                raise ValueError("a boot needs its key")
            started = self._start_boot()
            if self.status is not Status.off:
                self.transition(Status.off)
            self._boot_golden(key, started)
        elif to is Status.variant:
            if image is None:
                raise ValueError("a variant needs its image")
            if self.status is not Status.golden:
                self.transition(Status.golden, key=key)
            self._upload(image)
            self._kexec()
        else:
            raise ValueError(f"cannot go to {to.name}")
        self.status = to

    # --- off ----------------------------------------------------------------------------------------------------

    def _switch_off(self) -> None:
        self.cut_power()

    def cut_power(self) -> None:
        """End SSH and the boot, and switch the power off. Raises DeviceFailure."""
        self.ssh.close()
        self.target.activate(self.power)
        with power_time_limit("off"), power_errors("off"):
            self.power.off()
        self.tap.end_boot()

    def restore_power(self) -> None:
        """Switch the power on. Raises DeviceFailure."""
        self.target.activate(self.power)
        with power_time_limit("on"), power_errors("on"):
            self.power.on()

    # --- golden system ------------------------------------------------------------------------------------------

    def _start_boot(self) -> float:
        """Reset times and stage; return the start time (monotonic seconds)."""
        self.times = BootTimes()
        self.jumped = False
        self.stage = DeviceStep.POWER
        if self.tap.read_error:
            self.tap.reopen(self.cancel.is_set, REOPEN_S)
        return time.monotonic()

    def _boot_golden(self, key: BootKey, started: float) -> None:
        """Boot the device, which is in state `off`, into the golden system. The boot began at `started` (monotonic).

        The power is switched on with the console already open.
        """
        # The device must stay off this long to be cold; no event reports a discharged capacitor.
        self.wait(lambda: False, min(SETTLE_S, self.device.boot.power_off_s))
        self.tap.count_while_off()
        self.wait(lambda: False, max(0.0, self.device.boot.power_off_s - SETTLE_S))
        self.status = Status.unknown
        self.tap.begin_boot(key)
        power_on_time = time.monotonic()
        self.restore_power()
        self.stage = DeviceStep.GOLDEN
        self._await_golden(power_on_time)
        self.times.golden = time.monotonic() - started

    def _await_golden(self, power_on_time: float) -> None:
        """Wait for the golden system's ready line and connect by SSH. `power_on_time` is in monotonic seconds."""
        started, timeout_s = time.monotonic(), self.device.boot.golden_timeout_s
        ssh_said: str | None = None
        while (left := self.time_left(started, timeout_s)) > 0:
            self.wait(
                lambda: self.tap.ready is not None or self.tap.fatal is not None, min(left, device_access.QUIET_S)
            )
            self.raise_if_fatal(GOLDEN)
            if self.tap.ready:
                self.connect(GOLDEN)
                self.golden_boot_id = self.tap.ready.boot_id
                return
            if time.monotonic() - self.tap.last_output >= device_access.QUIET_S:
                ssh_said = self.ssh.connect(self.wakeup, self.interrupted, min(5.0, left))
                if ssh_said is None and (found := self._check_cold_boot(time.monotonic() - power_on_time)):
                    self.golden_boot_id = found
                    return
            self.raise_if_interrupted()
        raise diagnose_boot.golden_not_up(self.tap, timeout_s, ssh_said)

    def _check_cold_boot(self, since_power_on_s: float) -> str | None:
        """Return the boot id of a golden system that printed no ready line; None if the own system still shuts down.

        Raises DeviceFailure if the system has been up for longer than the power: then the power switch does not act on
        this device.
        """
        answer = self.command(answering_system.READ_SYSTEM, 10)
        if self.device.own_system and answering_system.still_runs(answer, since_power_on_s):
            return None
        found = answering_system.read_system(answer)
        if found is None:
            raise infrastructure_failure(
                "the golden system answers by SSH, but its uptime is unreadable",
                excerpt=(answer.text + answer.stderr_text)[-2000:],
                suspect=True,
            )
        if found.up_s > since_power_on_s + UPTIME_SLACK_S or found.is_variant:
            raise diagnose_boot.never_off(found.up_s, since_power_on_s, found.command_line)
        return found.boot_id

    # --- variant ------------------------------------------------------------------------------------------------

    def _kexec(self) -> None:
        """Load the uploaded image with `kexec -l`, jump into it and wait for its ready line."""
        started = time.monotonic()
        self.token = secrets.token_hex(8)
        boot = self.device.boot
        answer = self.command(
            shlex.join(
                [
                    *("kexec", "-l", IMAGE_ON_DEVICE, f"--initrd={boot.rootfs}"),
                    *(f"--command-line={self.command_line()}", *kexec_options(self.device)),
                ]
            ),
            LOAD_TIMEOUT_S,
        )
        if answer.status:
            raise infrastructure_failure(
                f"kexec did not load the image (exit status {answer.status})",
                excerpt=(answer.stderr_text + answer.text)[-4000:],
                suspect=answer.transport_lost,
                of_variant=not answer.transport_lost,
            )
        self._jump()
        self.await_variant(boot.variant_timeout_s)
        self.times.kexec = time.monotonic() - started

    def _upload(self, image: VariantImage) -> None:
        self.stage = DeviceStep.KEXEC
        started = time.monotonic()
        send_image(self.command, self.device, image, of_variant=False)
        self.times.upload = time.monotonic() - started

    def _jump(self) -> None:
        """Start `kexec -e` without waiting for it, since the command cuts its own connection.

        The network goes down first: a network card that is not reset at shutdown would go on writing into the next
        kernel's memory.
        """
        self.tap.begin_variant()
        self.jumped = True
        self.ssh.start(
            f"echo '<5>{diagnose_boot.KEXEC_MARKER}' > /dev/kmsg; "
            "setsid sh -c 'for n in /sys/class/net/*; do ip link set ${n##*/} down; done; exec kexec -e' "
            "< /dev/null > /dev/null 2>&1 &",
            self.wakeup,
        )
