"""Send a kernel image to a device by SSH, and check that it arrived unchanged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.messages import DeviceFacts

from .interface import upload_check
from .ssh import CommandResult
from .verify_boot import infrastructure_failure

IMAGE_ON_DEVICE = "/lab/variant"
"""Path of the sent kernel image on the device."""
UPLOAD_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class VariantImage:
    """A kernel image on this machine and its expected SHA-256."""

    path: Path
    sha256: str


def send_image(
    command: Callable[[str, float, bytes], CommandResult], device: DeviceFacts, image: VariantImage, *, of_variant: bool
) -> None:
    """Copy the kernel image to the device by `command`. `of_variant`: a variant runs there, not the golden system.

    Raises DeviceFailure if the image was changed on this worker or on the way.
    """
    data = image.path.read_bytes()
    if (digest := hashlib.sha256(data).hexdigest()) != image.sha256:
        raise infrastructure_failure(
            f"the kernel image on this worker was changed: sha256 {digest}, not {image.sha256}"
        )
    check, expected = upload_check(device, data)
    answer = command(f"cat > {IMAGE_ON_DEVICE} && {check} {IMAGE_ON_DEVICE}", UPLOAD_TIMEOUT_S, data)
    found = "".join(answer.text.split()[:1])
    if answer.status or found != expected:
        raise infrastructure_failure(
            f"the kernel image did not arrive whole on the device: {check} is {found or 'unknown'}, not {expected}",
            excerpt=answer.stderr_text[-2000:],
            of_variant=of_variant,
        )
