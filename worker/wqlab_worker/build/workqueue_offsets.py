"""Where a kernel keeps its workqueues' counters: found with that build's own debug information, read on the device.

vmlinux is what submitted code made of itself, so a debugger sees it only inside the sandbox (`read_vmlinux.py`),
and what it answers is checked here like any other answer from there.
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
"""Name of the file beside the plan's that `wqmon` reads."""
LIMITS = Limits(wall_s=120.0, disk_bytes=GIB, processes=16, log_bytes=64 << 10)

_Key = Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z_]+){1,2}$", max_length=60)]
_LAYOUT: TypeAdapter[dict[_Key, Annotated[int, Field(ge=0, lt=1 << 16)]]] = TypeAdapter(
    dict[_Key, Annotated[int, Field(ge=0, lt=1 << 16)]]
)


def resolve(vmlinux: Path) -> str:
    """The layout as JSON text: offsets, or `{"lacking": REASON}`. Raises InfrastructureError without a sandbox."""
    script = Path(__file__).with_name("read_vmlinux.py")
    sandbox = Sandbox(
        read_only={"/resolve.py": script, "/vmlinux": vmlinux, **interpreter()},
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        limits=LIMITS,
    )
    said = io.BytesIO()
    finished = sandbox.run([f"{TOOLS}/bin/python", "-I", "/resolve.py", "/vmlinux"], log=said)
    text = said.getvalue().decode(errors="replace").strip()
    if finished.exit_code or finished.stopped:
        return _lacking(f"its debug information could not be read (exit status {finished.exit_code})")
    try:
        return json.dumps(_LAYOUT.validate_json(text), indent=1)
    except ValidationError:
        return _lacking(_reason(text) or "its debug information made no sense")


def for_device(text: str) -> str:
    """KEY VALUE lines of a layout in JSON; empty when it has none, whatever else it is."""
    try:
        return "".join(f"{key} {value}\n" for key, value in sorted(_LAYOUT.validate_json(text).items()))
    except ValidationError:
        return ""


def _lacking(reason: str) -> str:
    return json.dumps({"lacking": reason})


def _reason(text: str) -> str:
    try:
        return str(json.loads(text)["lacking"])[:300]
    except (ValueError, LookupError, TypeError):
        return ""
