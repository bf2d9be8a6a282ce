"""Slots for running devices."""

from __future__ import annotations

import asyncio
import os

import pytest

from wqlab_bench.capacity import Busy, Slots, default_size


def test_busy_error_names_the_holders() -> None:
    async def scenario() -> None:
        slots = Slots(2, wait_s=0.05)
        await slots.take("b")
        await slots.take("a")
        with pytest.raises(Busy, match=r"2 of 2 devices are running \(a, b\)"):
            await slots.take("c")

    asyncio.run(scenario())


def test_release_without_a_slot_has_no_effect() -> None:
    async def scenario() -> None:
        slots = Slots(1, wait_s=0.05)
        slots.release("a")
        await slots.take("a")
        slots.release("a")
        slots.release("a")
        await slots.take("b")
        with pytest.raises(Busy):
            await slots.take("c")

    asyncio.run(scenario())


def test_default_is_one_slot_per_usable_core() -> None:
    assert default_size() == len(os.sched_getaffinity(0))
