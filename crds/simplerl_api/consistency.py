"""What a model, its data and its rewards must agree on, beyond what each field says of itself."""

from simplerl_api import credentials, quantity
from simplerl_api.mounts import CHECKPOINT_MOUNT, HUB_CACHE, RUN_FOLDER, SCRATCH, SHARED_MEMORY, reward_code_folder
from simplerl_api.spec.job import Spec


def fault(spec: Spec) -> str | None:
    """The first sentence of disagreement, which names the field, its value and what to do; None where all agree."""
    return (
        _names(spec)
        or _folders(spec)
        or _amounts(spec)
        or _nothing_to_do(spec)
        or _hub_token(spec)
        or _task(spec)
        or _reward_models(spec)
    )


def _names(spec: Spec) -> str | None:
    lists = {
        "rewards": [r.name for r in spec.rewards],
        "evaluation.datasets": [d.name for d in spec.evaluation.datasets] if spec.evaluation else [],
    }
    for field, names in lists.items():
        for i, name in enumerate(names):
            if name in names[:i]:
                return f"{field}[{i}].name is {name}, as is that of {field}[{names.index(name)}]: give each its own"
    return None


def _folders(spec: Spec) -> str | None:
    """No kubelet mounts two volumes at one place."""
    own = ["/", SCRATCH, SHARED_MEMORY, RUN_FOLDER, CHECKPOINT_MOUNT]
    own += [HUB_CACHE] if spec.model.cache_claim_name else []
    own += [reward_code_folder(i) for i, r in enumerate(spec.rewards) if r.python and r.python.config_map]
    paths = [volume.mount_path.rstrip("/") or "/" for volume in spec.cluster.volumes]
    for i, path in enumerate(paths):
        field = f"cluster.volumes[{i}].mountPath is {path}"
        if path in own:
            return f"{field}, where the pods have a folder of their own: choose another"
        if path in paths[:i]:
            return f"{field}, as is that of cluster.volumes[{paths.index(path)}]: give each its own"
    return None


def _amounts(spec: Spec) -> str | None:
    """No API server takes a container that requests more than it may use."""
    for role, pods in (("head", spec.cluster.head), ("workers", spec.cluster.workers)):
        if pods.resources is None:
            continue
        limits = pods.resources.limits
        for name, asked in pods.resources.requests.items():
            limit = limits.get(name)
            if limit is not None and quantity.number(asked) > quantity.number(limit):
                return (
                    f"cluster.{role}.resources.requests.{name} is {asked}, more than its limit of {limit}: lower it, "
                    "or raise the limit"
                )
    return None


def _nothing_to_do(spec: Spec) -> str | None:
    if spec.training.steps or spec.evaluation is not None:
        return None
    return "training.steps is 0, with which a job only evaluates, but there is no evaluation: add it, or train"


def _hub_token(spec: Spec) -> str | None:
    tokens = list(credentials.hub_tokens(spec))
    for field, ref in tokens[1:]:
        first, wanted = tokens[0]
        if ref != wanted:
            return (
                f"{field} is {ref.name}/{ref.key}, but {first} is {wanted.name}/{wanted.key}: give one token that may "
                "read all of the job's hub repositories"
            )
    return None


def _task(spec: Spec) -> str | None:
    reward = next((i for i, r in enumerate(spec.rewards) if r.task), None)
    if reward is None:
        return None
    datasets = {"data.train": spec.data.train} | {
        f"evaluation.datasets[{i}]": d for i, d in enumerate(spec.evaluation.datasets if spec.evaluation else [])
    }
    for field, questions in datasets.items():
        if questions.reasoning_gym is None:
            return (
                f"rewards[{reward}].task judges only reasoning-gym's own questions, but {field} is given by "
                f"{questions.tag}: give a reasoningGym data set, or another reward"
            )
    return None


def _reward_models(spec: Spec) -> str | None:
    models = [i for i, r in enumerate(spec.rewards) if r.model]
    if models and spec.algorithm.dynamic_sampling is not None:
        return (
            f"rewards[{models[0]}].model scores samples after they are drawn, but algorithm.dynamicSampling needs all "
            "scores while it draws: leave one of the two out"
        )
    if models and spec.algorithm.mask_truncated:
        return (
            f"rewards[{models[0]}].model scores the samples that are trained on, but algorithm.maskTruncated leaves "
            "some out: take one of the two"
        )
    if len(models) == len(spec.rewards) and spec.evaluation is not None:
        return (
            "evaluation needs a reward that says whether an answer is right, but rewards has reward models alone: add "
            "one with weight 0, such as math, or leave evaluation out"
        )
    return None
