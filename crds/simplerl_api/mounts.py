"""Where the pods have folders of their own, beside cluster.volumes."""

RUN_FOLDER = "/etc/simplerl"
"""Where the pods find the run's ConfigMap."""
CHECKPOINT_MOUNT = "/checkpoints"
"""Where the pods find the checkpoint claim, or an empty folder where there is none."""
HUB_CACHE = "/hub-cache"
"""Where the pods find model.cacheClaimName."""
SCRATCH, SHARED_MEMORY = "/tmp", "/dev/shm"


def reward_code_folder(index: int) -> str:
    """Where the head finds the ConfigMap key of rewards[index].python.configMap."""
    return f"/etc/simplerl-rewards/{index}"
