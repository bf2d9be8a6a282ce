"""Find the offsets of a kernel's workqueue counters in its debug information, for `wqmon` on the device.

Submitted code can put anything into vmlinux, so drgn reads it only inside the sandbox (`read_vmlinux.py`), and the
output is validated here.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from ..sandbox import GIB, TOOLS, Limits, Sandbox, interpreter

NAME = "workqueue-layout.json"
ON_DEVICE = "workqueue-layout"
"""Name of the file on the device, beside the plan's files, that `wqmon` reads."""
LIMITS = Limits(wall_s=120.0, disk_bytes=GIB, processes=16, log_bytes=64 << 10)

_Key = Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z_]+){1,2}$", max_length=60)]
_LAYOUT: TypeAdapter[dict[_Key, Annotated[int, Field(ge=0, lt=1 << 16)]]] = TypeAdapter(
    dict[_Key, Annotated[int, Field(ge=0, lt=1 << 16)]]
)


def read_layout(vmlinux: Path) -> str:
    """Return the layout as JSON text: offsets, or `{"lacking": REASON}`.

    Raises InfrastructureError if the sandbox cannot be set up.
    """
    script = Path(__file__).with_name("read_vmlinux.py")
    sandbox = Sandbox(
        read_only={"/resolve.py": script, "/vmlinux": vmlinux, **interpreter()},
        # drgn starts a thread for each CPU unless told otherwise, and threads count as processes.
        environment={"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "4"},
        limits=LIMITS,
    )
    output = io.BytesIO()
    finished = sandbox.run([f"{TOOLS}/bin/python", "-I", "/resolve.py", "/vmlinux"], log=output)
    text = output.getvalue().decode(errors="replace").strip()
    if finished.exit_code or finished.stopped:
        return _without_offsets(f"its debug information could not be read (exit status {finished.exit_code})")
    try:
        return json.dumps(_LAYOUT.validate_json(text), indent=1)
    except ValidationError:
        return _without_offsets(_reason(text) or "its debug information is not usable")


def for_device(text: str) -> str:
    """Return the KEY VALUE lines of a layout in JSON; empty if it is not a valid layout."""
    try:
        return "".join(f"{key} {value}\n" for key, value in sorted(_LAYOUT.validate_json(text).items()))
    except ValidationError:
        return ""


def _without_offsets(reason: str) -> str:
    return json.dumps({"lacking": reason})


def _reason(text: str) -> str:
    try:
        return str(json.loads(text)["lacking"])[:300]
    except (ValueError, LookupError, TypeError):
        return ""
