"""What a response is worth."""
