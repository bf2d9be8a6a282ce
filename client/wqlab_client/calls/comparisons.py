"""Calls on comparisons of any two measured sides."""

from __future__ import annotations

from wqlab_contracts.api.any_comparison import AnyComparison

from .connection import API, Connection


class ComparisonCalls(Connection):
    """Calls on comparisons."""

    def compare(self, left: str, right: str) -> AnyComparison:
        """Compare two sides: `SUBMISSION`, `SUBMISSION:ARM` or `TREE@COMMIT`, then any of `;plan=`, `;device_type=`,
        `;device=` and `;setting=`."""
        return self._get(
            AnyComparison, f"{API}/compare", f"compare {left} with {right}", {"left": left, "right": right}
        )
