"""Data formats shared by server, worker and client."""
