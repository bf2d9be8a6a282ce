"""New machines: what `wqlab device add` and the process that tries a machine share."""
