"""Use the programs of the machine and packages from its Debian mirror, without installing anything."""
