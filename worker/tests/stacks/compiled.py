"""A small program, compiled with debug information as a kernel is."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

from wqlab_contracts.consoles.call_trace import Reference
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact, Kernel

SOURCE = """\
static inline __attribute__((always_inline)) void poke(int *where)
{
	*where = 7; /* \x1b[2J\x07 */
}
__attribute__((noinline)) int flush_one(int *where)
{
	poke(where);
	return *where + 1;
}
__attribute__((noinline)) int flush_all(int *where)
{
	return flush_one(where) + 2;
}
"""
TWIN = "static __attribute__((noinline, used)) int twin(int a) { return a + %d; }\n"


def built(folder: Path, *options: str, source: str = SOURCE) -> dict[str, Path]:
    """Compile the source as a build in the sandbox does, and return its files."""
    (folder / "kernel").mkdir(parents=True)
    (folder / "kernel/flush.c").write_text(source)
    (folder / "a.c").write_text(TWIN % 1)
    (folder / "b.c").write_text(TWIN % 2)
    command = ["gcc", "-O2", "-nostdlib", "-static", "-Wl,-e,0", *options, "kernel/flush.c", "a.c", "b.c"]
    command += [f"-fdebug-prefix-map={folder}=/src", "-o", "vmlinux"]
    subprocess.run(command, cwd=folder, check=True)
    with zipfile.ZipFile(folder / "sources.zip", "w") as archive:
        archive.write(folder / "kernel/flush.c", "kernel/flush.c")
    return {"/vmlinux": folder / "vmlinux", "/sources.zip": folder / "sources.zip"}


def symbol(vmlinux: Path, name: str, offset: int | None = None) -> Reference:
    """Return a reference to a function; without an offset, to its beginning."""
    listed = subprocess.run(["nm", "-S", vmlinux], capture_output=True, text=True, check=True).stdout
    size = int(re.search(rf"^\w+ (\w+) [tT] {name}$", listed, re.MULTILINE)[1], 16)  # type: ignore[index]
    return Reference(name, offset or 0, size, module="", exact=offset is None)


def after_call(vmlinux: Path, name: str) -> int:
    """Return the offset behind the first call in a function, as a call trace has it."""
    code = subprocess.run(
        ["objdump", "-d", f"--disassemble={name}", vmlinux], capture_output=True, text=True, check=True
    ).stdout
    addresses = re.findall(r"^ +([0-9a-f]+):\t", code, re.MULTILINE)
    call = next(line for line in code.splitlines() if "call" in line).split(":")[0].strip()
    return int(addresses[addresses.index(call) + 1], 16) - int(addresses[0], 16)


def compiled_kernel(files: dict[str, Path]) -> tuple[Kernel, Callable[[Artifact], Path]]:
    """Return a kernel with these files, and the function that fetches them."""

    def artifact(kind: ArtifactKind, number: int) -> Artifact:
        return Artifact(sha256=f"{number:064}", size=1, kind=kind, name=kind.value)

    paths = {f"{1:064}": files["/vmlinux"], f"{2:064}": files["/sources.zip"]}
    kernel = Kernel(
        build_id_gnu="a",
        release="6.12",
        recipe="measure",
        image=artifact(ArtifactKind.KERNEL, 0),
        vmlinux=artifact(ArtifactKind.VMLINUX, 1),
        sources=artifact(ArtifactKind.SOURCES, 2),
    )
    return kernel, lambda wanted: paths[wanted.sha256]
