"""How a run reaches a board: one module a lab technology. Only this package imports labgrid."""
