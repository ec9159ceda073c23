"""Players of the Concert games by policies of joint orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from palaestra import registry
from palaestra.core.run.opponents import OpponentSpec
from palaestra.players.choosing import Chance
from palaestra_baselines.common.joint_networks import PlanClassifier
from palaestra_baselines.common.joint_orders import Conditionals, Terrain, View, draw_plans, records_of, view_of
from palaestra_baselines.common.pikl import is_over
from palaestra_baselines.common.rollout import RUN_BITS


class Drawing(Protocol):
    """Something that draws plans."""

    def draw(self, view: View, uniforms: np.ndarray) -> np.ndarray:
        """A plan for each of N positions, int64 ``[N, S]``, by draws from [0, 1), ``[N, S]``."""
        ...


class OneByOne:
    """Draws by a policy that gives one order after another.

    Attributes:
        policy: The policy.
        backwards: Whether it begins with the last list.
    """

    def __init__(self, policy: Conditionals, backwards: bool = False) -> None:
        """Keeps the policy."""
        self.policy, self.backwards = policy, backwards

    def draw(self, view: View, uniforms: np.ndarray) -> np.ndarray:
        """See `Drawing`."""
        if not self.backwards:
            return draw_plans(self.policy, view, uniforms[:, None])[:, 0]
        return draw_plans(self.policy, view.backwards(), uniforms[:, None])[:, 0, ::-1]


class Classified:
    """Draws by a classifier of plans, and by the anchor where none of them is legal."""

    def __init__(self, network: PlanClassifier, anchor: Conditionals) -> None:
        """Keeps both."""
        self.network, self.anchor = network, anchor

    def draw(self, view: View, uniforms: np.ndarray) -> np.ndarray:
        """See `Drawing`."""
        return self.network.draw(view, self.anchor, uniforms)


class PlanPlayer:
    """Plays one power: an `palaestra.core.run.opponents.Opponent`. Draws come from the lane's seed alone.

    Attributes:
        memory_size, kept_size: 1, the number of decisions.
    """

    memory_size = kept_size = 1

    def __init__(self, terrain: Terrain, team: str, source: Drawing) -> None:
        """Keeps what draws the plans.

        Raises:
            ValueError: The game shows powers something else.
        """
        self.terrain, self.source = terrain, source
        game = terrain.game
        self.number = list(game.teams).index(team)
        self.role = game.roles[0].name
        fields = {f.name for f in (*game.roles[0].observation, *game.lane_observation)}
        if "board" not in fields:
            raise ValueError(f'{game.name}: policies of joint orders read observation="dict", the default')

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Orders of the power, int64 ``[n, 1, S]``; see `palaestra.core.run.opponents.Opponent`."""
        memory[:, 0] += 1.0
        uniforms = Chance(seeds, memory[:, 0], 1, self.number).uniforms(self.terrain.slots)
        return self.source.draw(self.look(observations, legal), uniforms)[:, None]

    def look(self, observations: Any, legal: Any) -> View:
        """The positions that are observed in n lanes."""
        told = observations["lane"] if isinstance(observations, dict) else observations[:, 0]
        masks = legal[self.role] if isinstance(legal, dict) else legal
        viewer = 0 if self.terrain.board.mirrored else self.number
        return view_of(self.terrain, records_of(self.terrain, told), masks[:, 0]["orders"], viewer)


def one_against_others(
    id: str,
    options: Mapping[str, Any],
    one: Mapping[str, OpponentSpec],
    others: Mapping[str, OpponentSpec],
    matches: int,
    seed: int,
) -> np.ndarray:
    """Points of one power against all others, in equally many matches as each power, float64 ``[matches]``.

    A match of two powers gives 1, a draw 1/2; one of more powers the share that the rules pay.

    Args:
        id: Registered id.
        options: Keywords of the game.
        one: Its player, by power.
        others: Those of the others, by power.
        matches: Rounded down to a multiple of the powers.
        seed: Number of the run.
    """
    count = max(matches // len(one), 1)
    lanes = np.arange(count * len(one))
    sim = registry.make_batch(id, len(lanes), autoreset_mode="off", **options)
    for number, power in enumerate(sim.game.teams):
        is_one = lanes // count == number
        sim.set_opponent(power, one[power], lanes=is_one)
        sim.set_opponent(power, others[power], lanes=~is_one)
    sim.reset(seed=np.uint64(seed << RUN_BITS) + (lanes % count).astype(np.uint64))
    points = np.zeros(len(lanes))
    while not is_over(sim).all():
        before = is_over(sim)
        sim.step()
        over = is_over(sim) & ~before
        points[over] = sim.rewards[over, (lanes // count)[over]]
    sim.close()
    return (np.sign(points) + 1.0) / 2.0 if len(one) == 2 else points
