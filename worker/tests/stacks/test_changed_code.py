"""Changed lines: their addresses in the line number program, and which of them a boot ran."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_contracts.enums import Arm, Ran
from wqlab_contracts.messages import ChangedLines, RanLines
from wqlab_worker.stacks import changed_code, read_line_table
from wqlab_worker.stacks.changed_code import ChangedCode

from .compiled import built, compiled_kernel

FILE = "kernel/flush.c"
SOURCE = """\
int sum;
static inline __attribute__((always_inline)) void poke(int *where)
{
	*where = sum * 7;
}
__attribute__((noinline)) int dead(int *where)
{
	poke(where);
	return *where + 1;
}
__attribute__((noinline)) int alive(int *where)
{
	poke(where);
	if (*where > 9)
		sum = *where
			- 5;
	return *where + 2;
}
int _text(void)
{
	return sum;
}
"""


def changed(function: str, first: int, last: int, file: str = FILE) -> ChangedLines:
    return ChangedLines(file=file, function=function, arm=Arm.CANDIDATE, first=first, last=last)


def addresses(vmlinux: Path) -> dict[str, range]:
    listed = subprocess.run(["nm", "-S", vmlinux], capture_output=True, text=True, check=True).stdout
    return {
        name: range(int(start, 16), int(start, 16) + int(size, 16))
        for start, size, name in re.findall(r"^(\w+) (\w+) T (\w+)$", listed, re.MULTILINE)
    }


@pytest.mark.parametrize(
    "dwarf", ["-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -O0", "-gdwarf-5 -Wl,--compress-debug-sections=zlib"]
)
def test_each_address_has_the_line_that_binutils_tell(tmp_path: Path, dwarf: str) -> None:
    vmlinux = built(tmp_path / "build", *dwarf.split(), source=SOURCE)["/vmlinux"]
    request = tmp_path / "request.json"
    request.write_text(json.dumps({FILE: [[1, 100]], "kernel/other.c": [[1, 9]]}))
    command = [sys.executable, read_line_table.__file__, str(vmlinux), "", str(request)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["files"] == [FILE]
    code = addresses(vmlinux)
    start = code["_text"].start
    table = {address: line for _, line, first, end in found["ranges"] for address in range(first + start, end + start)}
    asked = [address for name in ("dead", "alive", "_text") for address in code[name]]
    told = subprocess.run(
        ["addr2line", "-e", vmlinux, *map(hex, asked)], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    expected = {
        address: int(match[1])
        for address, text in zip(asked, told, strict=False)
        if (match := re.search(r"flush\.c:(\d+)", text))
    }
    assert len(expected) > 20
    assert {address: table.get(address) for address in expected} == expected


@pytest.fixture
def code(tmp_path: Path) -> tuple[ChangedCode, dict[str, range]]:
    files = built(tmp_path / "build", "-g", source=SOURCE)
    kernel, fetch = compiled_kernel(files)
    lines = [changed("poke", 4, 4), changed("dead", 6, 9), changed("alive", 15, 15), changed("x", 1, 2, "fs/none.c")]
    return ChangedCode(kernel, fetch, lines), addresses(files["/vmlinux"])


def states(found: list[RanLines]) -> dict[str, set[Ran]]:
    return {name: {each.ran for each in found if each.function == name} for name in {each.function for each in found}}


def test_line_ran_if_a_block_has_one_of_its_addresses(code: tuple[ChangedCode, dict[str, range]]) -> None:
    known, functions = code
    moved = 0x1000_0000  # the kernel runs elsewhere than it is linked
    text = functions["_text"].start + moved
    alive = {functions["alive"].start + moved: len(functions["alive"])}
    found = known.ran(text, alive, alive)
    assert states(found) == {"poke": {Ran.MEASURED}, "dead": {Ran.NEVER}, "alive": {Ran.MEASURED}, "x": {Ran.UNKNOWN}}
    assert [each.lines for each in found if each.function == "x"] == [[1, 2]]
    assert states(known.ran(text, {}, alive))["alive"] == {Ran.OUTSIDE}
    assert states(known.ran(text, {}, {}))["poke"] == {Ran.NEVER}


def test_rest_of_a_statement_ran_if_its_beginning_did(code: tuple[ChangedCode, dict[str, range]]) -> None:
    known, functions = code
    known.changed = [changed("alive", 16, 16), changed("", 1, 1)]
    alive = {functions["alive"].start: len(functions["alive"])}
    rest, variable = known.ran(functions["_text"].start, alive, alive)
    assert rest.ran is Ran.MEASURED
    assert (variable.ran, variable.lines) == (Ran.UNKNOWN, [])


def test_unreadable_vmlinux_gives_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vmlinux").write_bytes(b"no ELF")
    kernel, fetch = compiled_kernel({"/vmlinux": tmp_path / "vmlinux", "/sources.zip": tmp_path / "none"})
    known = ChangedCode(kernel, fetch, [changed("f", 1, 1)])
    assert known.ran(1, {}, {}) == []
    monkeypatch.setattr(changed_code, "run_in_sandbox", lambda *_, **__: pytest.fail("it is asked once"))
    assert known.ran(1, {}, {}) == []
    assert ChangedCode(kernel.model_copy(update={"vmlinux": None}), fetch, [changed("f", 1, 1)]).ran(1, {}, {}) == []
