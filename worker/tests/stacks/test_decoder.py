"""Source lines of kernel reports, read from a compiled file with debug information."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pydantic import ValidationError

from wqlab_contracts.consoles.call_trace import Reference
from wqlab_worker.stacks import decoder as decoder_module
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


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_give_frames_or_a_reason(tmp_path: Path, seed: int) -> None:
    files = built(tmp_path, "-g")
    reference = symbol(files["/vmlinux"], "flush_one")
    chance = Random(seed)
    for path in files.values():
        data = bytearray(path.read_bytes())
        for _ in range(len(data) // 50):
            data[chance.randrange(64 if seed else 0, len(data))] = chance.randrange(256)
        path.write_bytes(data)
    decoder = Decoder(*compiled_kernel(files))
    for frame in decoder.places([reference]).get(reference, []):
        assert ".." not in frame.file and frame.source.isprintable()


def test_decoding_is_bounded_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reports something new again and again is decoded only so often."""
    files = built(tmp_path, "-g")
    monkeypatch.setattr(decoder_module, "SANDBOXES_LIMIT", 1)
    decoder = Decoder(*compiled_kernel(files))
    assert decoder.places([symbol(files["/vmlinux"], "flush_one")])
    assert decoder.places([symbol(files["/vmlinux"], "flush_all")]) == {}
    assert not decoder.lacking


def test_exceeded_time_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = built(tmp_path, "-g")
    slow = tmp_path / "resolve_addresses.py"
    slow.write_text("while True: pass\n")
    monkeypatch.setattr(decoder_module, "LIMITS", replace(decoder_module.LIMITS, wall_s=0.1))
    monkeypatch.setattr(decoder_module, "__file__", str(tmp_path / "decoder.py"))
    decoder = Decoder(*compiled_kernel(files))
    assert decoder.places([symbol(files["/vmlinux"], "flush_one")]) == {}
    assert decoder.lacking == "reading vmlinux exceeded its limit of time"


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


def test_frames_of_hostile_debug_information_stay_small() -> None:
    """A hundred frames with an excerpt have to fit into an event of 256 KiB, in any encoding."""
    for name in ("function", "file"):
        with pytest.raises(ValidationError):
            decoder_module._Frame.model_validate({"function": "f"} | {name: "\U00020000"})
