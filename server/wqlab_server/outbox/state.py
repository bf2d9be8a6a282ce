"""States of a delivery. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from wqlab_contracts.enums import DeliveryState

from ..jobs.errors import IllegalTransition

ALLOWED: Mapping[DeliveryState, frozenset[DeliveryState]] = {
    DeliveryState.WAITING_FOR_REVIEW: frozenset({DeliveryState.WAITING, DeliveryState.DROPPED}),
    DeliveryState.WAITING: frozenset({DeliveryState.DELIVERED, DeliveryState.GIVEN_UP, DeliveryState.DROPPED}),
    # A receiver that has lost an event can be sent it again, by a person's decision.
    DeliveryState.DELIVERED: frozenset({DeliveryState.WAITING}),
    DeliveryState.GIVEN_UP: frozenset({DeliveryState.WAITING}),
    DeliveryState.DROPPED: frozenset(),
}


def check_transition(old: DeliveryState, new: DeliveryState) -> None:
    """Raise IllegalTransition unless `old` may become `new`."""
    if new not in ALLOWED[old]:
        raise IllegalTransition(f"a delivery that is {old} cannot become {new}")
