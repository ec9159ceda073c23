"""``codec="graph"``: what an agent sees of its graph as a `gymnasium.spaces.Graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.spaces import action_space
from palaestra.game import AgentView, GraphSpace, Role
from palaestra.games.pursuit.graph_sight import UNSEEN
from palaestra.games.pursuit.graphs import Graph


class GraphCodec:
    """Shows a row of hops for each node, and every edge in both directions; actions are as without the codec.

    Columns are hops to the next exit, to oneself, to teammates and to opponents, each in the order of their names, as
    shares of the diameter; -1 as in the arrays. Where agents have hit points, a column for each follows, in the same
    order: its share on the node where it is, 0 elsewhere.
    """

    total = False

    def __init__(self, pool: Sequence[Graph], first_team: int, agents: int, has_hit_points: bool = False) -> None:
        """See `palaestra.games.pursuit.graph_pursuit.game`.

        Args:
            pool: The graphs of the game.
            first_team: Number of agents of the first team, whose slots come first.
            agents: Number of all agents.
            has_hit_points: Whether teams see ``hit_points``.
        """
        self._links = tuple(np.concatenate([graph.edges, graph.edges[:, ::-1]]) for graph in pool)
        self._nodes = tuple(graph.nodes for graph in pool)
        self._first_team, self._agents, self._has_hit_points = first_team, agents, has_hit_points

    def observation_space(self, role: Role) -> spaces.Space:
        """Nodes float32 ``[V, 1 + agents]`` or ``[V, 1 + 2 agents]``; edges have no features."""
        columns = 1 + self._agents * (1 + self._has_hit_points)
        return GraphSpace(spaces.Box(-1.0, 1.0, (columns,), np.float32), spaces.Discrete(1))

    def action_space(self, role: Role) -> spaces.Space:
        """As without the codec."""
        return action_space(role.action)

    def encode(self, view: AgentView) -> spaces.GraphInstance:
        """The graph of the match as the agent's team sees it."""
        return self._instance(self._rows_of_nodes(view), int(view.lane["graph"]))

    def encode_many(self, view: AgentView) -> list[spaces.GraphInstance]:
        """The same of N matches at once."""
        return list(map(self._instance, self._rows_of_nodes(view), view.lane["graph"].tolist()))

    def _instance(self, rows: np.ndarray, graph: int) -> spaces.GraphInstance:
        links = self._links[graph].copy()  # users may write into what they observe
        return spaces.GraphInstance(rows[: self._nodes[graph]].copy(), np.zeros(len(links), np.int64), links)

    def _rows_of_nodes(self, view: AgentView) -> np.ndarray:
        """Features float32 ``[..., V, columns]`` of the nodes of the largest graph, for one match or ``[N]``."""
        is_first = view.slot < self._first_team
        members = self._first_team if is_first else self._agents - self._first_team
        number = view.slot - (0 if is_first else self._first_team)
        order = [0, 1 + number, *(1 + k for k in range(members) if k != number)]
        order += range(1 + members, 1 + self._agents)
        hops = view.team["node_hops"][..., order, :].swapaxes(-1, -2).astype(np.float32)
        diameter = np.asarray(view.lane["diameter"], np.float32)[..., None, None]
        nodes = np.where(hops < 0, UNSEEN, hops / diameter)
        if self._has_hit_points:
            points = view.team["hit_points"][..., None, np.array(order[1:]) - 1]
            nodes = np.concatenate([nodes, np.where(hops[..., 1:] == 0, points, 0.0)], axis=-1)
        return nodes.astype(np.float32)

    def decode(self, view: AgentView, action: Any) -> np.ndarray:
        """The action itself.

        Raises:
            ValueError: It is no array of whole numbers.
        """
        numbers = np.asarray(action)
        if numbers.dtype.kind not in "iu":
            raise ValueError(f"an action must be numbers of alternatives, got {action!r}")
        return numbers
