"""Text of a console from extended netconsole: datagrams that are lost, repeated, reordered, cut into fragments."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from wqlab_host.netconsole import HELD_LIMIT, WAIT_S, Console, parse


def datagram(number: int, text: str, microseconds: int | None = None, extra: str = "") -> bytes:
    time = number * 1000 if microseconds is None else microseconds
    return f"6,{number},{time},-{extra};{text}\n".encode()


def shown(datagrams: list[bytes], step_s: float = 0.001) -> str:
    """Return the console after the datagrams, which come `step_s` apart, and the wait for missing ones."""
    console = Console()
    now = 100.0
    output = b""
    for data in datagrams:
        now += step_s
        output += console.receive(data, now)
    return (output + console.expire(now + WAIT_S)).decode(errors="replace").replace("\r\n", "\n")


def line(number: int, text: str) -> str:
    return f"[{0:5d}.{number * 1000:06d}] {text}\n"


BOOT = [datagram(number, f"message {number}") for number in range(40)]
TEXT = "".join(line(number, f"message {number}") for number in range(40))


def test_messages_look_as_on_a_serial_console() -> None:
    assert shown([datagram(0, "Linux version 6.12", 0), datagram(1, "eth0: up", 12_345_678)]) == (
        "[    0.000000] Linux version 6.12\n[   12.345678] eth0: up\n"
    )


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_reordered_and_repeated_datagrams_change_nothing(order: random.Random, distance: int) -> None:
    sent = BOOT + order.choices(BOOT, k=20)
    sent = [data for _, data in sorted(enumerate(sent), key=lambda each: each[0] + order.random() * distance)]
    assert shown(sent) == TEXT


@given(st.sets(st.integers(1, 38), max_size=10))
def test_a_lost_message_is_said_where_it_is_missing(lost: set[int]) -> None:
    expected = ""
    for missing, group in itertools.groupby(range(40), key=lambda number: number in lost):
        numbers = list(group)
        if missing:
            expected += f"[netconsole: {len(numbers)} message{'s' if len(numbers) > 1 else ''} lost]\n"
        else:
            expected += "".join(line(number, f"message {number}") for number in numbers)
    console = Console()
    output = b"".join(console.receive(BOOT[number], number * 0.001) for number in range(40) if number not in lost)
    for round_ in range(1, 12):
        output += console.expire(round_ * 10.0)
    assert output.decode().replace("\r\n", "\n") == expected
    assert not console.waiting


def test_nothing_waits_longer_than_the_limit() -> None:
    console = Console()
    assert console.receive(BOOT[0], 0.0)
    assert console.receive(BOOT[2], 0.1) == b""
    assert console.waiting
    assert console.receive(BOOT[3], 0.2) == b""
    assert b"message 2" in console.receive(BOOT[4], 0.11 + WAIT_S)


def test_a_message_that_was_given_up_is_still_shown_once() -> None:
    console = Console()
    output = console.receive(BOOT[0], 0.0) + console.receive(BOOT[2], 0.1) + console.expire(0.2 + WAIT_S)
    assert b"1 message lost" in output
    late = console.receive(BOOT[1], 0.3 + WAIT_S)
    assert b"message 1" in late
    assert console.receive(BOOT[1], 0.4 + WAIT_S) == b""
    assert b"message 3" in console.receive(BOOT[3], 0.5 + WAIT_S)


def test_a_new_boot_begins_with_the_numbers_of_the_old_one() -> None:
    """Two boots of the same kernel: the first messages have equal numbers, times and texts."""
    first = [datagram(number, "same", 0) for number in range(5)]
    console = Console()
    output = b"".join(console.receive(data, 1.0) for data in first)
    output += b"".join(console.receive(data, 30.0) for data in first)
    assert output.count(b"same") == 10


def test_a_quick_jump_into_the_next_kernel_is_a_new_boot() -> None:
    """kexec: the next kernel's log comes a second after the last message of the old one, which had the same numbers."""
    old = [datagram(number, f"old {number}", 9_000_000 + number) for number in range(300)]
    new = [datagram(number, f"new {number}", number) for number in range(5)]
    assert shown(old + new).endswith("".join(f"[    0.{number:06d}] new {number}\n" for number in range(5)))


def test_a_new_boot_whose_first_messages_are_lost() -> None:
    old = [datagram(number, "old", 50_000_000 + number) for number in range(10)]
    new = [datagram(number, f"new {number}", number) for number in range(3, 6)]
    text = shown([*old, *new])
    assert [each.split("] ")[1] for each in text.splitlines()][-3:] == ["new 3", "new 4", "new 5"]
    newer = [datagram(number, f"new {number}", number) for number in range(20, 23)]
    assert shown([*old, *newer]).count("new") == 3


def test_an_oops_across_a_reordered_fragment() -> None:
    """A message longer than a datagram comes in fragments, which may change places and repeat."""
    body = "A" * 400 + "B" * 400 + "C" * 100 + "\n SUBSYSTEM=net\n"
    parts = [
        f"3,7,7000,-,ncfrag={start}/{len(body)};{body[start : start + 300]}".encode()
        for start in range(0, len(body), 300)
    ]
    whole = datagram(6, "before"), datagram(8, "after")
    text = shown([whole[0], parts[2], parts[0], parts[2], *reversed(parts), whole[1]])
    assert text == line(6, "before") + line(7, body.partition("\n")[0]) + line(8, "after")


def test_a_lost_fragment_is_said() -> None:
    parts = [b"3,7,7000,-,ncfrag=0/20;0123456789", b"3,8,8000,-,ncfrag=0/11;abcde", b"3,8,8000,-,ncfrag=5/11;fghij\n"]
    text = shown([datagram(6, "before"), *parts])
    assert "0123456789[... lost ...]\n" in text
    assert text.endswith(line(8, "abcdefghij"))


def test_escapes_dictionary_and_caller() -> None:
    record = rb"12,5,5000,-,caller=T123;\x0awqlab-ready \xc3\xa4\x5c" + b"\n SUBSYSTEM=net\n DEVICE=+net:eth0\n"
    text = Console().receive(b"12,0,0,-;\n", 0.0)
    console = Console()
    console.receive(datagram(4, "x"), 0.0)
    text = console.receive(record, 0.1) + console.expire(5.0)
    assert text.decode().replace("\r\n", "\n").splitlines()[-2:] == [
        "[    0.005000][   T123] ",
        "[    0.005000][   T123] wqlab-ready ä\\",
    ]


def test_a_release_before_the_header_is_accepted() -> None:
    part = parse(b"6.12.1,4,6,600,-;text\n")
    assert part is not None
    assert (part.number, part.microseconds, part.body) == (6, 600, b"text\n")


def test_other_datagrams_are_shown_as_they_are() -> None:
    assert Console().receive(b"[    1.0] plain netconsole\n", 0.0) == b"[    1.0] plain netconsole\r\n"


@given(st.lists(st.binary(max_size=200) | st.sampled_from(BOOT), max_size=40))
def test_no_datagram_is_fatal(datagrams: list[bytes]) -> None:
    shown(datagrams)


def test_a_forged_number_holds_back_a_bounded_text() -> None:
    console = Console()
    console.receive(BOOT[0], 0.0)
    for number in range(2, HELD_LIMIT + 10):
        console.receive(datagram(number, "x"), 0.0)
    assert not console.waiting
