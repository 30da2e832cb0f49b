"""One look at a job: as much as the decision needs, and no more."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from simplerl_api import names
from simplerl_api.status import Phase
from simplerl_operator import clock, head_address
from simplerl_operator.kinds import CLAIM, EVENT, NODE, POD, RAY_CLUSTER, WORKLOAD
from simplerl_operator.kubernetes_api import KubernetesApi, Refused
from simplerl_operator.observe import aftermath, inputs, pods, ray_cluster, workload
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Head, Lock, Observation
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import RayCluster
from simplerl_operator.observe.rehearsal import Rehearsals
from simplerl_operator.observe.workload import Workload
from simplerl_operator.progress_client import Followed, ProgressClient
from simplerl_operator.ray_jobs import HeadSilent, RayJobs
from simplerl_operator.tokens import Tokens

_CLAIM = "PersistentVolumeClaim"
"""In the scheduler's message where a claim keeps a pod from being placed."""
_STANDS_STILL = 4.0
"""Seconds after which something that does not come up is asked for its warnings."""
_EVENT_SECONDS = 1.0
"""Seconds by which an event may come after what it tells of shows in a list."""


class Observer:
    """Reads the API server, the heads and the drivers."""

    def __init__(
        self,
        api: KubernetesApi,
        ray_jobs: RayJobs,
        progress: ProgressClient,
        evidence: Evidence,
        tokens: Tokens,
        stand_in: str | None,
        clock: Callable[[], float],
        *,
        reads_nodes: bool,
    ) -> None:
        """`clock`: seconds since 1970. `reads_nodes`: an operator of few namespaces has no right to, and its jobs wait
        until pods of dead nodes are gone."""
        self._reads_nodes = reads_nodes
        self._api = api
        self._ray_jobs = ray_jobs
        self._progress = progress
        self._evidence = evidence
        self._tokens = tokens
        self._stand_in = stand_in
        self._clock = clock
        self._rehearsals = Rehearsals(api, clock)

    async def look(self, job: Job) -> Observation:
        """Everything that the decision about this job may rest on."""
        if job.deleting or job.finished:
            self.forget(job)
            return Observation(job=job, cluster=await self._cluster(job) if job.started else None)
        if not job.started:
            usable = job.spec is not None and not job.faults and not job.spec.suspend
            return Observation(job=job, inputs=await inputs.look(self._api, job, self._rehearsals) if usable else None)
        seen = await self._attempt(job)
        if job.status.phase is Phase.SUSPENDED:
            self.forget(job)  # the attempt is over, and its evidence in the status
            return await self._leaving(replace(seen, lost=()))
        if job.status.phase is Phase.RECOVERING:
            self._progress.forget(job.key)  # of its pods more may be heard
            return await self._leaving(seen)
        suspends = job.status.phase is Phase.SUSPENDING or (job.spec is not None and job.spec.suspend)
        if seen.cluster is not None and seen.cluster.suspended and not suspends:
            return await self._queued(seen)
        if not suspends and (job.status.phase is Phase.QUEUED or _changed(seen)):
            seen = await self._admitted(seen)
            if seen.readmitted:
                return seen
        if aftermath.lost_unseen(seen):
            # the event that shows how the pod ended is on its way
            await asyncio.sleep(_EVENT_SECONDS)
            seen = await self._attempt(job)
            if seen.cluster is not None and seen.cluster.suspended and not suspends:
                return await self._queued(seen)
            if not suspends and aftermath.lost_unseen(seen):
                seen = await aftermath.look(self._api, seen, reads_nodes=self._reads_nodes)
        if suspends:
            seen = await self._leaving(seen)
            return await self._running(seen) if job.submitted else seen
        if job.submitted:
            seen = await self._running(seen)
            if job.engines_apart and seen.head_pod is not None and aftermath.lost_unseen(seen):
                seen = await aftermath.look(self._api, seen, reads_nodes=self._reads_nodes)
            return seen
        if seen.assembled and seen.head_pod is not None:
            return await self._arriving(seen)
        return await self._rising(seen)

    async def _attempt(self, job: Job) -> Observation:
        cluster, there = await asyncio.gather(self._cluster(job), self._pods(job))
        token = self._tokens.of(job)
        lost = tuple(pods.redacted(pod, token) for pod in self._evidence.lost(job, {pod.uid for pod in there}))
        retired = self._evidence.retired(job.key)
        current = tuple(pod for pod in there if pod.attempt == job.cluster_attempt and pod.uid not in retired)
        former = tuple(pod for pod in there if pod not in current)
        return Observation(job=job, cluster=cluster, pods=current, lost=lost, former=former)

    async def _leaving(self, seen: Observation) -> Observation:
        """Pods that should go: of those that outstay their grace period, does the node still live?"""
        now = self._clock()
        if not self._reads_nodes:
            return seen
        late = {pod.node for pod in (*seen.pods, *seen.former) if pod.node and pod.outstays(now)}
        dead = [node for node in sorted(late) if not await self._node_lives(node)]
        return replace(seen, dead_nodes=frozenset(dead))

    async def _node_lives(self, name: str) -> bool:
        node = await self._api.get(NODE, None, name)
        conditions = (node or {}).get("status", {}).get("conditions") or []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    async def _queued(self, seen: Observation) -> Observation:
        """Kueue holds the RayCluster back, or has just taken its pods: what became of them is no evidence."""
        job = seen.job
        self._evidence.retire(job.key, {pod.uid for pod in seen.pods})
        progress = self._progress.last(job.key, job.submission_id) if job.submitted else None
        if not job.submitted:
            self._progress.forget(job.key)
        return replace(seen, workload=await self._workload(seen), progress=progress, pods=(), lost=())

    async def _admitted(self, seen: Observation) -> Observation:
        """Kueue lets the RayCluster run; where that is not the admission that is known, the pods before were Kueue's to
        take, and what is left of them is no evidence."""
        seen = replace(seen, workload=await self._workload(seen)) if seen.cluster is not None else seen
        if not seen.readmitted:
            return seen
        left = tuple(pod for pod in seen.pods if pod.deleting or pod.ended)
        self._evidence.retire(seen.job.key, {pod.uid for pod in left})
        self._progress.forget(seen.job.key)
        return replace(seen, pods=tuple(p for p in seen.pods if p not in left), lost=(), former=seen.former + left)

    async def _workload(self, seen: Observation) -> Workload | None:
        """Kueue's Workload of the RayCluster; None also where no Kueue is installed."""
        assert seen.cluster is not None, "a Workload stands for a RayCluster"
        try:
            found = await self._api.list(WORKLOAD, seen.job.namespace, labels=f"{workload.JOB_UID}={seen.cluster.uid}")
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return None
        return workload.read(found[0]) if found else None

    def forget(self, job: Job) -> None:
        """Drops what is remembered of a job that is over."""
        self._progress.forget(job.key)
        self._evidence.forget(job.key)

    def follow(self, job: Job, head: Pod) -> Followed:
        """What the driver of the attempt last said; it is followed from the first call on."""
        url = head_address.progress(job, head, self._stand_in)
        return self._progress.follow(job.key, url, job.submission_id, self._tokens.of(job))

    async def _cluster(self, job: Job) -> RayCluster | None:
        document = await self._api.get(RAY_CLUSTER, job.namespace, job.cluster_name)
        return None if document is None else ray_cluster.read(document)

    async def _pods(self, job: Job) -> tuple[Pod, ...]:
        found = await self._api.list(POD, job.namespace, labels=f"{names.LABEL_UID}={job.uid}")
        token, ahead = self._tokens.of(job), self._api.clock.ahead(self._clock())
        read = (pods.by_our_clock(pods.read(document), ahead) for document in found)
        return tuple(pods.ordered(pods.redacted(pod, token) for pod in read))

    async def _rising(self, seen: Observation) -> Observation:
        """Pods that are not all ready; the Events of whatever stands still are read."""
        ours = self._clock()
        now = ours + self._api.clock.ahead(ours)  # when they were made is the API server's word
        if seen.cluster is not None and workload.QUEUE in seen.job.labels and not seen.job.status.admitted_time:
            seen = replace(seen, workload=await self._workload(seen))
        if any(_CLAIM in pod.unscheduled for pod in seen.awaited):
            seen = replace(seen, pending_claim=await self._pending_claim(seen.job))
        still: str | None = None
        if seen.cluster is not None and not seen.pods and now - clock.seconds(seen.cluster.created) > _STANDS_STILL:
            still = seen.cluster.uid
        for pod in seen.awaited:
            waits = pod.scheduled and not pod.ready and pod.phase == "Pending"
            if waits and now - clock.seconds(pod.created) > _STANDS_STILL:
                still = pod.uid
                break
        if still is None:
            return seen
        warning = await self._warning(seen.job.namespace, still)
        return replace(seen, warning=warning)

    async def _pending_claim(self, job: Job) -> str:
        """What keeps a claim of the job from getting a volume; the scheduler names neither the claim nor the cause."""
        assert job.spec is not None
        for name in inputs.claims(job.spec):
            claim = await self._api.get(CLAIM, job.namespace, name)
            if claim is not None and claim.get("status", {}).get("phase") == "Pending":
                why = await self._warning(job.namespace, claim["metadata"]["uid"])
                wanted = claim["spec"].get("storageClassName")
                of = f" of storage class {wanted}" if wanted else ""
                return f"PersistentVolumeClaim {name}{of} has no volume yet" + (f": {why}" if why else "")
        return ""

    async def _warning(self, namespace: str, uid: str) -> str:
        # what the scheduler says stands in the pod's conditions, and its Events outlive their cause
        selector = f"involvedObject.uid={uid},type=Warning,reason!=FailedScheduling"
        events = await self._api.list(EVENT, namespace, fields=selector)
        if not events:
            return ""
        newest = max(events, key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or "")
        return f"{newest['involvedObject']['name']}: {newest.get('message', '')}"

    async def _arriving(self, seen: Observation) -> Observation:
        """All pods are there: is the head locked, and does it know the submission already?"""
        job, pod = seen.job, seen.head_pod
        assert pod is not None, "assembled pods have a head"
        base, token = head_address.dashboard(job, pod, self._stand_in), self._tokens.of(job)
        lock, against = await self._ray_jobs.lock(base, token)
        if lock is not Lock.UNKNOWN and pod.auth_mode != "token":
            lock, against = Lock.OPEN, f"RAY_AUTH_MODE of pod {pod.name} is {pod.auth_mode or 'not set'}"
        head = Head(lock=lock, silence=against)
        if lock is Lock.ENFORCED:
            try:
                ray_job = await self._ray_jobs.find(base, token, job.submission_id)
                head = Head(lock=lock, asked=True, ray_job=ray_job)
            except HeadSilent as silence:
                head = Head(lock=lock, silence=str(silence))
        return replace(seen, head=head)

    async def _running(self, seen: Observation) -> Observation:
        """The driver tells; Ray's Jobs API is asked where it does not."""
        job, pod = seen.job, seen.head_pod
        if pod is None or (pod.address is None and self._stand_in is None):
            # its last lines are the evidence of a head that went before anybody looked
            return replace(seen, progress=self._progress.last(job.key, job.submission_id))
        driver = self.follow(job, pod)
        head: Head | None = None
        if driver.silence:
            head = Head(silence=driver.silence)
            try:
                base = head_address.dashboard(job, pod, self._stand_in)
                ray_job = await self._ray_jobs.find(base, self._tokens.of(job), job.submission_id)
                head = Head(asked=True, ray_job=ray_job, silence=driver.silence)
            except HeadSilent as silence:
                head = Head(silence=f"{driver.silence}; {silence}")
        return replace(seen, head=head, progress=driver.progress, silent_since=driver.silent_since)


def _changed(seen: Observation) -> bool:
    """Whether the pods of a RayCluster that a queue admitted are not those that were ready."""
    cluster = seen.job.status.cluster
    if cluster is None or cluster.admission is None or cluster.pod_set is None:
        return False
    return cluster.pod_set != seen.pod_set
