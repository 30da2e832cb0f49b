"""What should be: pure functions from facts and a time to an action and a status."""
