"""The sending side of a sync, in a rank's process."""

from collections.abc import Iterator

import torch

from simplerl_api.failures import TrainerFailure
from simplerl_trainer.weights import handover, local, transport
from simplerl_trainer.weights.road import Sender


def send(sender: Sender, flat_buckets: Iterator[torch.Tensor]) -> None:
    """Sends each bucket's flat tensor [numel] along the sender's roads as it is gathered; returns when all are read.

    A sender without roads drains `flat_buckets` all the same, and so does one whose road fails, since gathering is a
    collective of all ranks. Raises TrainerFailure(WeightSyncFailed) where a peer does not take a bucket in time;
    nothing is left in /dev/shm then.
    """
    road = sender.local
    writer = local.writer(road) if road else None
    try:
        for number, flat in enumerate(flat_buckets):
            if writer:
                writer.write(flat)
            if sender.broadcast:
                transport.broadcast(sender.broadcast, flat, number)
        if writer:
            writer.finish()
    except TrainerFailure:
        for _ in flat_buckets:
            pass
        raise
    finally:
        if road:
            handover.remove(road.prefix)
