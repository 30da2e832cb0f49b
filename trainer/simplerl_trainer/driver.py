"""The driver: the Ray job's entrypoint. It holds no GPU and imports neither vllm nor deepspeed.

python -m simplerl_trainer.driver RUN.json [--attempt N --submission ID [--adapt PATH=VALUE ...]]
"""

import argparse
import asyncio
import os
import sys
import tempfile
import traceback
from pathlib import Path

from simplerl_api import adaptations, credentials
from simplerl_api import run as runs
from simplerl_api.failures import EXIT_CODES, FailureReason, TrainerFailure
from simplerl_api.run import Run
from simplerl_trainer.drain import Drained
from simplerl_trainer.opening import open_session
from simplerl_trainer.progress import log
from simplerl_trainer.progress.control import Control
from simplerl_trainer.progress.reporter import Reporter
from simplerl_trainer.progress.server import Server
from simplerl_trainer.train import train

TOKEN_VARIABLE = "RAY_AUTH_TOKEN"
LINGER_SECONDS = 30.0
"""How long the end of the run is served for the operator to read."""


async def drive(run: Run, *, token: str | None, address: str | None, local: bool) -> int:
    """Runs one attempt to its end; returns the exit code of its reason, 0 where it succeeded.

    The last line on stdout holds the final progress document (`"event": "final"`), so that it can be read from the
    job's log when nobody asked for it in time.
    """
    logger, fault = _open_log(run, token, console=local and sys.stdout.isatty())
    reporter = Reporter(run.submission_id, run.spec.training.steps, logger)
    control = Control(run.plan, run.spec.rollout.engines if run.plan.min_engines is not None else None)
    async with Server(
        reporter, control, token=token, port=run.progress_port, host="127.0.0.1" if local else "0.0.0.0"
    ) as server:
        logger.info("driver started", submission=run.submission_id, attempt=run.attempt, progress_port=server.port)
        code = _failed(fault, reporter, logger) if fault else await _attempt(run, reporter, control, logger, address)
        if not local:
            logger.final(reporter.document())
            await server.final_read(LINGER_SECONDS)
    return code


def _open_log(run: Run, token: str | None, console: bool) -> tuple[log.Log, TrainerFailure | None]:
    """The log in the run's folder; where that cannot be written, one elsewhere and the reason to end."""
    secrets, name = [*([token] if token else []), *credentials.values(run.spec, os.environ)], "driver.log"
    try:
        Path(run.output).mkdir(parents=True, exist_ok=True)
        return log.Log(Path(run.output) / name, secrets, console), None
    except OSError as e:
        message = (
            f"the run's folder {run.output} cannot be written ({e.strerror}): check the claim's permissions and room"
        )
        failure = TrainerFailure(FailureReason.CHECKPOINT_FAILED, message)
        return log.Log(Path(tempfile.mkdtemp()) / name, secrets, console), failure


async def _attempt(run: Run, reporter: Reporter, control: Control, logger: log.Log, address: str | None) -> int:
    try:
        await _train(run, reporter, control, logger, address)
    except Drained:
        reporter.drained()
        logger.info("run drained", step=reporter.document().step)
        return 0
    except TrainerFailure as e:
        failure = e
    except Exception as e:  # noqa: BLE001 (the process's last boundary: logged whole, named InternalError)
        logger.error("the trainer failed", traceback=traceback.format_exc())
        failure = TrainerFailure(FailureReason.INTERNAL, f"{type(e).__name__}: {e}")
    else:
        reporter.succeeded()
        logger.info("run succeeded", step=run.spec.training.steps)
        return 0
    return _failed(failure, reporter, logger)


async def _train(run: Run, reporter: Reporter, control: Control, logger: log.Log, address: str | None) -> None:
    """Raises Drained where the run is asked to drain before its end; its last finished step is saved then."""
    opened = asyncio.Event()

    async def work() -> None:
        async with open_session(run, reporter, control, logger, address) as session:
            opened.set()
            try:
                await train(session)
            except Drained:
                await session.checkpoint_finished()
                raise

    task, asked = asyncio.ensure_future(work()), asyncio.ensure_future(control.drain.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and not opened.is_set():
            task.cancel()  # nothing has been trained yet
        await asyncio.gather(task, return_exceptions=True)
    finally:
        asked.cancel()
        task.cancel()
    if task.cancelled():
        raise Drained
    task.result()


def _failed(failure: TrainerFailure, reporter: Reporter, logger: log.Log) -> int:
    reporter.failed(failure.reason, failure.message)
    logger.error("run failed", reason=failure.reason.value, why=failure.message)
    return EXIT_CODES[failure.reason]


def main() -> None:
    """Reads the run's file and drives it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the run's file")
    parser.add_argument("--attempt", type=int, help="number of the attempt, where it is not the file's")
    parser.add_argument("--submission", help="its submission id, likewise")
    parser.add_argument("--adapt", action="append", default=[], help="a field of its spec that has changed since")
    given = parser.parse_args()
    own = {"attempt": given.attempt, "submission_id": given.submission}
    run = runs.read(given.run).model_copy(update={name: value for name, value in own.items() if value is not None})
    run = adaptations.taken_up(run, given.adapt)
    sys.exit(asyncio.run(drive(run, token=os.environ.get(TOKEN_VARIABLE), address="auto", local=False)))


if __name__ == "__main__":
    main()
