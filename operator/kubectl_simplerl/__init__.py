"""`kubectl simplerl`: a user's view of SimpleRLJobs, with the user's own rights."""
