"""A property of all histories: whatever happens to a job, its status stays sound. The rules are played over random
sequences of what may be seen; the world reacts to what they do as the API server, KubeRay and a driver would."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.operator import documents
from tests.operator.observations import NOW, UID, ray_cluster
from tests.operator.observations import job as make_job
from tests.operator.observations import pod as make_pod

from simplerl_api.progress import Progress
from simplerl_api.status import Phase, Status
from simplerl_operator.clock import rfc3339
from simplerl_operator.decide.decision import Action, Decision
from simplerl_operator.decide.rules import decide
from simplerl_operator.decide.status import MAX_ATTEMPTS, compose
from simplerl_operator.observe.job import Job
from simplerl_operator.observe.observation import Head, Inputs, Lock, Observation, RayJob, RayJobState
from simplerl_operator.observe.pods import Pod
from simplerl_operator.observe.ray_cluster import Group, RayCluster

BACKOFF_LIMIT = 2
PASSES = [1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 61.0, 700.0]
"""Seconds between two looks."""
FAILURES = ["LostRank", "InvalidInput", "InternalError", "TimedOut", "NonFinite"]
EVENTS = [
    "nothing", "pods appear", "pods ready", "step", "succeed", "fail", "drained", "head ends", "worker ends", "preempt",
    "cluster goes", "pods go", "forget", "suspend", "resume", "stop", "silence", "look", *["advance"] * 30,
]  # fmt: skip


ENGINES = ["engines come", "engines go", "engines are wanted"]
ELASTIC_EVENTS = [*EVENTS, *ENGINES * 8]


@dataclass
class World:
    """Everything outside of the operator."""

    status: Status = field(default_factory=Status)
    suspend: bool = False
    generation: int = 1
    clusters: dict[str, RayCluster] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    lost: list[Pod] = field(default_factory=list)
    jobs: dict[str, RayJob] = field(default_factory=dict)
    progress: Progress | None = None
    silent: bool = False
    made: int = 0
    now: float = NOW

    def job(self) -> Job:
        recovery = {"backoffLimit": BACKOFF_LIMIT, "startupDeadlineSeconds": 600, "stallTimeoutSeconds": 600}
        made = make_job(self.status.document(), recovery=recovery, suspend=self.suspend, **self.sections())
        return replace(made, generation=self.generation)

    def sections(self) -> dict[str, Any]:
        """Of the spec, what makes the job another one."""
        return {}

    def look(self) -> Observation:
        """What the observer would report."""
        job = self.job()
        if not job.started:
            return Observation(job=job, inputs=None if self.suspend else Inputs())
        cluster = self.clusters.get(job.cluster_name)
        seen = Observation(
            job=job,
            cluster=cluster,
            pods=tuple(p for p in self.pods if p.attempt == job.cluster_attempt),
            former=tuple(p for p in self.pods if p.attempt != job.cluster_attempt),
            lost=tuple(p for p in self.lost if p.attempt == job.cluster_attempt),
        )
        if job.finished or job.status.phase in (Phase.RECOVERING, Phase.SUSPENDED):
            return replace(seen, lost=())
        known = self.jobs.get(job.submission_id)
        if job.submitted:
            spoke = self.progress if self.progress and self.progress.submission_id == job.submission_id else None
            head = Head(asked=True, ray_job=known, silence="no answer") if self.silent or spoke is None else None
            return replace(seen, progress=spoke, head=head, silent_since=self.now if head else None)
        if seen.assembled:
            return replace(seen, head=Head(lock=Lock.ENFORCED, asked=True, ray_job=known))
        return seen

    def act(self, decision: Decision, job: Job) -> None:
        name = job.cluster_name
        match decision.action:
            case Action.CREATE_CLUSTER:
                self.made += 1
                assert not self.pods, "attempts overlap"
                self.clusters[name] = replace(ray_cluster(), name=name, uid=f"c{self.made}")
            case Action.SUBMIT:
                assert job.submission_id not in self.jobs, "a submission is made twice"
                self.jobs[job.submission_id] = RayJob(state=RayJobState.RUNNING)
                self.progress = Progress.model_validate(
                    documents.progress(job.submission_id, lastProgress=self.now, state="Starting")
                )
                self.silent = False
            case Action.RELEASE:
                self.clusters.pop(name, None)

    def happen(self, event: str, pick: int) -> None:
        job = self.job()
        cluster = self.clusters.get(job.cluster_name)
        say = self._say
        if event == "advance":
            gone = cluster is None and self.pods
            event = "pods go" if gone else "pods appear" if not self.pods else "step" if job.submitted else "pods ready"
        match event:
            case "pods appear" if cluster is not None and not self.pods:
                self.pods = [
                    make_pod(role, n, uid=f"{cluster.uid}-{role}-{n}", ready=False, attempt=job.cluster_attempt)
                    for role, n in (("head", 0), ("worker", 0), ("worker", 1), ("worker", 2))
                ]
            case "pods ready":
                self.pods = [replace(p, ready=True) for p in self.pods if p.phase == "Running"]
            case "step":
                step = max(0, (self.status.training.step if self.status.training else 0) + pick % 3 - 1)
                saved = {"checkpoint": {"step": step, "path": "/c"}} if pick % 2 else {}
                say(state="Training", step=step, last_progress=self.now, **saved)
            case "succeed":
                say(state="Succeeded", step=60)
            case "fail":
                failure = {"reason": FAILURES[pick % len(FAILURES)], "message": "it ended"}
                say(state="Failed", failure=failure)
            case "drained":
                say(state="Drained")
            case "head ends" | "worker ends" | "preempt" if self.pods:
                which = 0 if event == "head ends" else pick % len(self.pods)
                taken = {"disruption": "PreemptionByScheduler"} if event == "preempt" else {}
                self.pods[which] = replace(self.pods[which], phase="Failed", ready=False, **taken)
            case "cluster goes":
                self.clusters.clear()
            case "pods go" if cluster is None:
                self.lost, self.pods = self.lost + self.pods, []
            case "forget":
                self.jobs.clear()
                self.silent = True
            case "suspend" | "resume":
                wanted = event == "suspend"
                self.generation += wanted != self.suspend
                self.suspend = wanted
            case "stop":
                self.jobs = {k: replace(v, state=RayJobState.STOPPED) for k, v in self.jobs.items()}
                self.silent = True
            case "silence":
                self.silent = True

    def _say(self, **changes: Any) -> None:
        if self.progress is not None and not self.progress.finished:
            document = self.progress.document() | documents_of(changes)
            self.progress = Progress.model_validate({**document, "sequence": self.progress.sequence + 1})
            self.silent = False


@dataclass
class ElasticWorld(World):
    """One in which pods of engines come and go: one pod of ranks, one to three of engines."""

    def sections(self) -> dict[str, Any]:
        rollout = {**documents.TINY["rollout"], "elastic": {"minEngines": 2, "maxEngines": 6}}
        return {"rollout": rollout, "cluster": {"gpus": 8, "gpusPerNode": 2, "cpuOnly": True}}

    def look(self) -> Observation:
        self._kuberay()
        return super().look()

    def act(self, decision: Decision, job: Job) -> None:
        name = job.cluster_name
        if decision.action is Action.SCALE_ENGINES:
            wanted, cluster = decision.engine_pods, self.clusters[name]
            assert wanted is not None
            assert 1 <= wanted.replicas <= 3
            assert wanted.group == cluster.groups["engines"]
            there = {p.name: p for p in self._engines()}
            assert set(wanted.leaving) <= there.keys()
            assert all(self._holds_none(there[n]) for n in wanted.leaving), "no engine is taken away"
            assert len(there) - len(wanted.leaving) <= wanted.replicas, "KubeRay never chooses"
            self._group(name, wanted.replicas, wanted.leaving)
        super().act(decision, job)
        if decision.action is Action.CREATE_CLUSTER:
            self._group(name, 3)

    def happen(self, event: str, pick: int) -> None:
        cluster = self.clusters.get(self.job().cluster_name)
        engines = self._engines()
        match event:
            case "pods appear" | "advance" if cluster is not None and not self.pods:
                of = {"uid": f"{cluster.uid}-{self.made}", "ready": False, "attempt": self.job().cluster_attempt}
                self.pods = [make_pod(role, **{**of, "uid": f"{of['uid']}-{role}"}) for role in ("head", "worker")]
            case "engines come":
                self.pods = [replace(p, phase="Running", ready=True) if p.passing else p for p in self.pods]
            case "engines go" if engines:
                gone = engines[pick % len(engines)]
                self.pods.remove(gone)
                if pick % 2:
                    self.lost.append(replace(gone, phase="Failed", ready=False, disruption="EvictionByEvictionAPI"))
            case "engines are wanted":
                held = sorted(p.address or "" for p in engines if p.ready)[: 1 + pick % 3]
                idle = [p.address for p in engines if p.ready and p.address not in held]
                self._say(engines={"current": 2, "desired": 1 + pick % 6, "idle": idle})
            case "pods ready":
                super().happen(event, pick)
                self.pods = [replace(p, phase="Running", ready=True) if p.passing else p for p in self.pods]
            case "worker ends" | "preempt" if self.pods:
                # of the pods that it cannot do without: what becomes of the others is an event of its own
                others, self.pods = engines, [p for p in self.pods if not p.passing]
                super().happen(event, pick)
                self.pods += others
            case _:
                super().happen(event, pick)

    def _engines(self) -> list[Pod]:
        return [p for p in self.pods if p.passing]

    def _holds_none(self, pod: Pod) -> bool:
        said = self.progress.engines if self.progress is not None else None
        return pod.phase == "Pending" or (said is not None and pod.address in said.idle)

    def _group(self, name: str, replicas: int, leaving: tuple[str, ...] = ()) -> None:
        groups = {"engines": Group(index=1, replicas=replicas, leaving=leaving)}
        self.clusters[name] = replace(self.clusters[name], groups=groups)

    def _kuberay(self) -> None:
        """Deletes the pods that it is told to, and makes those that are missing."""
        job = self.job()
        cluster = self.clusters.get(job.cluster_name) if job.started else None
        if cluster is None or not self.pods:
            return
        group = cluster.groups["engines"]
        self.pods = [p for p in self.pods if p.name not in group.leaving]
        for _ in range(group.replicas - len(self._engines())):
            self.made += 1
            name, attempt = f"engines-{self.made}", job.cluster_attempt
            made = make_pod("worker", group="engines", attempt=attempt, phase="Pending", ready=False)
            self.pods.append(replace(made, name=name, uid=name, address=f"10.0.0.{self.made}"))


def documents_of(changes: dict[str, Any]) -> dict[str, Any]:
    return {"lastProgress" if k == "last_progress" else k: v for k, v in changes.items()}


def sound(before: Status, after: Status, world: World) -> None:
    """What holds of every status, and of every two in a row."""
    by_type = {c.type: c.status for c in after.conditions}
    if after.phase is None:
        return
    assert after.observed_generation == world.generation
    assert {c.observed_generation for c in after.conditions} == {world.generation}
    # no two fields contradict
    assert [by_type["Ready"], by_type["Reconciling"], by_type["Stalled"]].count("True") == 1
    assert (by_type["Succeeded"] == "True") == (after.phase is Phase.SUCCEEDED)
    assert (by_type["Succeeded"] == "False") == (after.phase is Phase.FAILED)
    assert (by_type["Suspended"] == "True") == (after.phase is Phase.SUSPENDED)
    assert (after.completion_time is not None) == (after.phase in (Phase.SUCCEEDED, Phase.FAILED))
    assert (after.failure is not None) == (after.phase is Phase.FAILED)
    assert after.next_retry_time is None or after.phase is Phase.RECOVERING
    assert (after.active_since is None) == (
        after.start_time is None or after.phase in (Phase.SUSPENDED, Phase.SUCCEEDED, Phase.FAILED)
    )
    # attempts are counted one by one, and charged within their limit
    numbers = [a.number for a in after.attempts]
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= MAX_ATTEMPTS
    assert (after.attempt or 0) - (before.attempt or 0) in (0, 1)
    assert after.failures <= BACKOFF_LIMIT + 1
    # and forgiven once the run got further
    if after.failures < before.failures:
        assert after.checkpoint is not None
        assert after.checkpoint.step > (before.failure_step or 0)
    assert after.interruptions >= before.interruptions
    assert after.active_seconds >= before.active_seconds
    # 3, 9: what is over stays as it is
    if before.completion_time is not None:
        assert after.phase is before.phase
        assert after.failure == before.failure
        assert after.attempts == before.attempts
    # steps never fall within an attempt
    if before.training is not None and after.attempt == before.attempt:
        assert after.training is not None
        assert after.training.step >= before.training.step


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9), st.sampled_from(PASSES)), max_size=60))
def test_whatever_happens_a_status_is_sound(history: list[tuple[str, int, float]]) -> None:
    world = World()
    for event, pick, passes in history:
        world.now += passes
        world.happen(event, pick)
        for _ in range(3):  # a few turns of the operator, as far as it goes without news
            seen = world.look()
            decision = decide(seen, world.now)
            after = Status.model_validate(compose(seen, decision, world.now).document())
            sound(world.status, after, world)
            world.status = after
            world.act(decision, seen.job)
            if decision.wake != 0.0:
                break


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(ELASTIC_EVENTS), st.integers(0, 9), st.sampled_from(PASSES)), max_size=60),
    st.booleans(),
)
def test_whatever_happens_to_pods_of_engines_an_attempt_goes_on(
    history: list[tuple[str, int, float]], trained: bool
) -> None:
    world = ElasticWorld()
    if trained:
        history = [(event, 0, 1.0) for event in ("look", "pods appear", "pods ready", "step")] + history
    for event, pick, passes in history:
        attempts, charged = world.status.attempts, world.status.failures
        world.now += min(passes, 61.0) if event in ENGINES else passes
        world.happen(event, pick)
        for _ in range(3):
            seen = world.look()
            decision = decide(seen, world.now)
            after = Status.model_validate(compose(seen, decision, world.now).document())
            sound(world.status, after, world)
            if event in ENGINES and world.status.phase is Phase.TRAINING and not world.silent and not world.suspend:
                assert (after.phase, after.attempts, after.failures) == (Phase.TRAINING, attempts, charged)
            world.status = after
            world.act(decision, seen.job)
            if decision.wake != 0.0:
                break


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9), st.sampled_from(PASSES)), max_size=25))
def test_whatever_happened_a_world_that_is_well_ends_the_job(history: list[tuple[str, int, float]]) -> None:
    """No state is a dead end: once pods come and drivers work again, the job succeeds unless it has failed already."""
    world = World()
    for event, pick, passes in [*history, ("resume", 0, 1.0), *WELL * 8]:
        world.now += passes
        world.happen(event, pick)
        for _ in range(4):
            seen = world.look()
            decision = decide(seen, world.now)
            world.status = Status.model_validate(compose(seen, decision, world.now).document())
            world.act(decision, seen.job)
    assert world.status.phase in (Phase.SUCCEEDED, Phase.FAILED)
    assert not world.clusters


WELL = [
    ("pods go", 0, 1.0), ("look", 0, 400.0), ("pods appear", 0, 1.0), ("pods ready", 0, 1.0), ("step", 2, 1.0),
    ("succeed", 0, 1.0),
]  # fmt: skip


def test_the_world_of_the_histories_reaches_training_and_the_end() -> None:
    world = World()
    for event, pick, passes in WELL * 2:
        world.now += passes
        world.happen(event, pick)
        for _ in range(4):
            seen = world.look()
            decision = decide(seen, world.now)
            world.status = Status.model_validate(compose(seen, decision, world.now).document())
            world.act(decision, seen.job)
    assert world.status.phase is Phase.SUCCEEDED
    assert world.status.attempt == 1
    assert world.status.start_time is not None
    assert world.status.start_time <= rfc3339(world.now)
    assert UID
