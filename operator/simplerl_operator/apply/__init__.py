"""Doing it: the writes to the API server."""
