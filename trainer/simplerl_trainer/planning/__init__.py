"""`simplerl plan`: what a job would make of its GPUs, before any is taken."""
