"""KexecStrategy: unknown -> off -> golden -> variant, each state reached through the one before.

Everything that a state waits for is an event: the ready line on the console, a fatal report, a command's end, a
cancel. A timeout only ends a wait that no event ended.
"""

from __future__ import annotations

import enum
import hashlib
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import attr
from labgrid import target_factory
from labgrid.strategy import Strategy

from wqlab_contracts.enums import DeviceStep, FindingKind
from wqlab_contracts.messages import BootKey, DeviceFacts

from ..measure.detect import Report
from ..measure.device import DeviceFailure
from .base import Cancel, kexec_options
from .console import ConsoleTap, Watch
from .ssh import Answer
from .verify import infrastructure, kernel_failure

POWER_TIMEOUT_S = 60.0
"""labgrid's power drivers set no timeout of their own."""
CONNECT_TIMEOUT_S = 30.0
"""From the ready line to an SSH connection."""
QUIET_S = 10.0
"""After so much silence on the console, the device is asked by SSH: its ready line may have been garbled."""
ALIVE_S = 30.0
PATIENCE = 3
"""So many times its timeout may a boot take whose console said something in the last ALIVE_S."""
UPTIME_SLACK_S = 5.0
"""By so much may a device's clock and ours differ while it boots."""
UPLOAD_TIMEOUT_S = 180.0
LOAD_TIMEOUT_S = 120.0
REPORT_GRACE_S = 5.0
"""How long a report that has begun may take to be printed to its end."""
IMAGE_ON_DEVICE = "/lab/variant"
PLACE_LOST = (
    "Nothing was found wrong with the device. If the labgrid coordinator is away, start it. Else see with "
    "`labgrid-client who` who took the place: quarantine a device before somebody works on it by hand."
)
_VARIANT = "the variant"


class Status(enum.Enum):
    unknown = 0
    off = 1
    golden = 2
    variant = 3


@dataclass(frozen=True)
class VariantImage:
    """A kernel image on this machine, and what its bytes must be."""

    path: Path
    sha256: str


