"""An evolution strategy: it explores in the weights of a policy, which stay the same through a match.

Salimans, Ho, Chen, Sidor and Sutskever, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"
(arXiv 1703.03864): the weights are the mean of a normal distribution; members are drawn in pairs, each the mirror image
of the other about the mean; the difference of their returns estimates the gradient, which Adam follows. All members of
an update play the same matches. The policy of a member is deterministic, so that exploration does not spoil what a
steady hand achieves, such as an aim that has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra_baselines.common.agents import JointChoice, Roster
from palaestra_baselines.common.policy_file import Layers

FIRST_DECAY, SECOND_DECAY, TINY = 0.9, 0.99, 1e-8
"""Of Adam (Kingma and Ba, arXiv 1412.6980)."""
AVERAGE_DECAY = 0.95
"""Of the averaged weights, an update."""
VECTORS = ("mean", "average", "first", "second")
"""What a checkpoint holds of an `Evolution`, beside the number of updates."""


@dataclass
class Evolution:
    """The distribution of the weights.

    Attributes:
        mean: The weights float64 [P].
        average: Their decaying mean [P]: the policy, with less of the noise of single updates.
        first: Decaying mean of the gradients [P].
        second: Decaying mean of their squares [P].
        updates: Steps so far.
    """

    mean: np.ndarray
    average: np.ndarray = field(init=False)
    first: np.ndarray = field(init=False)
    second: np.ndarray = field(init=False)
    updates: int = 0

    def __post_init__(self) -> None:
        """Starts Adam and the average."""
        self.average = self.mean.copy()
        self.first, self.second = np.zeros_like(self.mean), np.zeros_like(self.mean)

    def draw(self, rng: np.random.Generator, pairs: int, sigma: float) -> np.ndarray:
        """Members [2 pairs, P], the second half the mirror images of the first."""
        noise = sigma * rng.standard_normal((pairs, len(self.mean)))
        return np.concatenate([self.mean + noise, self.mean - noise])

    def learn(self, members: np.ndarray, returns: np.ndarray, rate: float) -> None:
        """Moves the mean towards members of higher returns.

        Args:
            members: As `draw` gave them [2 K, P].
            returns: Their mean returns [2 K]; only their differences over their standard deviation count.
            rate: Learning rate of Adam, in units of a weight.
        """
        half = len(members) // 2
        noise = members[:half] - self.mean
        better = (returns[:half] - returns[half:]) / (returns.std() + TINY)
        gradient = better @ noise / (half * (noise.std() + TINY))
        self.updates += 1
        self.first = FIRST_DECAY * self.first + (1.0 - FIRST_DECAY) * gradient
        self.second = SECOND_DECAY * self.second + (1.0 - SECOND_DECAY) * gradient**2
        first = self.first / (1.0 - FIRST_DECAY**self.updates)
        second = self.second / (1.0 - SECOND_DECAY**self.updates)
        self.mean = self.mean + rate * first / (np.sqrt(second) + TINY)
        self.average = AVERAGE_DECAY * self.average + (1.0 - AVERAGE_DECAY) * self.mean

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        return {name: getattr(self, name) for name in (*VECTORS, "updates")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned."""
        self.mean, self.average, self.first, self.second = (np.array(state[name]) for name in VECTORS)
        self.updates = int(state["updates"])


