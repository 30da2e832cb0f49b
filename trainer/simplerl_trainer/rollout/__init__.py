"""Rollouts: vLLM engines as processes and the pool that feeds them. The only room that imports vllm."""
