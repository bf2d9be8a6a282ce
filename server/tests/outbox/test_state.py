"""Every transition of a delivery's state."""

from __future__ import annotations

from itertools import product

import pytest

from wqlab_contracts.enums import DeliveryState
from wqlab_server.jobs.errors import IllegalTransition
from wqlab_server.outbox.state import check_transition

S = DeliveryState
ALLOWED = {
    (S.WAITING_FOR_REVIEW, S.WAITING),
    (S.WAITING_FOR_REVIEW, S.DROPPED),
    (S.WAITING, S.DELIVERED),
    (S.WAITING, S.GIVEN_UP),
    (S.WAITING, S.DROPPED),
    (S.DELIVERED, S.WAITING),
    (S.GIVEN_UP, S.WAITING),
}


@pytest.mark.parametrize(("old", "new"), product(DeliveryState, repeat=2))
def test_transitions(old: DeliveryState, new: DeliveryState) -> None:
    if (old, new) in ALLOWED:
        check_transition(old, new)
    else:
        with pytest.raises(IllegalTransition, match=f"{old} cannot become {new}"):
            check_transition(old, new)
