"""The job as the API server holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simplerl_api import adaptations, names, validation
from simplerl_api.job_defaults import JobDefaults
from simplerl_api.plan import PlacementKind, Plan, make_plan
from simplerl_api.plan_error import PlanError
from simplerl_api.spec.cluster import Cluster
from simplerl_api.spec.job import Spec
from simplerl_api.status import Condition, Phase, Status
from simplerl_operator.observe.workload import QUEUE

Key = tuple[str, str]
"""Namespace and name of a job."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job: its identity, its spec where it can be used, and its status as last written."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    deleting: bool
    spec: Spec | None
    """The effective spec, with status.adaptations; None where it has faults."""
    plan: Plan | None
    """The plan: the one of the first start, or the one that the spec makes now."""
    faults: tuple[str, ...]
    """A sentence for each reason for which the spec cannot be used."""
    status: Status
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels of the object; build/scheduling.py says which of them its children bear."""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    @property
    def started(self) -> bool:
        return self.status.start_time is not None

    @property
    def finished(self) -> bool:
        return self.status.completion_time is not None

    @property
    def attempt(self) -> int:
        return self.status.attempt or 1

    @property
    def cluster_name(self) -> str:
        """Name of the attempt's RayCluster: an earlier attempt's where it goes on in that one."""
        if self.status.cluster is not None:
            return self.status.cluster.name
        return names.cluster(self.name, self.uid, self.attempt)

    @property
    def cluster(self) -> Cluster:
        """The spec's cluster section with the defaults that the plan was made under."""
        assert self.spec is not None
        defaults = self.plan.job_defaults if self.plan is not None else None
        return self.spec.cluster if defaults is None else defaults.cluster(self.spec.cluster)

    @property
    def cluster_attempt(self) -> int:
        """The attempt for which the RayCluster was made; its pods bear this number."""
        return names.cluster_attempt(self.cluster_name)

    @property
    def submission_id(self) -> str:
        """The attempt's submission id at Ray."""
        return names.submission(self.cluster_name, self.attempt)

    @property
    def engines_apart(self) -> bool:
        """Whether some worker pods hold engines and no rank, and which is not to be seen from outside."""
        if self.plan is None or self.plan.placement is PlacementKind.COLOCATED or self.elastic:
            return False
        return self.plan.nodes > self.plan.training_nodes

    @property
    def elastic(self) -> bool:
        """Whether pods of engines come and go; they are a group of their own."""
        return self.plan is not None and self.plan.min_engines is not None

    @property
    def wanted_engines(self) -> int | None:
        """How many engines spec.rollout.engines wants of a running job, where it may say so."""
        if self.spec is None or self.plan is None or self.plan.placement is PlacementKind.COLOCATED:
            return None
        wanted = self.spec.rollout.engines
        return None if wanted is None else min(wanted, self.plan.engines)

    @property
    def submitted(self) -> bool:
        return self.status.cluster is not None and self.status.cluster.submission_id is not None

    def condition(self, kind: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == kind), None)


def read(document: dict[str, Any], trainer_image: str, defaults: JobDefaults | None = None) -> Job:
    """The job in a document of the API server; `trainer_image` is that of jobs that name none, `defaults` are the
    operator's."""
    metadata = document["metadata"]
    # a newer operator may have written fields that this one does not know
    status = Status.model_validate(document.get("status", {}), extra="ignore")
    spec, faults = _spec(document)
    plan = status.plan if status.start_time is not None else None
    if spec is not None and plan is not None and status.adaptations:
        spec = adaptations.effective(spec, status.adaptations)
        plan = adaptations.adapted(plan, spec)
    suspended = status.phase is Phase.SUSPENDED  # the next attempt is made of what spec.cluster says then
    if (plan is None or suspended) and spec is not None:
        try:
            if suspended and spec.rollout.engines is not None:
                # a number for the running engines, not for the plan
                spec_planned = spec.model_copy(update={"rollout": spec.rollout.model_copy(update={"engines": None})})
            else:
                spec_planned = spec
            image = plan.image if plan is not None and plan.image is not None else trainer_image
            plan = make_plan(spec_planned, image, defaults=plan.job_defaults if plan is not None else defaults)
            if QUEUE in (metadata.get("labels") or {}):
                plan = plan.steady()  # Kueue suspends a RayCluster whose replicas change
        except PlanError as error:
            spec, faults = None, (f"spec.{error}",)
    return Job(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        resource_version=metadata["resourceVersion"],
        deleting="deletionTimestamp" in metadata,
        spec=spec,
        plan=plan,
        faults=faults,
        status=status,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
    )


def _spec(document: dict[str, Any]) -> tuple[Spec | None, tuple[str, ...]]:
    name = document["metadata"]["name"]
    faults = [] if names.valid(name) else [f"metadata.name is {name}: {names.NAME_RULE}"]
    try:
        spec = validation.parse_spec(document.get("spec", {}))
    except validation.InvalidJob as invalid:
        return None, (*faults, *invalid.faults)
    faults += validation.cluster_faults(spec)
    return (None if faults else spec), tuple(faults)
