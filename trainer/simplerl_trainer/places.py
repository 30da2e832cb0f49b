"""The nodes of a run in Ray: those that stay, and those of engines that come and go.

One placement group holds a bundle for each node that stays, with all GPUs (or, where CPUs stand for them, all CPUs)
that the plan gives it. A node that may go has a group of its own: Ray places it as soon as there is such a node, and
anew where that one was lost.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import ray
from ray.util import placement_group_table
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from simplerl_api.elastic import ENGINE_NODE, RANK_NODE
from simplerl_api.plan import Plan


class Places:
    """What a run holds of Ray's nodes."""

    def __init__(self, plan: Plan, bundles: Sequence[Mapping[str, float]], strategy: str) -> None:
        """`bundles`: what each node of the plan offers; `strategy`: how Ray spreads those that stay."""
        self._plan = plan
        self._goes = plan.min_engines is not None
        self._bundles = [
            {**bundle, **({ENGINE_NODE if n >= plan.training_nodes else RANK_NODE: 1.0} if self._goes else {})}
            for n, bundle in enumerate(bundles)
        ]
        self._stays = placement_group(self._bundles[: self._first_apart], strategy=strategy)
        self._apart: dict[int, PlacementGroup] = {}

    @property
    def _first_apart(self) -> int:
        return self._plan.training_nodes if self._goes else self._plan.nodes

    def of(self, node: int) -> tuple[PlacementGroup, int]:
        """The group of a node, and the node's bundle in it."""
        return (self._stays, node) if node < self._first_apart else (self._apart[node], 0)

    def hold(self, nodes: Collection[int]) -> Collection[int]:
        """Holds these of the nodes that come and go, and no others; returns those that are let go."""
        free = sorted(self._apart.keys() - set(nodes))
        for node in free:
            remove_placement_group(self._apart.pop(node))
        for node in sorted(nodes):
            if node >= self._first_apart and node not in self._apart:
                self._apart[node] = placement_group([self._bundles[node]], strategy="PACK")
        return free

    async def least(self) -> None:
        """Waits until there is what the run starts with."""
        await _answer(self._stays.ready())
        coming = [asyncio.ensure_future(_answer(group.ready())) for group in self._apart.values()]
        try:
            for first in islice(asyncio.as_completed(coming), self._plan.least_nodes - self._first_apart):
                await first
        finally:
            for other in coming:
                other.cancel()

    def there(self) -> Sequence[int]:
        """The nodes that are held, and there."""
        return [*range(self._first_apart), *sorted(self._homes())]

    def idle(self) -> list[str]:
        """The addresses of nodes for engines that the run does not hold."""
        held = set(self._homes().values())
        nodes = [n for n in ray.nodes() if n["Alive"] and n["Resources"].get(ENGINE_NODE)] if self._goes else []
        return sorted(n["NodeManagerAddress"] for n in nodes if n["NodeID"] not in held)

    def _homes(self) -> Mapping[int, str]:
        """The ids of Ray's nodes in the places of those that come and go; where one is missing Ray looks for it."""
        table = placement_group_table() if self._apart else {}
        known = {n: table.get(group.id.hex(), {}) for n, group in self._apart.items()}
        return {n: found["bundles_to_node_id"][0] for n, found in known.items() if found.get("state") == "CREATED"}

    def give_up(self) -> None:
        """Holds nothing any more."""
        self.hold(())
        remove_placement_group(self._stays)


async def _answer(ref: object) -> object:
    return await ref  # type: ignore[misc]
