"""The opening of a session: inputs are read, processes start, and the newest checkpoint is taken up."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import ray

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_api.run import Run
from simplerl_trainer import fingerprints, inputs, own_ray
from simplerl_trainer.checkpoints import other_run
from simplerl_trainer.checkpoints.fence import Fence
from simplerl_trainer.data.cursor import Cursor
from simplerl_trainer.launch import launch
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.log import Log
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.rewards import score as rewards
from simplerl_trainer.rewards import texts as reward_texts
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.surroundings import Surroundings
from simplerl_trainer.session import Session
from simplerl_trainer.site import reserve


@asynccontextmanager
async def open_session(
    run: Run, reporter: Reporter, control: Control, log: Log, address: str | None
) -> AsyncIterator[Session]:
    """Starts the run's processes (on the Ray cluster at `address`, or on one of our own) and ends them."""
    fence = Fence(Path(run.output), run.attempt)
    fence.claim()
    # all that can be wrong with rewards, data and model is said before GPUs are taken
    reporter.activity("inputs")
    if run.resume_from is not None:
        await asyncio.to_thread(other_run.checkpoint, run.resume_from)
    surroundings = Surroundings([variable.name for variable in run.spec.cluster.env], log.redaction)
    await rewards.check(run.spec.rewards, surroundings=surroundings)
    before = fingerprints.read(Path(run.output))
    commits = await asyncio.to_thread(inputs.commits, run, before)
    judge_folders = await asyncio.to_thread(inputs.judge_folders, run, commits)
    readers = await asyncio.to_thread(reward_texts.open_readers, run.spec.rewards, judge_folders)
    asked = await asyncio.to_thread(inputs.read_questions, run, commits, log)
    folder = await asyncio.to_thread(inputs.model_before_placement, run, commits)
    made = await asyncio.to_thread(inputs.make_inputs, run, asked, folder, log) if folder else None
    _connect(run, address)
    try:
        reporter.activity("placement")
        site = await reserve(run, address is None, commits, judge_folders, control.engines)
        made = made or await asyncio.to_thread(inputs.make_inputs, run, asked, site.local_model, log)
        await asyncio.to_thread(inputs.compare, run, before, asked, commits, site.local_model, log)
        reporter.activity("models")
        log.info("ranks and engines start", ranks=run.plan.ranks, engines=run.plan.engines, nodes=len(site.nodes))
        started = await launch(run, site, made.stop_token_ids, made.vocabulary, control, log)
        reporter.versions(started.versions)
        if started.without_mps:
            log.warning("engines on one GPU take turns, without CUDA MPS", why=started.without_mps)
        async with Scorer(run.spec.rewards, str(site.local_model), surroundings=surroundings) as scorer:
            start = Cursor(run.spec.training.seed, len(made.prompts))
            session = Session(run, made, started, scorer, start, reporter, log, fence, readers, control.drain)
            await session.resume()
            await session.trackers.open()
            # also proves the roads before the first rollout
            await session.turns.to_rollout(version=session.steps_done)
            reporter.training(session.steps_done)
            log.info("training begins", step=session.steps_done, prompts=len(made.prompts))
            failed = True
            try:
                yield session
                failed = False
            finally:
                await session.trackers.close(failed)
                await started.engines.close()
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raises OSError where nothing listens at host:port: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


def _connect(run: Run, address: str | None) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address is not None:
        try:
            _knock(address)
            ray.init(address=address, namespace=run.submission_id, log_to_driver=False, configure_logging=False)
        except OSError as e:
            raise TrainerFailure(
                FailureReason.PLACEMENT_TIMEOUT,
                f"no Ray cluster answers at {address} ({e}): check --address, or leave it out to use this machine",
            ) from e
        return
    cpu_only = run.spec.cluster.cpu_only
    own_ray.start(max(run.plan.gpus, os.cpu_count() or 1) if cpu_only else None, cpu_only=cpu_only)
