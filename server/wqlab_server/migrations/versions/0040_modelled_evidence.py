"""Allow the evidence `modelled` and the verdict `withheld`."""

from alembic import op

revision = "0040"
down_revision = "0039"

_VALUES = {
    "evidence": ("mechanism", "performance", "instrumented", "modelled", "none"),
    "verdict": (
        *("improvement", "regression", "equivalent", "below_threshold", "inconclusive", "withheld", "no_evidence"),
        *("unsupported", "failed"),
    ),
}
_TABLES = {
    "evidence": ("history_lines",),
    "verdict": ("bisection_steps", "comparisons", "history_points", "history_shifts", "runs"),
}


def upgrade() -> None:
    for column, tables in _TABLES.items():
        values = ", ".join(f"'{value}'" for value in _VALUES[column])
        for table in tables:
            name = op.f(f"ck_{table}_{column}")
            op.drop_constraint(name, table)
            op.create_check_constraint(name, table, f"{column} IN ({values})")
