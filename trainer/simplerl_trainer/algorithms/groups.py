"""Groups: the samples of one prompt."""

import torch


def sizes(groups: torch.Tensor) -> torch.Tensor:
    """[n]: for each sample the number of samples in its group; `groups` [n] int64 has each sample's group."""
    place, number = _places(groups)
    ones = torch.ones_like(groups, dtype=torch.float64)
    return ones.new_zeros(number).index_add(0, place, ones)[place]


def means(x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """[n]: for each sample the mean of `x` [n] over its group; exactly that value where all are equal."""
    place, number = _places(groups)
    greatest = _greatest(x, place, number)
    # measured from a member of the group, so that equal rewards such as 0.1, 0.1, 0.1 leave no rounding behind
    below = x.new_zeros(number).index_add(0, place, x - greatest)
    return greatest + below[place] / sizes(groups).to(x.dtype)


def deviations(x: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """[n]: for each sample the standard deviation of `x` [n] over its group of G, with G - 1 below; 0 where the group
    has one member or all are equal."""
    place, number = _places(groups)
    squares = x.new_zeros(number).index_add(0, place, (x - means(x, groups)).square())
    return (squares[place] / (sizes(groups) - 1).clamp(min=1).to(x.dtype)).sqrt()


def _places(groups: torch.Tensor) -> tuple[torch.Tensor, int]:
    unique, place = groups.unique(return_inverse=True)
    return place, unique.numel()


def _greatest(x: torch.Tensor, place: torch.Tensor, number: int) -> torch.Tensor:
    """[n]: the greatest x of each sample's group; nan where it holds one."""
    return x.new_full((number,), float("-inf")).scatter_reduce(0, place, x, "amax")[place]
