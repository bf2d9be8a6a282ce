"""When boards come free, played through. Pure. Times are seconds from now; None is a time that nobody knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass
class Board:
    name: str
    device_type: str
    lab: str
    free_s: float | None
    """When it comes free; None when that cannot be told."""


class Schedule:
    """Places runs one after another, each on the board that comes free first, under the labs' capacities.

    It knows no health: boards that cannot take a run are left out by who makes it.
    """

    def __init__(self, boards: Iterable[Board], at_work: Iterable[Board], capacity: Mapping[str, int]) -> None:
        """`at_work`: every leased board of the labs, those left out of `boards` too. A lab without a capacity has no
        bound."""
        self._boards = list(boards)
        self._slots: dict[str, list[float | None]] = {}
        busy: dict[str, list[float | None]] = defaultdict(list)
        for board in at_work:
            busy[board.lab].append(board.free_s)
        for lab, most in capacity.items():
            taken = sorted(busy[lab], key=_late)
            self._slots[lab] = [*taken, *([0.0] * max(most - len(taken), 0))]

    def place(
        self, device_type: str, duration_s: float | None, *, wanted: str | None = None, not_before_s: float = 0.0
    ) -> float | None:
        """When a run that takes `duration_s` would start; None when no board of the type comes free at a known time."""
        fitting = [
            board
            for board in self._boards
            if (board.name == wanted if wanted is not None else board.device_type == device_type)
        ]
        if not fitting:
            return None
        board = min(fitting, key=lambda board: (_late(self._earliest(board)), board.name))
        earliest = self._earliest(board)
        if earliest is None:
            return None
        start = max(earliest, not_before_s)
        end = None if duration_s is None else start + duration_s
        board.free_s = end
        slots = self._slots.get(board.lab)
        if slots is not None:
            slots[slots.index(min(slots, key=_late))] = end
        return start

    def _earliest(self, board: Board) -> float | None:
        slots = self._slots.get(board.lab)
        slot = 0.0 if slots is None else min(slots, key=_late, default=None)
        return None if slot is None or board.free_s is None else max(slot, board.free_s)


def _late(time_s: float | None) -> float:
    return float("inf") if time_s is None else time_s
