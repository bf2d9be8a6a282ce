"""Start and stop a whole lab on one machine. The other packages are used only through their commands."""
