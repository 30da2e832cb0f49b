"""The operator of SimpleRLJobs: observe, decide, build, apply."""
