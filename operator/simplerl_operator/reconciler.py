"""observe, decide, build, apply: one turn for one job."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from simplerl_api import run
from simplerl_api.status import Phase, Status
from simplerl_operator import head_address
from simplerl_operator.apply import children, events, status
from simplerl_operator.decide import happenings, rules
from simplerl_operator.decide import status as new_status
from simplerl_operator.decide.decision import Action, Begin, Decision, EnginePods
from simplerl_operator.decide.happenings import Happening
from simplerl_operator.kinds import JOB
from simplerl_operator.kubernetes_api import KubernetesApi, Refused
from simplerl_operator.metrics import Metrics
from simplerl_operator.observe import job as jobs
from simplerl_operator.observe.evidence import Evidence
from simplerl_operator.observe.job import Job, Key
from simplerl_operator.observe.observation import Head, Lock, Observation, RayJob, RayJobState
from simplerl_operator.observe.observer import Observer
from simplerl_operator.progress_client import ProgressClient
from simplerl_operator.ray_jobs import RayJobs, SubmissionRefused
from simplerl_operator.settings import Settings
from simplerl_operator.tokens import Tokens

_STEADY = frozenset({Phase.PENDING, Phase.PROVISIONING, Phase.STARTING, Phase.TRAINING})
"""Phases that call for nothing once they are written but what their decision asks for."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Written:
    """What became of a new status."""

    stands: bool = True
    """Whether the decision still rests on what is there."""
    due: float | None = None
    """Seconds after which figures that had to wait may be written."""
    happened: Sequence[Happening] = ()


