"""The public REST resources under /api/v1: what `wqlab`, CI and the web read and write."""
