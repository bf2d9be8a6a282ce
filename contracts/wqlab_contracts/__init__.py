"""Data formats shared by server, worker and client."""

defer_models = False
"""Whether models are built on first use. The `wqlab` command sets it before it imports them: it uses few of many."""
