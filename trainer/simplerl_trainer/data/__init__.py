"""Questions, prompts and their order."""
