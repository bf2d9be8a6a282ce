"""Turn extended netconsole datagrams into the text of a console: in order, each message once, losses said.

A datagram of extended netconsole (`netconsole=+...`) has the header `LEVEL,NUMBER,MICROSECONDS,FLAG[,KEY=VALUE]...;` of
/dev/kmsg. Numbers count the messages of a boot. A message longer than a datagram comes in fragments. UDP may lose,
repeat and reorder them. Pure: the caller tells the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WAIT_S = 1.0
"""Longest time to wait for a missing message. On a local network a reordered datagram is late by milliseconds."""
REPEAT_S = 5.0
"""A message with the number and time of one that came this recently is a repetition. A machine takes longer to boot."""
HELD_LIMIT = 2000
"""Most messages that are held back for a missing one."""
CLOCK_SLACK_US = 1_000_000
"""Largest step back of time between messages of one boot: CPUs take the time before the message gets its number."""
_GIVEN_UP = -1
"""In place of the time of a message that was not printed."""
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
_LIMIT = 64 << 10
"""Longest message. The kernel's is about 1 KiB; a header may claim anything."""


@dataclass(frozen=True)
class Datagram:
    """A message of the kernel's log or a fragment of one."""

    number: int
    microseconds: int
    caller: bytes
    body: bytes
    offset: int
    total: int
    """Bytes of the whole body; `body` begins at `offset`."""


def parse(data: bytes) -> Datagram | None:
    """Return the parts of a datagram; None if it is not of extended netconsole."""
    header, mark, body = data.partition(b";")
    fields = header.split(b",")
    if len(fields) > 4 and not fields[0].isdigit():
        del fields[0]  # the kernel's release (CONFIG_NETCONSOLE_PREPEND_RELEASE)
    if not mark or len(fields) < 4 or not all(each.isdigit() and len(each) < 20 for each in fields[:3]):
        return None
    extra = dict(each.split(b"=", 1) for each in fields[4:] if b"=" in each)
    offset, total = 0, len(body)
    if (fragment := extra.get(b"ncfrag")) is not None:
        first, _, length = fragment.partition(b"/")
        if not (first.isdigit() and length.isdigit() and len(length) < 9):
            return None
        offset, total = int(first), int(length)
        if offset + len(body) > total or total > _LIMIT:
            return None
    return Datagram(int(fields[1]), int(fields[2]), extra.get(b"caller", b""), body, offset, total)


def console_text(microseconds: int, caller: bytes, body: bytes) -> bytes:
    """Return a message as a serial console shows it. The dictionary in the lines after the text is dropped."""
    text = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), body.partition(b"\n")[0])
    prefix = b"[%5d.%06d]" % divmod(microseconds, 1_000_000)
    prefix += b"[%7s] " % caller if caller else b" "
    return b"".join(prefix + line + b"\r\n" for line in text.split(b"\n"))


@dataclass
class _Message:
    """A message of which at least one datagram has come."""

    microseconds: int
    caller: bytes
    total: int
    since: float
    """When its first datagram came."""
    parts: dict[int, bytes] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return sum(map(len, self.parts.values())) >= self.total

    def text(self) -> bytes:
        """Return the console's text; what is missing of an incomplete message is said."""
        body, end = b"", 0
        for offset, part in sorted(self.parts.items()):
            body += b"[... lost ...]" * (offset > end) + part[max(0, end - offset) :]
            end = max(end, offset + len(part))
        if end < self.total:
            body = body.partition(b"\n")[0] + b"[... lost ...]"
        return console_text(self.microseconds, self.caller, body)


class Console:
    """The console of one machine, over all its boots."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._last_us = 0
        self._held: dict[int, _Message] = {}
        self._printed: dict[int, tuple[int, float]] = {}
        """Number -> time of the message in microseconds, or _GIVEN_UP, and when it was printed or given up."""

    def receive(self, data: bytes, now: float) -> bytes:
        """Return the text that can be shown after this datagram. `now` is in seconds of any clock that never goes back.

        What is not of extended netconsole is shown as it is.
        """
        part = parse(data)
        if part is None:
            return data.replace(b"\r", b"").replace(b"\n", b"\r\n")
        output = b"".join(self._accept(part, now))
        return output + self.expire(now)

    def expire(self, now: float) -> bytes:
        """Return the text that waited too long for a missing message."""
        output = b""
        while self._held and (len(self._held) > HELD_LIMIT or now - self._held[min(self._held)].since >= WAIT_S):
            output += b"".join(self._skip(now))
        return output

    @property
    def waiting(self) -> bool:
        """True while text is held back; call `expire` after WAIT_S."""
        return bool(self._held)

    def _accept(self, part: Datagram, now: float) -> Iterator[bytes]:
        if self._is_repetition(part, now):
            return
        if self._is_new_boot(part, now):
            while self._held:
                yield from self._skip(now)
            self._next, self._last_us, self._printed = None, 0, {}
        if self._next is not None and part.number < self._next:
            yield from self._print_late(part, now)
            return
        message = self._held.setdefault(part.number, _Message(part.microseconds, part.caller, part.total, now))
        message.parts[part.offset] = part.body
        if self._next is None and part.number == 0:
            self._next = 0
        yield from self._print_ready(now)

    def _is_repetition(self, part: Datagram, now: float) -> bool:
        if message := self._held.get(part.number):
            return message.microseconds == part.microseconds and part.offset in message.parts
        microseconds, when = self._printed.get(part.number, (-1, 0.0))
        return microseconds == part.microseconds and now - when < REPEAT_S

    def _is_new_boot(self, part: Datagram, now: float) -> bool:
        if message := self._held.get(part.number):
            return message.microseconds != part.microseconds
        if self._next is None:
            return False
        if part.number >= self._next:
            return part.microseconds + CLOCK_SLACK_US < self._last_us
        given_up, when = self._printed.get(part.number, (0, 0.0))
        return given_up != _GIVEN_UP or now - when >= REPEAT_S

    def _print_late(self, part: Datagram, now: float) -> Iterator[bytes]:
        """Print a message that was given up: out of order, but not lost. Its time shows where it belongs."""
        self._printed[part.number] = (part.microseconds, now)
        yield console_text(part.microseconds, part.caller, part.body)

    def _print_ready(self, now: float) -> Iterator[bytes]:
        while self._next is not None and (message := self._held.get(self._next)) and message.whole:
            yield self._print(self._next, now)
        if self._held:
            return
        self._forget(now)

    def _print(self, number: int, now: float) -> bytes:
        message = self._held.pop(number)
        self._next = number + 1
        self._last_us = max(self._last_us, message.microseconds)
        self._printed[number] = (message.microseconds, now)
        return message.text()

    def _skip(self, now: float) -> Iterator[bytes]:
        """Give up the missing messages before the first one held, and print that one, whole or not."""
        first = min(self._held)
        if self._next is not None and first > self._next:
            lost = first - self._next
            for number in range(max(self._next, first - HELD_LIMIT), first):
                self._printed[number] = (_GIVEN_UP, now)
            yield b"[netconsole: %d message%s lost]\r\n" % (lost, b"s" * (lost != 1))
        yield self._print(first, now)
        yield from self._print_ready(now)

    def _forget(self, now: float) -> None:
        if len(self._printed) > HELD_LIMIT:
            self._printed = {key: value for key, value in self._printed.items() if now - value[1] < REPEAT_S}
