"""Bisections: find the commit that changed a metric, or from which on the kernel fails."""
