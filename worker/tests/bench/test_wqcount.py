"""wqcount on this machine, with software events, which need no PMU."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from wqlab_bench import rootfs

SOURCE = Path(rootfs.__file__).parent / "guest" / "wqcount.c"


def test_events_are_counted_until_the_end_or_refused_with_a_reason(tmp_path: Path) -> None:
    program, counts = tmp_path / "wqcount", tmp_path / "counts"
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-DEVENT_TYPE=PERF_TYPE_SOFTWARE"]
    subprocess.run(["gcc", *options, str(SOURCE), "-o", str(program)], check=True)
    with subprocess.Popen([program, counts], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stderr is not None
        said = running.stdout.readline()
        if said != "counting\n":
            assert running.wait() == 1
            assert os.geteuid() != 0 and running.stderr.read() == "Permission denied\n", "the kernel refuses users"
            return
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 0
    found = dict(line.split("\t") for line in counts.read_text().splitlines())
    assert list(found) == ["cycles", "instructions", "cache_misses", "branch_misses"]
    assert int(found["cycles"]) > 0


def test_usage_is_told(tmp_path: Path) -> None:
    program = tmp_path / "wqcount"
    subprocess.run(["gcc", str(SOURCE), "-o", str(program)], check=True)
    answer = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (2, "usage: wqcount FILE\n")


FILES_AS_COUNTERS = """\
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#define syscall(...) open("/dev/null", O_RDONLY)
"""
"""Real descriptors in place of counters, which a kernel may refuse to users."""


def limited(folder: Path, files: int, most: int) -> subprocess.Popen[str]:
    """Start wqcount with a limit of `files` open files, which it may raise to `most`."""
    program, header = folder / "wqcount", folder / "files.h"
    header.write_text(FILES_AS_COUNTERS)
    subprocess.run(["gcc", "-include", header, str(SOURCE), "-o", str(program)], check=True)
    command = f"ulimit -Sn {files} && ulimit -Hn {most} && exec {program} {folder}/counts"
    return subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_limit_of_open_files_is_raised_for_many_cpus(tmp_path: Path) -> None:
    wanted = 3 + 4 * os.sysconf("SC_NPROCESSORS_CONF")
    with limited(tmp_path, 4, wanted + 100) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "counting\n"
        assert len(list(Path(f"/proc/{running.pid}/fd").iterdir())) == wanted, "standard streams, four for each CPU"
        running.kill()


def test_counter_for_which_no_file_is_left_is_an_error(tmp_path: Path) -> None:
    most = 3 + 4 * os.sysconf("SC_NPROCESSORS_CONF") - 1
    with limited(tmp_path, most, most) as running:
        assert running.stdout is not None and running.stderr is not None
        if running.stdout.readline():
            running.kill()
            assert os.geteuid() == 0, "only root may raise the limit"
            return
        assert (running.wait(), running.stderr.read()) == (1, "Too many open files\n")
