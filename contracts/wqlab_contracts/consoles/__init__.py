"""Console logs: kernel reports, their defects, and evidence of hardware errors. Pure."""
