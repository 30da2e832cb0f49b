"""Which environment variables hold what a job's Secrets hold: tokens travel by environment alone."""

from collections.abc import Iterator, Mapping

from simplerl_api.spec.job import Spec
from simplerl_api.spec.reference import SecretKeyRef

HUB_TOKEN = "HF_TOKEN"
TRACKER_KEY = "WANDB_API_KEY"


def reward_token(index: int) -> str:
    """The variable with the token of a reward's service, by the reward's place in the list."""
    return f"SIMPLERL_REWARD_{index}_TOKEN"


def variables(spec: Spec) -> dict[str, SecretKeyRef]:
    """Every variable that the driver's container gets from a Secret."""
    rewards = {
        reward_token(i): reward.http.token_secret_ref
        for i, reward in enumerate(spec.rewards)
        if reward.http and reward.http.token_secret_ref
    }
    tracker = spec.tracking.secret
    return hub_variables(spec) | rewards | ({TRACKER_KEY: tracker} if tracker else {})


def hub_variables(spec: Spec) -> dict[str, SecretKeyRef]:
    """Those that containers need which download from a hub."""
    return dict([(HUB_TOKEN, ref) for _, ref in hub_tokens(spec)][:1])


def hub_tokens(spec: Spec) -> Iterator[tuple[str, SecretKeyRef]]:
    """Every hub token that the spec names, with its field."""
    hubs = {"model.hub": spec.model.hub, "data.train.hub": spec.data.train.hub} | {
        f"evaluation.datasets[{i}].hub": dataset.hub
        for i, dataset in enumerate(spec.evaluation.datasets if spec.evaluation else [])
    }
    hubs |= {f"rewards[{i}].model.hub": r.model.hub for i, r in enumerate(spec.rewards) if r.model}
    for field, hub in hubs.items():
        if hub and hub.token_secret_ref:
            yield f"{field}.tokenSecretRef", hub.token_secret_ref


def uses_hub(spec: Spec) -> bool:
    """Whether anything comes from a hub."""
    hubs = [spec.model.hub, spec.data.train.hub, *(r.model.hub for r in spec.rewards if r.model)]
    hubs += [d.hub for d in spec.evaluation.datasets] if spec.evaluation else []
    return any(hub is not None for hub in hubs)


def values(spec: Spec, environment: Mapping[str, str]) -> list[str]:
    """The secrets that an environment holds for this spec, which must not appear in any log."""
    names = {HUB_TOKEN, TRACKER_KEY, *(reward_token(i) for i, r in enumerate(spec.rewards) if r.http), *variables(spec)}
    return [environment[name] for name in sorted(names) if environment.get(name)]
