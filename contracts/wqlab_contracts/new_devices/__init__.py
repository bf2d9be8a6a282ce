"""Describe new machines, and write what a lab needs of them: device type, exporter file, addresses."""
