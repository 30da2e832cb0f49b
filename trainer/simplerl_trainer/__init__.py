"""The trainer of SimpleRL: PPO with vLLM rollouts and DeepSpeed ranks under Ray.

prompts → samples → scores → batches → losses: data flows one way, through a room for each noun.
"""
