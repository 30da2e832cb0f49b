"""What people and the operator see of a run."""
