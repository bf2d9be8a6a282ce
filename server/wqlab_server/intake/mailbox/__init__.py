"""Mails to the lab: bounces of its own mails, and commands in replies to them."""
