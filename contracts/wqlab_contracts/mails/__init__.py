"""Mails and the series in them: parsing, threads, inspection, and the mails that b4 gets. Pure."""
