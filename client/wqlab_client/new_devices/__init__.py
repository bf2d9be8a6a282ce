"""`wqlab device add`: questions about a machine, and the files that a lab needs of it."""
