"""Accuracy on held-out questions."""