@dataclass
class BootTimes:
    """Seconds, by what they were spent on."""

    golden: float = 0.0
    upload: float = 0.0
    kexec: float = 0.0


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Interrupts a call that has no timeout of its own; main thread only. Raises DeviceFailure."""

    def expired(_number: int, _frame: FrameType | None) -> None:
        raise infrastructure(f"{what} took longer than {seconds:.0f} s", suspect=True)

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@target_factory.reg_driver
@attr.s(eq=False)
class KexecStrategy(Strategy):  # type: ignore[misc]
    """Drives one device. Set `device`, `tap`, `watch`, `cancel` and `lost` before the first transition."""

    bindings = {"power": "PowerProtocol", "console": "ConsoleProtocol", "ssh": "DeviceSSHDriver"}
    device: DeviceFacts = attr.ib(default=None)
    tap: ConsoleTap = attr.ib(default=None)
    watch: Watch = attr.ib(default=None)
    cancel: Cancel = attr.ib(default=None)
    public_key: str = attr.ib(default="")
    """base64 of the lab's ed25519 public key blob."""
    lost: Callable[[], str | None] = attr.ib(default=lambda: None)
    """Why the labgrid place is no longer ours; None while it is."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.status = Status.unknown
        self.times = BootTimes()
        self.token = ""
        self.golden_boot_id = ""
        self.stage = DeviceStep.POWER
        """What the boot is at, for whoever has to say what failed."""

    def transition(self, to: Status, *, key: BootKey | None = None, image: VariantImage | None = None) -> None:
        """Raises DeviceFailure. `golden` and `variant` need `key`, `variant` also `image`."""
        if to is Status.off:
            self._off()
        elif to is Status.golden:
            if key is None:
                raise ValueError("a boot needs its key")
            self._golden(key)
        elif to is Status.variant:
            if image is None:
                raise ValueError("a variant needs its image")
            if self.status is not Status.golden:
                self.transition(Status.golden, key=key)
            self._variant(image)
        else:
            raise ValueError(f"cannot go to {to.name}")
        self.status = to

    # --- states -------------------------------------------------------------------------------------------------

    def _off(self) -> None:
        self.ssh.close()
        self.target.activate(self.power)
        with time_limit(POWER_TIMEOUT_S, "switching the power off"), _power_errors("off"):
            self.power.off()
        self.tap.end()

    def _golden(self, key: BootKey) -> None:
        """A cold cycle. The console is open before the power comes on, or its first lines are lost."""
        started = time.monotonic()
        self.times = BootTimes()
        self.stage = DeviceStep.POWER
        if self.status is not Status.off:
            self.transition(Status.off)
        # Being cold takes this long; nothing announces a discharged capacitor.
        self.wait(lambda: False, self.device.boot.power_off_s)
        self.status = Status.unknown
        self.tap.begin(key)
        switched = time.monotonic()
        with time_limit(POWER_TIMEOUT_S, "switching the power on"), _power_errors("on"):
            self.power.on()
        self.stage = DeviceStep.GOLDEN
        self._await_golden(switched, self.device.boot.golden_timeout_s)
        self.times.golden = time.monotonic() - started

    def _await_golden(self, switched: float, timeout_s: float) -> None:
        """`switched`: when the power was switched on, monotonic seconds."""
        started = time.monotonic()
        while (left := self._time_left(started, timeout_s)) > 0:
            self.wait(lambda: self.tap.ready is not None or self.tap.fatal is not None, min(left, QUIET_S))
            if self.tap.fatal:
                report = self._whole_report()
                raise infrastructure(
                    f"the golden system failed: {report.kind.value}: {report.title}",
                    excerpt=report.excerpt,
                    suspect=True,
                )
            if self.tap.ready:
                self._connect("the golden system")
                self.golden_boot_id = self.tap.ready.boot_id
                return
            quiet = time.monotonic() - self.tap.last_output >= QUIET_S
            if quiet and self.ssh.connect(self.watch, self._interrupted, min(5.0, left)) is None:
                self.golden_boot_id = self._ask_who_answers(time.monotonic() - switched)
                return
            self._raise_if_interrupted()
        if not self.tap.offset:
            self.stage = DeviceStep.CONSOLE
        said = f"{self.tap.offset} bytes came on the console" if self.tap.offset else "the console stayed silent"
        raise infrastructure(
            f"the golden system did not come up in {timeout_s} s: {said}",
            advice="The lab tries again, and checks the device. If that fails too, somebody has to look at its power, "
            "its console and its boot disk.",
            suspect=True,
        )

    def _ask_who_answers(self, since_power_on_s: float) -> str:
        """The boot id of a golden system that told nothing on the console. Raises DeviceFailure for a system that was
        there before: the power switch did nothing to this device."""
        answer = self.command("cat /proc/sys/kernel/random/boot_id /proc/uptime /proc/cmdline", 10)
        try:
            boot_id, uptime, command_line = answer.text.split("\n", 2)
            up_s = float(uptime.split()[0])
        except (ValueError, IndexError):
            raise infrastructure(
                "the golden system answers by SSH, but does not say since when it is up",
                excerpt=(answer.text + answer.complaint)[-2000:],
                suspect=True,
            ) from None
        if up_s > since_power_on_s + UPTIME_SLACK_S or " wqlab.token=" in f" {command_line}":
            self.stage = DeviceStep.POWER
            raise infrastructure(
                f"the device was never off: the system that answers has been up for {up_s:.0f} s, and the power was "
                f"switched on {since_power_on_s:.0f} s ago",
                advice="The power switch acts on something else. Find the outlet or command that is this device's.",
                excerpt=command_line.strip()[-2000:],
                suspect=True,
            )
        return boot_id

    def _variant(self, image: VariantImage) -> None:
        self.stage = DeviceStep.KEXEC
        started = time.monotonic()
        self._upload(image)
        self.times.upload = time.monotonic() - started
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
            raise infrastructure(
                f"kexec did not load the image (exit status {answer.status})",
                excerpt=(answer.complaint + answer.text)[-4000:],
                suspect=answer.transport_lost,
            )
        self._jump()
        self._await_variant(boot.variant_timeout_s)
        self.times.kexec = time.monotonic() - started

    def command_line(self) -> str:
        """Of the variant; the device type's own arguments come last and win."""
        boot = self.device.boot
        words = [
            f"console={boot.console_device},{boot.console_speed}",
            "panic=0",  # stay dead after a panic: its report must not be followed by a golden boot
            f"wqlab.token={self.token}",
            f"wqlab.ssh={self.public_key}",
            boot.kernel_arguments,
        ]
        return " ".join(word for word in words if word)

    def _upload(self, image: VariantImage) -> None:
        data = image.path.read_bytes()
        if (digest := hashlib.sha256(data).hexdigest()) != image.sha256:
            raise infrastructure(f"the kernel image on this worker was changed: sha256 {digest}, not {image.sha256}")
        answer = self.command(f"cat > {IMAGE_ON_DEVICE} && sha256sum {IMAGE_ON_DEVICE}", UPLOAD_TIMEOUT_S, data)
        copied = answer.text.split(" ")[0]
        if answer.status or copied != image.sha256:
            raise infrastructure(
                f"the kernel image did not arrive whole on the device (sha256 {copied or 'unknown'})",
                excerpt=answer.complaint[-2000:],
            )

    def _jump(self) -> None:
        """Network down first: a device that is not reset at shutdown would go on writing into the next kernel's
        memory. The command takes its own connection away, so nothing waits for its answer."""
        self.tap.expect_variant()
        self.ssh.start(
            "setsid sh -c 'for n in /sys/class/net/*; do ip link set ${n##*/} down; done; exec kexec -e' "
            "< /dev/null > /dev/null 2>&1 &",
            self.watch,
        )

    def _await_variant(self, timeout_s: float) -> None:
        offset = self.tap.offset
        started = time.monotonic()
        try:
            while (left := self._time_left(started, timeout_s)) > 0:
                self.wait(lambda: self.tap.ready is not None or self.tap.fatal is not None, min(left, QUIET_S))
                if self.tap.fatal:
                    raise kernel_failure(self._whole_report())
                if self.tap.ready:
                    self.ssh.close()
                    self._check_ready(self.tap.ready.token)
                    self._connect(_VARIANT)
                    return
                if time.monotonic() - self.tap.last_output >= QUIET_S and self._is_variant_up(min(5.0, left)):
                    return
                self._raise_if_interrupted()
        except DeviceFailure:
            self.ssh.close()
            raise
        said = "" if self.tap.offset > offset else "; not one byte came on the console after the jump"
        raise kernel_failure(
            self.tap.found(FindingKind.HANG, f"the variant did not come up in {timeout_s} s{said}", self._tail())
        )

    def _time_left(self, started: float, timeout_s: float) -> float:
        """Slow is not dead: a device whose console still moves (an emulated one on a busy host) gets more time, within
        a bound."""
        now = time.monotonic()
        moving = now - self.tap.last_output < ALIVE_S
        return started + timeout_s * (PATIENCE if moving else 1) - now

    def _check_ready(self, token: str) -> None:
        if token != self.token:
            title = "the variant rebooted by itself before its userland was ready"
            raise kernel_failure(self.tap.found(FindingKind.HANG, title, self._tail()))

    def _is_variant_up(self, timeout_s: float) -> bool:
        """Asks by SSH; the golden system, still there, does not count."""
        if self.ssh.connect(self.watch, self._interrupted, timeout_s) is not None:
            return False
        answer = self.command("cat /proc/cmdline", 10)
        if f"wqlab.token={self.token}" in answer.text.split():
            return True
        self.ssh.close()
        return False

    def _tail(self) -> str:
        return "\n".join(report.excerpt for report in self.tap.reports)[-8000:]

    # --- waiting ------------------------------------------------------------------------------------------------

    def command(self, command: str, timeout_s: float, stdin: bytes | None = None) -> Answer:
        """Runs a short command of ours. Raises DeviceFailure when it does not end, or the run is interrupted."""
        running = self.ssh.start(command, self.watch, stdin)
        try:
            self.wait(lambda: running.done, timeout_s)
        finally:
            if not running.done:
                running.kill()
        if running.answer is None:
            raise infrastructure(f"the device did not answer `{command[:60]}` in {timeout_s:.0f} s", suspect=True)
        answer: Answer = running.answer
        if answer.excess:
            raise infrastructure(f"the device answered `{command[:60]}` with {answer.excess}", suspect=True)
        return answer

    def _connect(self, whom: str) -> None:
        reason = self.ssh.connect(self.watch, self._interrupted, CONNECT_TIMEOUT_S)
        if reason is not None:
            self._raise_if_interrupted()
            raise infrastructure(
                f"{whom} is up, but does not answer by SSH: {reason}",
                suspect=True,
                of_variant=whom == _VARIANT,
            )

    def wait(self, met: Callable[[], bool], timeout_s: float) -> bool:
        """True when `met`; raises DeviceFailure when the run is interrupted meanwhile."""
        result = self.watch.wait_for(lambda: self._interrupted() or met(), timeout_s)
        self._raise_if_interrupted()
        return result

    def _whole_report(self) -> Report:
        """The fatal report, after what is still being printed has come."""
        self.wait(lambda: not self.tap.reporting, REPORT_GRACE_S)
        assert self.tap.fatal  # noqa: S101 - callers checked it
        # A panic after an oops says less than the oops: the first report is the cause.
        return self.tap.fatal

    def _interrupted(self) -> bool:
        return self.cancel.is_set() or self.lost() is not None or self.tap.lost is not None

    def _raise_if_interrupted(self) -> None:
        if self.cancel.failure:
            raise DeviceFailure(self.cancel.failure)
        if reason := self.lost():
            raise infrastructure(reason, advice=PLACE_LOST)
        if self.tap.lost:
            self.stage = DeviceStep.CONSOLE
            raise infrastructure(self.tap.lost)


@contextmanager
def _power_errors(to: str) -> Iterator[None]:
    """Whatever a power driver raises (they differ per model) is the power switch's fault."""
    try:
        yield
    except DeviceFailure:
        raise
    except subprocess.CalledProcessError as error:
        # Not the command itself: it may have a password in it.
        said = " ".join((error.output or b"nothing").decode(errors="replace").split())[-300:]
        raise infrastructure(
            f"the power could not be switched {to}: the command ended with status {error.returncode} and said: {said}",
            suspect=True,
        ) from error
    except Exception as error:
        raise infrastructure(f"the power could not be switched {to}: {error}", suspect=True) from error


def public_key_blob(public_key_file: Path) -> str:
    """The base64 field of an OpenSSH public key file. Raises ValueError unless it is an ed25519 key."""
    kind, _, rest = public_key_file.read_text().strip().partition(" ")
    if kind != "ssh-ed25519":
        raise ValueError(f"{public_key_file} holds a {kind} key; devices take ssh-ed25519")
    return rest.split(" ")[0]
