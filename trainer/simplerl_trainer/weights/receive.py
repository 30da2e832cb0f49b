"""The receiving side of a sync, in an engine's process."""

from collections.abc import Iterator, Sequence

import torch

from simplerl_trainer.weights import handover, local, transport
from simplerl_trainer.weights.buckets import Bucket, Parameter
from simplerl_trainer.weights.road import Broadcast, CudaIpc, Receiver, SharedMemory


def receive(
    receiver: Receiver, buckets: Sequence[Bucket], device: torch.device
) -> Iterator[tuple[Parameter, torch.Tensor]]:
    """All parameters in order, each as its bucket arrives; a tensor has its parameter's shape and type.

    Every bucket has memory of its own: vLLM holds on to tensors until the last one of their layer has come, which may
    be in a later bucket. Raises TrainerFailure(WeightSyncFailed) where a bucket does not come in time.
    """
    match receiver:
        case SharedMemory() | CudaIpc():
            for number, bucket in enumerate(buckets):
                yield from split(bucket, local.read(receiver, number, bucket))
        case Broadcast(forward=forward):
            writer = local.writer(forward) if forward else None
            try:
                for number, bucket in enumerate(buckets):
                    flat = torch.empty(bucket.numel, dtype=getattr(torch, bucket.dtype), device=device)
                    transport.broadcast(receiver, flat, number)
                    if writer:
                        writer.write(flat)
                    yield from split(bucket, flat)
                if writer:
                    writer.finish()
            finally:
                if forward:
                    handover.remove(forward.prefix)


def split(bucket: Bucket, flat: torch.Tensor) -> Iterator[tuple[Parameter, torch.Tensor]]:
    """Views of a bucket's flat tensor [numel], one for each parameter."""
    start = 0
    for parameter in bucket.parameters:
        yield parameter, flat[start : start + parameter.numel].view(parameter.shape)
        start += parameter.numel
