"""The history of watched trees: each metric over the heads of a branch, and the shifts of its level."""
