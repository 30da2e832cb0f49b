"""How the ranks' weights reach the engines."""
