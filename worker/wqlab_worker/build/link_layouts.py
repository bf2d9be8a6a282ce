"""Link a built kernel again in other layouts: the same objects, with text and data at other addresses.

Only the generated linker script in the build folder changes, so that make compiles no source again and commit, release
and version string stay. Modules know no address of the kernel, so they serve every layout.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.layouts import shift_of
from wqlab_contracts.messages import BuildJob
from wqlab_contracts.messages.build import LinkedLayout
from wqlab_contracts.specs import CpuArch

from ..failures import UserError
from ..sandbox import TOOLS, Sandbox
from ..workspace import Workspace, collect
from . import build_log
from .build_id import read_build_id
from .content_digest import content_digest
from .kept_builds import IMAGE, products
from .reproduce import BUILD, IDENTITY
from .toolchain import PREFIX

_SCRIPT = "/shift_layout.py"
_SRCARCH: dict[CpuArch, str] = {"x86_64": "x86", "arm64": "arm64"}
_LOG_LIMIT = 256 << 10
_TUXMAKE_FLAGS = f"-ffile-prefix-map={BUILD}/="
"""KCFLAGS with which tuxmake compiles."""


@dataclass(frozen=True)
class LayoutLinker:
    """Links the objects of a finished build again, with text and data at other addresses."""

    job: BuildJob
    sandbox: Sandbox
    """The sandbox that has built the kernel."""
    build: Path
    """Folder that is BUILD in the sandbox."""
    result: Path
    """Folder of the build's result, with the ordinary kernel."""
    workspace: Workspace
    on_tick: Callable[[], None]

    def link(self, own_modules: Path | None, modules: list[Path]) -> list[LinkedLayout]:
        """Link layouts 1 to `job.layouts` - 1; kernel and vmlinux of each are in the result folder.

        Raises UserError if the tree's linker script has no place for the shifts or the kernel does not link, and
        InfrastructureError if the sandbox cannot be set up.
        """
        found = [self._link(layout, own_modules, modules) for layout in range(1, self.job.layouts)]
        ids = [read_build_id(self.result / "vmlinux"), *(each.build_id_gnu for each in found)]
        if len(set(ids)) < len(ids):
            raise UserError(
                "two layouts of the kernel are the same",
                advice="The tree's linker script discards the shift; submit with --layouts 1.",
            )
        return found

    def _link(self, layout: int, own_modules: Path | None, modules: list[Path]) -> LinkedLayout:
        began = time.monotonic()
        self._shift(layout)
        self._make(layout)
        kinds = {ArtifactKind.KERNEL, ArtifactKind.VMLINUX}
        artifacts = []
        for product in products(self.job.arch):
            if product.kind not in kinds:
                continue
            name = f"{product.name}-{layout}"
            try:
                collect(self.build, product.path, self.result / name, product.limit)
            except OSError as error:
                raise UserError(f"layout {layout} left no usable {product.path}: {error}") from error
            artifacts.append(self.workspace.keep(self.result / name, product.kind, name))
        try:
            build_id = read_build_id(self.result / f"vmlinux-{layout}")
        except ValueError as error:
            raise UserError(f"vmlinux of layout {layout} has no usable GNU build-id: {error}") from error
        return LinkedLayout(
            layout=layout,
            build_id_gnu=build_id,
            content_sha256=content_digest(self.result / f"kernel-{layout}", own_modules, modules),
            duration_s=round(time.monotonic() - began, 1),
            artifacts=artifacts,
        )

    def _shift(self, layout: int) -> None:
        shift = shift_of(layout)
        script = f"{BUILD}/arch/{_SRCARCH[self.job.arch]}/kernel/vmlinux.lds"
        shifting = replace(
            self.sandbox,
            read_only={**self.sandbox.read_only, _SCRIPT: Path(__file__).with_name("shift_layout.py")},
            limits=replace(self.sandbox.limits, log_bytes=64 << 10),
        )
        output = io.BytesIO()
        command = [f"{TOOLS}/bin/python", "-I", _SCRIPT, script, *map(str, shift)]
        finished = shifting.run(command, log=output)
        if finished.exit_code or finished.stopped:
            reason = output.getvalue()[-300:].decode(errors="replace").strip()
            raise UserError(
                f"the tree's linker script has no place to shift {reason}"[:500],
                advice="Submit with --layouts 1: this tree cannot be linked in several.",
            )

    def _make(self, layout: int) -> None:
        log = self.result / f"link-{layout}.log"
        quiet = replace(self.sandbox, limits=replace(self.sandbox.limits, log_bytes=_LOG_LIMIT))
        with log.open("wb") as output:
            finished = quiet.run(self._command(), log=output, on_tick=self.on_tick)
        lines = list(build_log.read_lines(log))
        log.unlink()
        if finished.exit_code or finished.stopped:
            first, excerpt = build_log.first_errors(lines)
            reason = finished.stopped.value if finished.stopped else first or f"make exited with {finished.exit_code}"
            raise UserError(f"layout {layout} of the kernel does not link: {reason}"[:500], excerpt=excerpt)

    def _command(self) -> list[str]:
        """Return make's command, with the variables with which tuxmake has built: others would compile all again."""
        arch, toolchain = self.job.arch, self.job.recipe.toolchain
        identity = [f"{name}={value}" for name, value in (IDENTITY | {"KCFLAGS": _TUXMAKE_FLAGS}).items()]
        variables = [f"O={BUILD}", f"ARCH={arch}", f"SRCARCH={_SRCARCH[arch]}", f"CROSS_COMPILE={PREFIX[arch]}"]
        if toolchain.startswith("clang"):
            variables += [f"CC={toolchain}", f"HOSTCC={toolchain}"]
        image = Path(IMAGE[arch]).name
        make = ["make", "-C", build_log.SOURCE, f"--jobs={self.workspace.jobs}", *variables, image]
        return ["/usr/bin/env", *identity, *make]