class Reconciler:
    """Brings one job at a time a step further. It does not care what called for it."""

    def __init__(
        self,
        api: KubernetesApi,
        ray_jobs: RayJobs,
        progress: ProgressClient,
        evidence: Evidence,
        metrics: Metrics,
        settings: Settings,
        tokens: Tokens,
        clock: Callable[[], float],
    ) -> None:
        """`clock`: seconds since 1970."""
        self._api = api
        self._ray_jobs = ray_jobs
        self._progress = progress
        self._evidence = evidence
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._pace = status.Pace()
        self._own: dict[Key, str] = {}  # the resourceVersion that our newest write made, by job
        self._tokens = tokens
        self._observer = Observer(
            api, ray_jobs, progress, evidence, tokens, settings.head_address, clock,
            reads_nodes=not settings.namespaces,
        )  # fmt: skip

    def wrote(self, key: Key, version: str) -> bool:
        """Whether a job's resourceVersion is what our own newest write made of it."""
        return self._own.get(key) == version

    async def __call__(self, key: Key) -> float | None:
        """One turn. Seconds until the next, or None where an event will call for it."""
        with self._metrics.reconcile_seconds.time():
            return await self._turn(key)

    async def _turn(self, key: Key) -> float | None:
        document = await self._api.get(JOB, *key)
        if document is None:
            self._progress.forget(key)
            self._evidence.forget(key)
            self._pace.forget(key)
            self._own.pop(key, None)
            self._metrics.seen(key, None)
            return None
        job = jobs.read(document, self._settings.trainer_image, self._settings.job_defaults)
        seen = await self._observer.look(job)
        now = self._clock()
        decision = rules.decide(seen, now)
        written = await self._write(seen, decision, now)
        if not written.stands:
            return 0.05  # the job changed meanwhile: look again before doing anything
        if decision.begin in (Begin.NEW_CLUSTER, Begin.SAME_CLUSTER):
            self._evidence.forget(key)  # of the attempt before
        telling = asyncio.create_task(self._tell(job, written.happened, now))
        try:
            await self._act(seen, decision)
        except (Refused, SubmissionRefused) as refusal:
            return await self._say(key, str(refusal))
        finally:
            await telling
        if decision.action is Action.SUBMIT:
            return await self._submitted(seen)
        if decision.phase not in (job.status.phase, None, *_STEADY):
            return 0.0  # what follows from it is done at once: our own writes call for nothing
        return _earliest(decision.wake, written.due)

    async def _submitted(self, seen: Observation) -> float | None:
        """Says that Ray has taken the submission, and follows the driver from then on: it calls for the next turn."""
        head = seen.head_pod
        assert head is not None, "the driver was submitted to a head"
        known = Head(lock=Lock.ENFORCED, asked=True, ray_job=RayJob(state=RayJobState.PENDING))
        seen, now = replace(seen, head=known), self._clock()
        decision = rules.decide(seen, now)
        written = await self._write(seen, decision, now)
        if not written.stands:
            return 0.05
        await self._tell(seen.job, written.happened, now)
        self._observer.follow(seen.job, head)
        return _earliest(decision.wake, written.due)

    async def _say(self, key: Key, refusal: str) -> float | None:
        """Says on the job what refused its action; looks anew, since the status may just have been written."""
        document = await self._api.get(JOB, *key)
        if document is None:
            return None
        seen = await self._observer.look(jobs.read(document, self._settings.trainer_image, self._settings.job_defaults))
        seen, now = replace(seen, refusal=refusal), self._clock()
        decision = rules.decide(seen, now)
        written = await self._write(seen, decision, now)
        await self._tell(seen.job, written.happened, now)
        return _earliest(decision.wake, written.due) if written.stands else 0.05

    async def _write(self, seen: Observation, decision: Decision, now: float) -> _Written:
        """Writes the status where it differs."""
        job = seen.job
        after = new_status.compose(seen, decision, now)
        self._metrics.seen(job.key, after.phase)
        due = new_status.worth_writing(job.status, after, now, self._settings.figures_seconds)
        if due == 0 and new_status.figures_alone(job.status, after):
            due = self._pace.wait(job.key, time.monotonic())
        if due is None or due > 0:
            return _Written(due=due)
        try:
            self._own[job.key] = await status.write(self._api, job, after)
        except Refused as refusal:
            if refusal.conflict or refusal.status == 404:
                return _Written(stands=False)
            raise
        self._metrics.status_writes.inc()
        return _Written(happened=self._happened(job, after))

    def _happened(self, job: Job, after: Status) -> Sequence[Happening]:
        found = happenings.between(job.status, after)
        for happening in found:
            _log.info(
                "%s", happening.reason,
                extra={"job": job.name, "namespace": job.namespace, "phase": after.phase, "why": happening.message},
            )  # fmt: skip
        return found

    async def _tell(self, job: Job, happened: Sequence[Happening], now: float) -> None:
        for happening in happened:
            await events.post(self._api, job, happening, now)

    async def _act(self, seen: Observation, decision: Decision) -> None:
        job = seen.job
        if decision.action is not Action.NOTHING:
            self._api.assure_writer()  # Ray does not know of the Lease
        match decision.action:
            case Action.NOTHING:
                return
            case Action.CREATE_CLUSTER:
                await children.create(self._api, job, self._tokens.of(job), self._settings.reach)
            case Action.SUBMIT:
                assert seen.head_pod is not None, "a head was found before the driver is submitted"
                base = head_address.dashboard(job, seen.head_pod, self._settings.head_address)
                entrypoint = run.entrypoint(job.attempt, job.submission_id, job.cluster_name, job.status.adaptations)
                await self._ray_jobs.submit(base, self._tokens.of(job), job.submission_id, entrypoint)
            case Action.DRAIN:
                assert seen.head_pod is not None, "a head was found before its driver is asked to drain"
                base = head_address.progress(job, seen.head_pod, self._settings.head_address)
                await self._progress.control(base, self._tokens.of(job), {"drain": True})
            case Action.SET_ENGINES:
                assert seen.head_pod is not None, "a head was found before its driver is asked for engines"
                base = head_address.progress(job, seen.head_pod, self._settings.head_address)
                await self._progress.control(base, self._tokens.of(job), {"engines": job.wanted_engines})
            case Action.SCALE_ENGINES:
                assert decision.engine_pods is not None, "the decision says how many"
                await self._scale(job, decision.engine_pods)
            case Action.DELETE_JOB:
                await self._api.delete(JOB, job.namespace, job.name, job.uid)
            case Action.RELEASE:
                assert seen.cluster is not None, "a RayCluster was found before it is released"
                await children.release(self._api, job, seen.cluster.uid)

    async def _scale(self, job: Job, wanted: EnginePods) -> None:
        """Another number of pods of engines; where it is refused, the next look decides anew."""
        try:
            await children.scale(self._api, job, wanted)
        except Refused as refusal:
            why = {"job": job.name, "namespace": job.namespace, "why": str(refusal)}
            _log.warning("pods of engines could not be asked for", extra=why)
            return
        added = wanted.replicas - wanted.group.replicas
        self._metrics.engine_pods.labels("wanted" if added > 0 else "given back").inc(abs(added))


def _earliest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
