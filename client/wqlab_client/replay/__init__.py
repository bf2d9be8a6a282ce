"""Read a bundle, check its signature and hashes, and derive every verdict again from its samples. Needs no lab."""
