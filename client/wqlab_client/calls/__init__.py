"""Calls of the REST interface, by the resource that they read or change."""
