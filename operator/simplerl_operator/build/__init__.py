"""Manifests: pure functions from a job and its plan; the same input gives the same bytes."""
