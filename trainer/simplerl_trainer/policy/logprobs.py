"""Log-probabilities of given tokens from hidden states, with bounded memory for the logits."""

import torch
from torch.nn.functional import linear
from torch.utils.checkpoint import checkpoint

from simplerl_api.memory import LOGITS_BYTES


def token_logprobs(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, chunk: int
) -> torch.Tensor:
    """log softmax(hidden weight^T / temperature) at `targets`, in nats, at least float32, with a gradient.

    `hidden` is [R, H], `weight` [V, H], `targets` [R]; returns [R]. Logits of `chunk` tokens exist at once; where there
    is more than one chunk they are made again in the backward pass.
    """
    if hidden.shape[0] <= chunk:
        return _at(_log_softmax(hidden, weight, temperature), targets)

    def piece(h: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return _at(_log_softmax(h, weight, temperature), t)

    pieces = zip(hidden.split(chunk), targets.split(chunk), strict=True)
    return torch.cat([checkpoint(piece, h, t, use_reentrant=False, preserve_rng_state=False) for h, t in pieces])


def token_logprobs_and_entropies(
    hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, temperature: float, chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same log-probabilities [R], and the entropy [R] of each token's distribution in nats, with a gradient."""

    def piece(h: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        every = _log_softmax(h, weight, temperature)
        # a probability of 0 adds nothing, though its logarithm may be -inf; its gradient must not be nan either
        finite = every.masked_fill(every.isinf(), 0.0)
        return _at(every, t), -(every.exp() * finite).sum(-1)

    chunks = list(zip(hidden.split(chunk), targets.split(chunk), strict=True))
    if len(chunks) == 1:
        return piece(hidden, targets)
    logprobs, entropies = zip(
        *[checkpoint(piece, h, t, use_reentrant=False, preserve_rng_state=False) for h, t in chunks], strict=True
    )
    return torch.cat(logprobs), torch.cat(entropies)


def chunk_size(vocabulary: int) -> int:
    """Tokens whose float32 logits take LOGITS_BYTES."""
    return max(LOGITS_BYTES // (4 * vocabulary), 1)


def _log_softmax(hidden: torch.Tensor, weight: torch.Tensor, temperature: float) -> torch.Tensor:
    logits = linear(hidden, weight)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return (logits if temperature == 1.0 else logits / temperature).log_softmax(-1)


def _at(logprobs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return logprobs.gather(-1, targets[:, None])[:, 0]
