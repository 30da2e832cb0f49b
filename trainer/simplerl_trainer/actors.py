"""The processes of a run as Ray actors: thin shells around a room's class.

The rooms are imported inside the actor's own process, so that the driver needs neither vllm nor deepspeed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simplerl_trainer.checkpoints.manifest import File
from simplerl_trainer.policy.protocol import Annotation, RankSetup, RankWork, Update
from simplerl_trainer.rollout.protocol import EngineSetup, Finished, Request
from simplerl_trainer.weights.buckets import Bucket, Parameter
from simplerl_trainer.weights.road import Receiver, Sender

if TYPE_CHECKING:
    from simplerl_api.residence import Residence
    from simplerl_api.spec.hub import HubModel
    from simplerl_api.spec.model import TinyModel


class RankActor:
    """A training rank (simplerl_trainer.policy.rank.Rank)."""

    def __init__(self) -> None:
        from simplerl_trainer.policy.rank import Rank

        self._rank = Rank()

    def hold_port(self) -> int:
        """A port at which others will meet this rank; held from now on."""
        from simplerl_trainer import ports

        return ports.hold()

    def start(self, setup: RankSetup) -> dict[str, str]:
        return self._rank.start(setup)

    def residence(self) -> "Residence":
        return self._rank.residence()

    def parameters(self) -> list[Parameter]:
        return self._rank.parameters()

    def annotate(self, work: RankWork) -> Annotation:
        return self._rank.annotate(work)

    def update(self, batch: int, epoch: int) -> Update:
        return self._rank.update(batch, epoch)

    def send(self, sender: Sender | None, buckets: Sequence[Bucket]) -> None:
        self._rank.send(sender, buckets)

    def offload(self) -> None:
        self._rank.offload()

    def reload(self) -> None:
        self._rank.reload()

    def save(self, folder: str) -> dict[str, File]:
        return self._rank.save(folder)

    def load(self, folder: str) -> None:
        self._rank.load(folder)

    def export(self, folder: str, notes: Mapping[str, str]) -> None:
        self._rank.export(folder, notes)

    def ping(self) -> bool:
        return self._rank.ping()


class EngineActor:
    """A rollout engine (simplerl_trainer.rollout.vllm_engine.VllmEngine)."""

    def __init__(self) -> None:
        from simplerl_trainer.rollout.vllm_engine import VllmEngine

        self._engine = VllmEngine()

    def start(self, setup: EngineSetup) -> dict[str, str]:
        return self._engine.start(setup)

    def submit(self, requests: Sequence[Request]) -> None:
        self._engine.submit(requests)

    def finished(self, wait: float) -> list[Finished]:
        return self._engine.finished(wait)

    def abort(self, ids: Sequence[int]) -> None:
        self._engine.abort(ids)

    def sleep(self) -> None:
        self._engine.sleep()

    def wake(self, tags: Sequence[str]) -> None:
        self._engine.wake(tags)

    def load(self, receivers: Sequence[Receiver], buckets: Sequence[Bucket], version: int) -> int:
        return self._engine.load(receivers, buckets, version)

    def version(self) -> int:
        return self._engine.version()


class NodeActor:
    """What has to be done once on a node: its address, its model folder, its shared memory."""

    def address(self) -> str:
        """The node's address, as the others reach it."""
        import ray

        return ray.util.get_node_ip_address()

    def shared_memory(self) -> int:
        """Bytes of /dev/shm that are free."""
        from simplerl_trainer.weights import room

        return room.free()

    def parameters(self, model_folder: str, dtype: str) -> list[Parameter]:
        """The parameters of a model folder, as they will travel."""
        from simplerl_trainer.models import shapes

        return [Parameter(name, dtype, shape) for name, shape in shapes.read(Path(model_folder)).items()]

    def clean(self, prefix: str) -> None:
        """Removes what an attempt that was killed left in shared memory."""
        from simplerl_trainer.weights import handover

        handover.remove(prefix)

    def start_mps(self) -> "dict[str, str] | str":
        """Starts CUDA MPS for all processes of the node; returns their environment, or why there is none. It ends with
        this actor."""
        from simplerl_trainer import mps

        try:
            self._mps = mps.Daemon()
        except mps.Unavailable as error:
            return str(error)
        return dict(self._mps.environment)

    def build_tiny(self, model: "TinyModel") -> dict[str, bytes]:
        """The files of the toy model."""
        from simplerl_trainer.models import folder, tiny

        path = _scratch("tiny")
        tiny.build(path, model)
        return folder.pack(path)

    def download(self, model: "HubModel", commit: str, field: str) -> str:
        """Brings a model of a hub to this node; returns its folder."""
        from simplerl_trainer import hub
        from simplerl_trainer.models import families, judges

        folder = hub.model_folder(model, commit, field, weights=True)
        # either raises a sentence where something is missing
        if field == "model.hub":
            families.read(folder)
        else:
            judges.read(folder, field)
        return str(folder)

    def unpack(self, files: dict[str, bytes]) -> str:
        """Writes a model folder on this node; returns its path."""
        from simplerl_trainer.models import folder

        path = _scratch("model")
        folder.unpack(files, path)
        return str(path)


def _scratch(name: str) -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="simplerl-")) / name
