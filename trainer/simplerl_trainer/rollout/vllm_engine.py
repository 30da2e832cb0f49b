"""A rollout engine on vLLM: one process, its step loop on a thread of its own.

Only that thread touches vLLM. Other threads leave it commands and take finished responses, so a call costs them a
queue's put, however long a step takes:

    submit, abort, load, sleep, wake ──commands──▶ step loop ──finished──▶ finished(wait)

With tensor parallelism the model lives in worker processes, one for each GPU, and this one only schedules. They end
together: workers watch for this process's end, and this one ends when a worker does, so that whoever watches an engine
has one process to watch.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from simplerl_api.failures import FailureReason, TrainerFailure
from simplerl_trainer.rollout import faults, vllm_build, vllm_requests, worker_faults
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.weights.buckets import Bucket
from simplerl_trainer.weights.road import Receiver


class VllmEngine:
    """Implements simplerl_trainer.rollout.protocol.Engine on vLLM 0.26 to 0.32, on CPU and CUDA."""

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._changed = threading.Condition()  # guards the six below
        self._open: dict[int, Request] = {}
        self._finished: list[Finished] = []
        self._error: BaseException | None = None
        self._broken: TrainerFailure | None = None
        self._version = 0
        self._aborts = 0
        self._setup: EngineSetup | None = None
        self._llm: Any = None
        self._thread = threading.Thread(target=self._loop, name="vllm-steps", daemon=True)

    def start(self, setup: EngineSetup) -> dict[str, str]:
        """Loads the model; returns versions.

        Raises TrainerFailure(RolloutOutOfMemory) where the weights or the KV cache do not fit.
        """
        if self._setup is not None:
            raise RuntimeError("the engine is started already")
        self._setup = setup
        self._thread.start()
        versions: dict[str, str] = self._call(lambda: self._build(setup))
        return versions

    def submit(self, requests: Sequence[Request]) -> None:
        """Queues requests; returns at once.

        Raises ValueError where a request is longer than the engine's max_model_len, its id is in use, or vLLM would
        not take its temperature as it is.
        """
        assert self._setup is not None, "the engine is not started"
        for r in requests:
            vllm_requests.check(r, self._setup.max_model_len)
        calls = [vllm_requests.to_vllm(r, self._setup.stop_token_ids) for r in requests]
        with self._changed:
            self._check_error()
            if self._broken is not None:
                raise self._broken
            ids = [r.id for r in requests]
            used = [i for i in ids if i in self._open]
            if used or len(set(ids)) < len(ids):
                raise ValueError(f"request id {(used or ids)[0]} is in use: every open request needs an id of its own")
            self._open.update((r.id, r) for r in requests)
        self._leave(lambda: self._add(calls))

    def finished(self, wait: float) -> list[Finished]:
        """Responses that finished since the last call; waits up to `wait` seconds for the first, or for an abort.

        Raises what ended the step loop, for example TrainerFailure(RolloutOutOfMemory).
        """
        with self._changed:
            aborts = self._aborts
            self._changed.wait_for(lambda: self._finished or self._error or self._aborts != aborts, wait)
            self._check_error()
            taken, self._finished = self._finished, []
            return taken

    def abort(self, ids: Sequence[int]) -> None:
        """Forgets requests that have not finished."""
        self._call(lambda: self._abort(ids))

    def sleep(self) -> None:
        """Gives its GPU memory back (level 2: weights are dropped); nothing on CPU."""
        self._refuse_open("sleep")
        if not self._on_cpu():
            self._call(lambda: self._llm.sleep(level=2))

    def wake(self, tags: Sequence[str]) -> None:
        """Takes memory again for `weights`, then for `kv_cache`; nothing on CPU."""
        if not self._on_cpu():
            self._call(lambda: self._llm.wake_up(tags=list(tags)))

    def load(self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], version: int) -> int:
        """Takes over the ranks' weights, each worker along its own road, and drops the prefix cache; returns the number
        of parameters loaded.

        Raises TrainerFailure(WeightSyncFailed) where requests are open, a bucket does not come, or a parameter is not
        loaded; the engine then draws nothing until another load succeeds.
        """
        self._refuse_open(f"load weights version {version}")
        loaded: int | TrainerFailure = self._call(lambda: self._load(receivers, buckets, version))
        if isinstance(loaded, TrainerFailure):
            raise loaded
        return loaded

    def version(self) -> int:
        """Version of the weights that it draws from; 0 is the model folder's."""
        with self._changed:
            return self._version

    def stop(self) -> None:
        """Ends the step loop and frees the model."""
        self._commands.put(None)
        self._thread.join(timeout=30)

    def _on_cpu(self) -> bool:
        return self._setup is not None and self._setup.cpu_only

    def _refuse_open(self, what: str) -> None:
        with self._changed:
            if self._open:
                raise TrainerFailure(
                    FailureReason.WEIGHT_SYNC_FAILED,
                    f"the engine cannot {what} while {len(self._open)} requests are unfinished: let them finish or "
                    "abort them",
                )

    def _check_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _leave(self, command: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._commands.put((command, future))
        return future

    def _call(self, command: Callable[[], Any]) -> Any:
        """Runs on the step loop's thread; the driver bounds the wait."""
        with self._changed:
            self._check_error()
        return self._leave(command).result()

    # Below: on the step loop's thread only.

    def _loop(self) -> None:
        try:
            while self._run_commands():
                if self._llm is not None and self._llm.has_unfinished_requests():
                    self._deliver(self._llm.step())
        except BaseException as error:  # noqa: BLE001 - every end of this thread is raised again by the next call
            self._end_with_workers()
            with self._changed:
                self._error = faults.named(error, "drawing samples")
                self._changed.notify_all()
            self._refuse_commands()
        finally:
            if self._llm is not None:
                self._llm.engine_core.shutdown()
                self._llm = None

    def _run_commands(self) -> bool:
        """Runs what was left, waiting where there is nothing to draw; False ends the loop."""
        while True:
            idle = self._llm is None or not self._llm.has_unfinished_requests()
            try:
                left = self._commands.get(block=idle)
            except queue.Empty:
                return True
            if left is None:
                return False
            command, future = left
            try:
                future.set_result(command())
            except Exception as error:  # noqa: BLE001 - it is raised where the command came from
                self._end_with_workers()
                named = faults.named(error, "serving a call")
                future.set_exception(named)
                with self._changed:
                    self._error = named  # a command that failed leaves vLLM in an unknown state
                    self._changed.notify_all()

    def _refuse_commands(self) -> None:
        while True:
            left = self._commands.get()
            if left is None:
                return
            left[1].set_exception(self._error)

    def _build(self, setup: EngineSetup) -> dict[str, str]:
        self._llm, versions = vllm_build.build(setup)
        return versions

    def _end_with_workers(self) -> None:
        """Ends this process where an error comes from a worker that ended."""
        if self._llm is not None and getattr(self._llm.model_executor, "is_failed", False):
            worker_faults.end()

    def _add(self, calls: Sequence[tuple[str, Any, Any]]) -> None:
        for call in calls:
            self._llm.add_request(*call)

    def _deliver(self, outputs: Sequence[Any]) -> None:
        with self._changed:
            for output in outputs:
                (drawn,) = output.outputs
                request = self._open.pop(int(output.request_id), None)
                if request is not None and drawn.finish_reason in vllm_requests.FINISH:
                    self._finished.append(vllm_requests.from_vllm(request, drawn, self._version))
            if self._finished:
                self._changed.notify_all()

    def _abort(self, ids: Sequence[int]) -> None:
        with self._changed:
            known = [i for i in ids if self._open.pop(i, None) is not None]
            self._aborts += 1
            self._changed.notify_all()
        self._llm.abort_request([str(i) for i in known])

    def _load(self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], version: int) -> int | TrainerFailure:
        """A failure is returned: unlike that of another command it can be mended, by another load."""
        try:
            count = self._load_whole(receivers, buckets, version)
        except TrainerFailure as failure:
            with self._changed:
                self._broken = failure
            return failure
        with self._changed:
            self._broken = None
            self._version = version
        return count

    def _load_whole(self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], version: int) -> int:
        assert self._setup is not None
        loaded: list[int | str] = self._llm.collective_rpc(
            "load_from_ranks", args=(receivers, buckets, self._setup.verify_weights)
        )
        for why in loaded:
            if isinstance(why, str):
                raise TrainerFailure(FailureReason.WEIGHT_SYNC_FAILED, why)
        if not self._llm.reset_prefix_cache():
            raise TrainerFailure(
                FailureReason.WEIGHT_SYNC_FAILED,
                f"vLLM did not drop its prefix cache, which holds the weights before version {version}",
            )
        return min(int(count) for count in loaded)
