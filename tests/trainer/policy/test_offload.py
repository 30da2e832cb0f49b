"""Tensors that leave a device and come back: the same bits in the same places. On CPU the device is the host itself."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from simplerl_trainer.policy.offload import Offloaded, tensors_of

CPU = torch.device("cpu")


def bits(tensor: torch.Tensor) -> bytes:
    # a copy: torch no longer owns memory that numpy has seen
    return tensor.detach().clone().reshape(-1).view(torch.uint8).numpy().tobytes()


def test_values_views_and_special_numbers_come_back_bit_by_bit() -> None:
    whole = torch.tensor([1.0, -0.0, float("nan"), float("inf"), 5e-324, 3.0], dtype=torch.float64)
    view, transposed = whole[2:5], whole.view(2, 3).T
    half = torch.randn(7, generator=torch.Generator().manual_seed(0)).bfloat16()
    before = [bits(t) for t in (whole, view, transposed, half)]
    held = Offloaded(lambda: [view, half, transposed], CPU)
    held.leave()
    assert held.is_out
    assert whole.untyped_storage().nbytes() == half.untyped_storage().nbytes() == 0, "the memory is free"
    held.come_back()
    assert [bits(t) for t in (whole, view, transposed, half)] == before
    view.fill_(9.0)
    assert whole[3] == 9.0, "a view is a view still"


def test_leaving_twice_and_coming_back_twice_change_nothing() -> None:
    tensor = torch.arange(5)
    held = Offloaded(lambda: [tensor], CPU)
    held.come_back()
    assert not held.is_out
    held.leave()
    held.leave()
    held.come_back()
    held.come_back()
    assert tensor.tolist() == [0, 1, 2, 3, 4]


def test_changes_between_two_absences_are_kept() -> None:
    tensor = torch.zeros(3)
    held = Offloaded(lambda: [tensor], CPU)
    for number in range(3):
        tensor.fill_(number)
        held.leave()
        held.come_back()
        assert tensor.tolist() == [number] * 3


def test_tensors_elsewhere_and_tensors_without_elements_stay() -> None:
    empty, elsewhere = torch.empty(0), torch.empty(3, device="meta")
    held = Offloaded(lambda: [empty, elsewhere], CPU)
    held.leave()
    assert not held.is_out


@pytest.mark.parametrize("steps", [0, 1], ids=["before its first step", "after a step"])
def test_a_model_and_its_optimizer_are_found_whole(steps: int) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    masters = [torch.zeros(2), torch.ones(3)]

    def train() -> None:
        model(torch.randn(5, 3, generator=torch.Generator().manual_seed(0))).square().sum().backward()

    for _ in range(steps):
        train()
        optimizer.step()
    train()

    def everything() -> Iterator[torch.Tensor]:
        yield from tensors_of(model, optimizer, masters)

    found = {id(t) for t in everything()}
    wanted = [*model.parameters(), *model.buffers(), *masters]
    wanted += [p.grad for p in model.parameters() if p.grad is not None]
    wanted += [value for state in optimizer.state.values() for value in state.values()]
    assert found == {id(t) for t in wanted}
    before = [bits(t) for t in wanted]
    held = Offloaded(everything, CPU)
    held.leave()
    assert all(t.untyped_storage().nbytes() == 0 for t in wanted)
    held.come_back()
    assert [bits(t) for t in wanted] == before
    optimizer.step()


def test_a_tensor_that_is_out_can_be_read_where_it_is() -> None:
    tensor, other = torch.arange(12.0), torch.ones(3)
    views = [tensor, tensor.narrow(0, 2, 5), tensor.view(3, 4).t(), tensor[3]]
    before = [v.clone() for v in views]
    held = Offloaded(lambda: [tensor], CPU)
    held.leave()
    assert all(torch.equal(held.at_hand(v), b) for v, b in zip(views, before, strict=True))
    assert held.at_hand(other) is other
    held.come_back()
    assert held.at_hand(tensor) is tensor
