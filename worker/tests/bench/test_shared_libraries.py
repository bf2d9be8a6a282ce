"""Libraries and symbols that programs need."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wqlab_bench import rootfs, shared_libraries


def gcc(*arguments: str) -> None:
    subprocess.run(["gcc", *arguments], check=True)


def test_program_runs_with_stand_in_until_it_calls_it(tmp_path: Path) -> None:
    """Versioned functions, and a variable that the program copies, as in Debian's fio and kexec."""
    (tmp_path / "lib.c").write_text("int huge(void) { return 1; } int huge_state = 7;\n")
    (tmp_path / "lib.map").write_text("HUGE_1.0 { global: huge; huge_state; };\n")
    (tmp_path / "main.c").write_text(
        "extern int huge(void), huge_state; int main(int c, char **v) { return c > 1 ? huge() : huge_state; }\n"
    )
    library, program = tmp_path / "libhuge.so.1", tmp_path / "program"
    script = f"-Wl,--version-script={tmp_path / 'lib.map'}"
    gcc("-shared", "-fPIC", "-Wl,-soname,libhuge.so.1", script, str(tmp_path / "lib.c"), "-o", str(library))
    gcc(
        "-no-pie",
        "-Wl,-z,now",
        str(tmp_path / "main.c"),
        str(library),
        "-Wl,-rpath," + str(tmp_path),
        "-o",
        str(program),
    )
    assert subprocess.run([program], check=False).returncode == 7
    library.unlink()

    found = shared_libraries.closure([program], [Path("/lib/x86_64-linux-gnu"), tmp_path])
    assert dict(found.absent) == {"libhuge.so.1": {program}}
    library.write_bytes(rootfs.Image("x86_64", tmp_path, tmp_path).stand_in(found))
    run = subprocess.run([program], capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")  # an all-zero variable, and no word from the loader
    assert subprocess.run([program, "call"], check=False).returncode < 0
