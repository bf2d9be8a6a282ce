"""Orders: one table and one admission for whatever makes submissions without a person who waits."""
