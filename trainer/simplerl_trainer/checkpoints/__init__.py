"""Checkpoints: complete or not there."""
