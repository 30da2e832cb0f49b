"""The policy and its training ranks. The only room that imports deepspeed."""
