"""Source lines of kernel reports, read from a compiled file with debug information."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from wqlab_worker.stacks.call_trace import Reference
from wqlab_worker.stacks.decoder import Decoder, resolve

from .compiled import SOURCE, after_call, built, compiled_kernel, symbol


def test_addresses_become_lines_of_the_source(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    exact = symbol(files["/vmlinux"], "flush_one")
    called = symbol(files["/vmlinux"], "flush_all", after_call(files["/vmlinux"], "flush_all"))
    found = resolve(files, [exact, called])
    assert isinstance(found, dict), found
    inlined, containing = found[exact]
    assert (inlined.function, inlined.file, inlined.line, inlined.inlined) == ("poke", "kernel/flush.c", 3, True)
    assert inlined.source == r"*where = 7; /* \x1b[2J\x07 */"
    assert (containing.function, containing.line, containing.source) == ("flush_one", 7, "poke(where);")
    (caller,) = found[called]
    assert (caller.line, caller.source) == (12, "return flush_one(where) + 2;"), "the line of the call"


def test_ambiguous_and_unknown_functions_have_no_line(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    twin = symbol(files["/vmlinux"], "twin")
    other_size = Reference("flush_one", 0, 4000, module="", exact=True)
    beyond = Reference("flush_one", 0x7FFFFFFF, 0x7FFFFFFF, module="", exact=True)
    unknown = Reference("not_there", 0, 16, module="", exact=True)
    assert resolve(files, [twin, other_size, beyond, unknown]) == {twin: [], other_size: [], beyond: [], unknown: []}


@pytest.mark.parametrize("options", [("-g0",), ("-g0", "-s")], ids=["no debug information", "no symbols"])
def test_kernel_without_debug_information_says_so(tmp_path: Path, options: tuple[str, ...]) -> None:
    files = built(tmp_path, "-g")
    reference = symbol(files["/vmlinux"], "flush_one")
    decoder = Decoder(*compiled_kernel(built(tmp_path / "other", *options)))
    assert decoder.places([reference]) == {}
    assert decoder.lacking == "recipe measure builds without debug information"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"\x7fELF" + b"\xff" * 4096, id="only a magic number"),
        pytest.param(lambda data: data[: len(data) // 2], id="cut"),
        pytest.param(lambda data: b"", id="empty"),
    ],
)
def test_damaged_files_give_a_reason(tmp_path: Path, damage) -> None:
    files = built(tmp_path, "-g")
    reference = symbol(files["/vmlinux"], "flush_one")
    files["/vmlinux"].write_bytes(damage(files["/vmlinux"].read_bytes()))
    decoder = Decoder(*compiled_kernel(files))
    assert decoder.places([reference]) == {}
    assert decoder.lacking


def test_files_outside_the_tree_are_not_named(tmp_path: Path) -> None:
    source = '# 3 "/src/../etc/passwd"\n' + SOURCE
    files = built(tmp_path, "-g", source=source)
    with zipfile.ZipFile(files["/sources.zip"], "a") as archive:
        for name in ("../etc/passwd", "/etc/passwd", "etc/passwd"):
            archive.writestr(name, "secret\n" * 100)
    (frames,) = resolve(files, [symbol(files["/vmlinux"], "flush_one")]).values()  # type: ignore[union-attr]
    assert {(frame.file, frame.source) for frame in frames} == {("", "")}


def test_damaged_sources_cost_only_the_source(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    files["/sources.zip"].write_bytes(files["/sources.zip"].read_bytes()[:40])
    (frames,) = resolve(files, [symbol(files["/vmlinux"], "flush_one")]).values()  # type: ignore[union-attr]
    assert [(frame.line, frame.source) for frame in frames] == [(3, ""), (7, "")]


def test_address_is_decoded_once(tmp_path: Path) -> None:
    files = built(tmp_path, "-g")
    reference = symbol(files["/vmlinux"], "flush_one")
    decoder = Decoder(*compiled_kernel(files))
    first = decoder.places([reference])
    files["/vmlinux"].unlink()
    assert decoder.places([reference]) == first
