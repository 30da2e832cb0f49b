"""The maths: pure functions of tensors. Imports torch only."""
