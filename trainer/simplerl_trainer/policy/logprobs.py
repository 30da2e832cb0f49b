"""Log-probabilities of given tokens from hidden states, with bounded memory for the logits."""

import torch
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from simplerl_api.memory import LOGITS_BYTES


def token_logprobs(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, chunk: int
) -> torch.Tensor:
    """log softmax(hidden weight^T / temperature) at `targets`, in float32 nats, with a gradient.

    `hidden` is [R, H], `weight` [V, H], `targets` [R]; returns [R]. Logits of `chunk` tokens exist at once; where there
    is more than one chunk they are made again in the backward pass.
    """
    if hidden.shape[0] <= chunk:
        return _at(_log_softmax(hidden, weight, temperature), targets)

    def piece(h: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return _at(_log_softmax(h, weight, temperature), t)

    pieces = zip(hidden.split(chunk), targets.split(chunk), strict=True)
    return torch.cat([checkpoint(piece, h, t, use_reentrant=False, preserve_rng_state=False) for h, t in pieces])


@torch.no_grad()
def token_logprobs_and_entropies(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same log-probabilities [R] without a gradient, and the entropy [R] of each token's distribution in nats."""
    logprobs, entropies = [], []
    for h, t in zip(hidden.split(chunk), targets.split(chunk), strict=True):
        every = _log_softmax(h, weight, temperature)
        logprobs.append(_at(every, t))
        # a probability of 0 adds nothing, though its logarithm may be -inf
        entropies.append(-torch.where(every.isinf(), 0.0, every.exp() * every).sum(-1))
    return torch.cat(logprobs), torch.cat(entropies)


def chunk_size(vocabulary: int) -> int:
    """Tokens whose float32 logits take LOGITS_BYTES."""
    return max(LOGITS_BYTES // (4 * vocabulary), 1)


def _log_softmax(hidden: torch.Tensor, weight: torch.Tensor, temperature: float) -> torch.Tensor:
    logits = linear(hidden, weight).float()
    return (logits if temperature == 1.0 else logits / temperature).log_softmax(-1)


def _at(logprobs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return logprobs.gather(-1, targets[:, None])[:, 0]
