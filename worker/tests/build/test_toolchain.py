"""Identity of the compiler, and the wrappers for ccache."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_worker.build.toolchain import toolchain_identity, write_compilers
from wqlab_worker.failures import InfrastructureError


def test_identity_names_compiler_and_linker() -> None:
    compiler, _, linker = toolchain_identity().partition("; ")
    assert compiler.startswith("gcc (")
    assert linker.startswith("GNU ld")


@pytest.mark.parametrize("command", ["../gcc", "gcc -x", "", "no-such-compiler"])
def test_unknown_compiler_is_an_infrastructure_error(command: str) -> None:
    with pytest.raises(InfrastructureError):
        toolchain_identity(command)


def test_sources_with_incbin_bypass_ccache(tmp_path: Path) -> None:
    compilers, tools = tmp_path / "compilers", tmp_path / "tools"
    compilers.mkdir()
    tools.mkdir()
    (tools / "ccache").write_text("#!/bin/sh\necho cached\n")
    (tools / "ccache").chmod(0o755)
    write_compilers(compilers, "x86_64", "gcc")
    (tmp_path / "plain.c").write_text("int x;\n")
    (tmp_path / "blob.c").write_text('asm(".incbin \\"data\\"");\n')
    (tmp_path / "entry.S").write_text("\n")

    def is_cached(source: str) -> bool:
        command = [compilers / "gcc", "-E", tmp_path / source]
        environment = {"PATH": f"{tools}:/usr/bin:/bin"}
        return subprocess.run(command, env=environment, capture_output=True, text=True).stdout == "cached\n"

    assert {name: is_cached(name) for name in ("plain.c", "blob.c", "entry.S")} == {
        "plain.c": True,
        "blob.c": False,
        "entry.S": False,
    }
