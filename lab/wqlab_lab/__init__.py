"""Starts and stops a whole lab on one machine. Knows the other rooms only by the commands they install."""
