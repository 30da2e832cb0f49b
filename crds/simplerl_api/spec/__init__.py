"""The spec of a SimpleRLJob, a module for each of its sections."""
