"""Endpoint that compares any two measured sides."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from wqlab_contracts.api.any_comparison import AnyComparison

from ..http.auth import Reader
from ..http.deps import Db
from ..http.problems import documented
from .compare import compare
from .sides import SELECTOR_PATTERN, SYNTAX

router = APIRouter(tags=["comparisons"], responses=documented(401, 403, 404, 422, 429))

_Side = Annotated[
    str, Query(min_length=1, max_length=500, description=SYNTAX, json_schema_extra={"pattern": SELECTOR_PATTERN})
]


@router.get("/compare", responses=documented(rules="a side is malformed, both are equal or have no common figure"))
def compare_anything(left: _Side, right: _Side, session: Db, _: Reader) -> AnyComparison:
    """Compare two arms of submissions, heads of watched trees, settings or devices: in pairs if both are of the same
    blocks, else with a wider interval, and without one if their environments differ. There is never a verdict."""
    return compare(session, left, right)