@dataclass(frozen=True)
class Shape:
    """How a vector of weights is a tanh perceptron on some numbers of an observation.

    Attributes:
        columns: Numbers of the observation that it sees, int64 [inputs].
        means: Of these numbers, which are taken off [inputs].
        deviations: By which they are divided then [inputs].
        hidden: Widths of the hidden layers.
        scales: By which the outputs are multiplied [outputs]: how far a weight of 1 moves each.
        size: Numbers of an observation.
    """

    columns: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    hidden: tuple[int, ...]
    scales: np.ndarray
    size: int

    @property
    def widths(self) -> list[int]:
        """Of all layers."""
        return [len(self.columns), *self.hidden, len(self.scales)]

    @property
    def parameters(self) -> int:
        """P, the length of a vector."""
        return sum((a + 1) * b for a, b in zip(self.widths[:-1], self.widths[1:], strict=True))

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Weights whose outputs are all 0: hidden layers at random, the last one 0."""
        vector = np.zeros(self.parameters)
        for weight, _ in self.layers(vector[None])[:-1]:
            weight[...] = rng.standard_normal(weight.shape) / np.sqrt(weight.shape[1])
        return vector

    def layers(self, vectors: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Views ``(W [M, inputs, outputs], b [M, outputs])`` of each layer of vectors [M, P]."""
        parts, place = [], 0
        for inputs, outputs in zip(self.widths[:-1], self.widths[1:], strict=True):
            middle, end = place + inputs * outputs, place + (inputs + 1) * outputs
            parts.append((vectors[:, place:middle].reshape(-1, inputs, outputs), vectors[:, middle:end]))
            place = end
        return parts

    def outputs(self, layers: Sequence[tuple[np.ndarray, np.ndarray]], seen: np.ndarray) -> np.ndarray:
        """What the perceptrons give [M, rows, outputs] for observations [M, rows, size]."""
        hidden = (seen[..., self.columns] - self.means) / self.deviations
        for number, (weight, bias) in enumerate(layers):
            hidden = (np.tanh(hidden) if number else hidden) @ weight + bias[:, None]
        return hidden * self.scales

    def arrays(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The same perceptron on the whole raw observation, named as `arrays_to_layers` reads them."""
        layers = [(weight[0].copy(), bias[0].copy()) for weight, bias in self.layers(vector[None])]
        weight, bias = layers[-1]
        layers[-1] = (weight * self.scales, bias * self.scales)
        weight, bias = layers[0]
        wide = np.zeros((self.size, weight.shape[1]))
        wide[self.columns] = weight / self.deviations[:, None]
        layers[0] = (wide, bias - (self.means / self.deviations) @ weight)
        names = [(f"layer_{k}.weight", f"layer_{k}.bias") for k in range(len(layers))]
        pairs = zip(names, layers, strict=True)
        return {name: array for (w, b), (weight, bias) in pairs for name, array in ((w, weight.T.copy()), (b, bias))}


def observed_columns(roster: Roster, fields: Sequence[str]) -> np.ndarray:
    """Places in an observation of some of its fields; of all fields where none is named.

    Raises:
        ValueError: The agents see no such field, or there are agents of several roles.
    """
    if len(roster.groups) != 1:
        raise ValueError(f"{roster.game.name}: the learning agents share one policy, and these are of several roles")
    (group,) = roster.groups.values()
    table, places, first = group.role.observation, {}, 0
    for one in table:
        places[one.name] = range(first, first + one.size)
        first += one.size
    for name in fields:
        if name not in places:
            raise ValueError(f"{roster.game.name}: agents observe no field {name!r}: choose from {', '.join(places)}")
    return np.array([column for name in fields or places for column in places[name]])


def play_members(
    sim: Simulation,
    roster: Roster,
    team: str,
    shape: Shape,
    members: np.ndarray,
    seeds: np.ndarray,
    watch: Callable[[Simulation], None],
) -> tuple[np.ndarray, int]:
    """Lets every member play one match in each of its lanes.

    Args:
        sim: In ``autoreset_mode="off"``: the lanes of the first member, those of the second, and so on.
        roster: The learning agents.
        team: Their team.
        shape: Of the members.
        members: [M, P].
        seeds: uint64 [lanes of a member]: the same matches for all.
        watch: Called after each decision.

    Returns:
        Returns of the team [M, lanes of a member], and how often it decided in all of them.
    """
    layers = shape.layers(members)
    count, lanes = len(members), sim.num_envs
    sim.reset(seed=np.tile(seeds, count))
    returns, running, decisions = np.zeros(lanes), np.ones(lanes, np.bool_), 0
    (role,) = roster.columns
    while running.any():
        asked = roster.read_asked(sim).any(axis=1) & running
        if asked.any():
            seen = roster.read_observations(sim)[role]
            rows = seen.reshape(count, -1, seen.shape[-1]).astype(np.float64)
            values = shape.outputs(layers, rows).reshape(lanes, roster.agents, -1)
            if not roster.gives_numbers:
                values = np.where(roster.read_legal(sim), values, -np.inf).argmax(axis=-1)
            roster.write_actions(sim, values)
            decisions += int(asked.sum())
        sim.step()
        watch(sim)
        returns[running] += sim.team_rewards(team)[running]
        running &= ~(sim.terminated | sim.truncated)
    return returns.reshape(count, -1), decisions


class ChoicePlayer:
    """An opponent (`palaestra.core.run.opponents`) that takes the legal choice of the highest output of a perceptron.

    Attributes:
        memory_size: 0, it remembers nothing.
    """

    memory_size = 0

    def __init__(self, layers: Layers, game: Game, team: str) -> None:
        """Keeps the layers.

        Args:
            layers: Of one agent: its observation to a number for each choice, or combination of its choices.
            game: The rules.
            team: That it plays.

        Raises:
            ValueError: The network has other inputs or outputs than the team's agents.
        """
        role, _ = game.role_of(game.teams[team][0])
        self.layers, self.joint = layers, JointChoice(game, role)
        sees, gives = layers[0][0].shape[1], len(layers[-1][1])
        size = sum(f.size for f in role.observation)
        if (sees, gives) != (size, self.joint.n):
            raise ValueError(
                f"the policy sees {sees} numbers and has {gives} choices; {team} of {game.name} sees {size} and has "
                f"{self.joint.n}, so it was trained for another game"
            )

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Choices of the team; see `palaestra.core.run.opponents.Opponent`."""
        values = np.asarray(observations, np.float64)
        for number, (weight, bias) in enumerate(self.layers):
            values = (np.tanh(values) if number else values) @ weight.T + bias
        if legal is not None:
            values = np.where(self.joint.mask(legal), values, -np.inf)
        return self.joint.split(values.argmax(axis=-1))
