"""Load a crash kernel (kdump) on a running variant. If the variant crashes, the crash kernel prints its log.

Netconsole loses the log of a crash if the network card cannot send, as after a crash in its driver. The crash kernel
starts the card anew. See admin-guide/kdump/kdump.rst in the kernel's documentation.
"""

from __future__ import annotations

import shlex

from wqlab_contracts.consoles.detect import CRASH_KERNEL
from wqlab_contracts.specs import console_arguments

from .device_access import DeviceAccess
from .interface import LOAD_TIMEOUT_S
from .send_image import IMAGE_ON_DEVICE, VariantImage, send_image
from .verify_boot import infrastructure_failure

LOADER = "wqlab-crash-kernel"
"""Program on the device that loads the crash kernel; its source is wqlab_bench/guest/crash_kernel.sh."""
ADVICE = (
    "If the variant reserved no memory, its kernel lacks CONFIG_CRASH_DUMP, or the device has no free memory of this "
    "size at low addresses. If the memory is too small, raise `crash_kernel_mib`. If the device lacks the program "
    f"{LOADER}, copy the lab's present root filesystem image to it. To measure without a crash kernel, remove "
    "`crash_kernel_mib`."
)


def load(strategy: DeviceAccess, image: VariantImage) -> str | None:
    """Load `image` as the crash kernel of the running variant; return None, or why it is not loaded.

    Raises DeviceFailure if the image does not arrive on the device, the connection breaks or the variant crashes.
    """
    send_image(strategy.command, strategy.device, image, of_variant=True)
    words = [LOADER, IMAGE_ON_DEVICE, _command_line(strategy)]
    answer = strategy.command(f"{shlex.join(words)}; status=$?; rm -f {IMAGE_ON_DEVICE}; exit $status", LOAD_TIMEOUT_S)
    if answer.transport_lost:
        raise infrastructure_failure(
            "the SSH connection broke while the crash kernel was loaded", of_variant=True, suspect=True
        )
    if answer.status == 0:
        return None
    said = " ".join((answer.stderr_text + answer.text).split())
    return said[-300:] or f"{LOADER} ended with status {answer.status}"


def _command_line(strategy: DeviceAccess) -> str:
    """Return the crash kernel's command line: that of the device's kernels, for one CPU and in little memory."""
    boot = strategy.device.boot
    own = " ".join(word for word in boot.kernel_arguments.split() if not word.startswith("crashkernel="))
    console = console_arguments(boot, strategy.device.netconsole)
    return f"{console} {own} nr_cpus=1 reset_devices panic=0 {CRASH_KERNEL}"
