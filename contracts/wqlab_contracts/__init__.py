"""What server, worker and client agree on."""
