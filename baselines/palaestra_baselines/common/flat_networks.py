"""Utility networks Q_i(o_i, a_i) that read whole observations, and the greedy decentralised players made of them.

`Utilities`: all agents of a group (`palaestra_baselines.common.agents.Group`) share a perceptron without memory. A
group has agents of both teams where the teams are alike: observations look the same from either side. A bias of the
first layer for each place in the team distinguishes teammates, as a one-hot number beside the observation would.
`FlatUtilities`: agents of one role, with a recurrent state as an option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import nn

from palaestra.core.contract.fields import bounds
from palaestra.game import Game, ObservationField
from palaestra.players.choosing import probabilities
from palaestra_baselines.common.agents import Roster, group_rows
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for
from palaestra_baselines.common.rollout import Position

Module = TypeVar("Module", bound=nn.Module)
NEVER = -1e9
"""Utility of an alternative that an agent of this role does not have."""
DEVIATION = 0.5
"""Standard deviation of drawn numbers before the training; their range is [-1, 1]."""
FLATTEST = 0.05
"""Least standard deviation of an input, as a share of its range: an input that hardly ever changes is not magnified."""


class UtilityNetwork(nn.Module):
    """Utilities of all agents of one group."""

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor

    def __init__(self, inputs: int, choices: int, places: np.ndarray, hidden: tuple[int, ...]) -> None:
        """A perceptron with rectified units.

        Args:
            inputs: Length of an observation.
            choices: Number of alternatives.
            places: int64 ``[A_group]``, place of each agent in its team.
            hidden: Widths of the hidden layers.
        """
        super().__init__()
        widths = (inputs, *hidden, choices)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.place_bias = nn.Parameter(torch.randn(int(places.max()) + 1, hidden[0]) / inputs**0.5)
        self.register_buffer("places", torch.from_numpy(places))
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def features(self, observations: torch.Tensor) -> torch.Tensor:
        """Last hidden layer ``[..., A_group, width]`` of observations ``[..., A_group, inputs]``."""
        hidden = self.layers[0]((observations - self.mean) * self.scale) + self.place_bias[self.places]
        for layer in self.layers[1:-1]:
            hidden = layer(torch.relu(hidden))
        return torch.relu(hidden)

    def another_head(self) -> nn.Linear:
        """A layer of random weights like the last: other utilities from the same features."""
        last = cast(nn.Linear, self.layers[-1])
        return nn.Linear(last.in_features, last.out_features)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player, the scaling of the input folded into the first layer."""
        first, *rest = cast(list[nn.Linear], list(self.layers))
        weight = first.weight * self.scale
        layers = [(weight, first.bias - weight @ self.mean), *((layer.weight, layer.bias) for layer in rest)]
        named: dict[str, torch.Tensor] = {"place_bias": self.place_bias}
        for number, (matrix, bias) in enumerate(layers):
            named |= {f"layer_{number}.weight": matrix, f"layer_{number}.bias": bias}
        return {name: value.detach().numpy().copy() for name, value in named.items()}


class Utilities(nn.Module):
    """Utilities of all learning agents: one `UtilityNetwork` per group.

    Attributes:
        memory_size: 0, it has no recurrent state.
    """

    memory_size = 0
    order: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...]) -> None:
        """Networks of random weights from torch's generator."""
        super().__init__()
        self.groups = roster.groups
        self.missing = {name: roster.actions - roster.choices[g.role.name] for name, g in roster.groups.items()}
        self.networks = nn.ModuleDict()
        for name, group in roster.groups.items():
            role = group.role.name
            self.networks[name] = UtilityNetwork(roster.sizes[role], roster.choices[role], group.places, hidden)
        agents = [agent for group in roster.groups.values() for agent in group.agents]
        self.register_buffer("order", torch.from_numpy(np.argsort(agents)))
        add_deviations(self, roster)

    def forward(self, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of observations ``[..., A_role, size]`` by role."""
        return self.values(self.features(observations))

    def evaluate(self, observations: Mapping[str, torch.Tensor], memory: None = None) -> tuple[torch.Tensor, None]:
        """Utilities ``[..., A, M]``, and no recurrent state."""
        return self(observations), None

    def features(self, observations: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Last hidden layers ``[..., A_group, width]`` by group."""
        networks: Any = self.networks.items()
        return {name: network.features(group_rows(self.groups[name], observations)) for name, network in networks}

    def values(self, features: Mapping[str, torch.Tensor], heads: nn.ModuleDict | None = None) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of features, by the networks' last layers or by other ``heads``, by group."""
        parts = []
        networks: Any = self.networks.items()
        for name, network in networks:
            head = network.layers[-1] if heads is None else heads[name]
            part, missing = head(features[name]), self.missing[name]
            parts.append(nn.functional.pad(part, (0, missing), value=NEVER) if missing else part)
        return parts[0] if len(parts) == 1 else torch.cat(parts, -2)[..., self.order, :]

    def other_heads(self) -> nn.ModuleDict:
        """Layers of random weights like the last, by group: see `values`."""
        networks: Any = self.networks.items()
        return nn.ModuleDict({name: network.another_head() for name, network in networks})

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A_role, size]`` by role."""
        networks: Any = self.networks.items()
        for name, network in networks:
            group = self.groups[name]
            rows = group_rows(group, observed).reshape(-1, observed[group.role.name].shape[-1])
            scale_inputs(network, rows, group.role.observation)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights of all groups by ``group.name``."""
        networks: Any = self.networks.items()
        return {f"{group}.{name}": array for group, network in networks for name, array in network.arrays().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file: none."""
        return {}

    def player(self, game: Game, team: str) -> UtilityPlayer:
        """The greedy player of a team by copies of the current weights."""
        return UtilityPlayer(self.arrays(), game, team)


class FlatUtilities(nn.Module):
    """Utilities of agents of one role that read their whole observation by one layer.

        h = relu(W o + b_place)  ->  relu(V h + c), or a cell of gated recurrent units (Cho et al., arXiv 1406.1078)

    Attributes:
        memory_size: H, length of the recurrent state of an agent; 0 without recurrence.
    """

    mean: torch.Tensor
    scale: torch.Tensor
    places: torch.Tensor

    def __init__(
        self, roster: Roster, hidden: tuple[int, ...], recurrent: bool = True, outputs: int | None = None
    ) -> None:
        """Networks of random weights from torch's generator.

        Args:
            roster: The learning agents.
            hidden: Widths of the first layer (the first) and of the features (the last).
            recurrent: Whether agents have a recurrent state.
            outputs: Values that the last layer gives; those of all alternatives if None.

        Raises:
            ValueError: The agents have several roles.
        """
        super().__init__()
        if len(roster.groups) != 1:
            raise ValueError(f"{roster.game.name}: agents that learn have several roles; this network is for one")
        (group,) = roster.groups.values()
        inputs, (first, last) = roster.sizes[group.role.name], (hidden[0], hidden[-1])
        self.role, self.memory_size = group.role, last if recurrent else 0
        self.first = nn.Linear(inputs, first)
        self.place_bias = nn.Parameter(torch.randn(int(group.places.max()) + 1, first) / inputs**0.5)
        self.second = nn.GRUCell(first, last) if recurrent else nn.Linear(first, last)
        self.named = nn.Linear(last, roster.actions if outputs is None else outputs)
        self.register_buffer("places", torch.from_numpy(group.places), persistent=False)
        add_deviations(self, roster)
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None) -> torch.Tensor:
        """Utilities ``[..., A, M]``, as `evaluate` gives them."""
        return self.evaluate(observations, memory)[0]

    def evaluate(
        self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Utilities ``[..., A, M]`` and features ``[..., A, H]``, which are the new recurrent state.

        Args:
            observations: ``[..., A, size]`` by role.
            memory: ``[..., A, H]``, recurrent state before the decision; only with recurrence.

        Raises:
            ValueError: The network is recurrent, and ``memory`` is None.
        """
        observed = observations[self.role.name]
        first = torch.relu(self.first((observed - self.mean) * self.scale) + self.place_bias[self.places])
        if not self.memory_size:
            features = torch.relu(self.second(first))
        elif memory is None:
            raise ValueError("the network is recurrent: it wants the recurrent state of the agents")
        else:
            features = self.second(first.flatten(0, -2), memory.flatten(0, -2)).unflatten(0, first.shape[:-1])
        return self.values(features, observed), features

    def values(self, features: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of features ``[..., A, H]`` of observations ``[..., A, size]``."""
        return self.named(features)

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A, size]`` by role."""
        scale_inputs(self, observed[self.role.name].reshape(-1, len(self.mean)), self.role.observation)

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file: none."""
        return {}

    def player(self, game: Game, team: str) -> NetworkPlayer:
        """The greedy player of a team by copies of the current weights."""
        return flat_player(self.arrays(), game, team, type(self))


def add_deviations(network: nn.Module, roster: Roster) -> None:
    """Where agents give numbers: a learnt deviation of each, whose mean is what else is a utility.

    The parameter ``log_deviation [A_groups, M]`` has a row for each group, ``group_of`` int64 ``[A]`` its row.
    """
    if not roster.gives_numbers:
        return
    group_of = np.zeros(roster.agents, np.int64)
    for number, group in enumerate(roster.groups.values()):
        group_of[list(group.agents)] = number
    shape = (len(roster.groups), roster.actions)
    network.log_deviation = nn.Parameter(torch.full(shape, DEVIATION).log())
    network.register_buffer("group_of", torch.from_numpy(group_of), persistent=False)


def unroll(
    utilities: Any, observations: Mapping[str, torch.Tensor], memory: Any, keeps: torch.Tensor
) -> tuple[torch.Tensor, Any]:
    """Utilities ``[L, B, A, M]`` and features at all positions of sequences.

    Args:
        utilities: A module as `FlatUtilities`.
        observations: ``[L, B, A_role, size]`` by role.
        memory: ``[L, B, A, H]``, of which the recurrent state before the first position counts; only with recurrence.
        keeps: ``[L, B, A, 1]``, by which the recurrent state before each position is multiplied.
    """
    if not utilities.memory_size:
        return utilities.evaluate(observations)
    state, values, features = memory[0], [], []
    for t, keep in enumerate(keeps):
        value, state = utilities.evaluate({role: rows[t] for role, rows in observations.items()}, state * keep)
        values.append(value)
        features.append(state)
    return torch.stack(values), torch.stack(features)


def q_of_actions(values: torch.Tensor, actions: torch.Tensor, position: Position) -> torch.Tensor:
    """Utilities ``[..., A]`` of the actions ``[..., A]``; 0 for agents out of the match.

    Args:
        values: ``[..., A, M]``.
        actions: int64 ``[..., A]``.
        position: Says which agents are in the match.
    """
    return values.gather(-1, actions[..., None])[..., 0] * position.alive


def greedy(values: torch.Tensor, choice: torch.Tensor, position: Position) -> torch.Tensor:
    """Utilities ``[..., A]`` of each agent's best legal action; 0 for agents out of the match.

    Args:
        values: ``[..., A, M]``, by which the actions are valued.
        choice: ``[..., A, M]``, by which they are chosen (van Hasselt et al., arXiv 1509.06461: the online network's).
        position: Says what is legal, and which agents are in the match.
    """
    return q_of_actions(values, choice.masked_fill(~position.legal, -torch.inf).argmax(-1), position)


def masked_log_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Logarithms of the probabilities of alternatives ``[..., M]``; about `NEVER` for those that are not legal.

    Args:
        logits: ``[..., M]``.
        legal: bool ``[..., M]``.
    """
    return logits.masked_fill(~legal, NEVER).log_softmax(-1)


def ranges(fields: Iterable[ObservationField]) -> list[np.ndarray]:
    """Widths of the ranges of all numbers of an observation; 1 where a range is a point or has no end.

    What `checked` of a field without an end says is what is possible, not what is usual.
    """
    found = []
    for f in fields:
        width = np.broadcast_to(np.subtract(*reversed(bounds(f))), f.shape).reshape(-1)
        found.append(np.where((width == 0.0) | np.isinf(width), 1.0, width))
    return found


def scale_inputs(
    network: nn.Module, rows: np.ndarray, fields: Iterable[ObservationField] | None, prefix: str = ""
) -> None:
    """Sets the buffers ``mean`` and ``scale`` of a network by mean and standard deviation of rows ``[N, I]``.

    Args:
        network: Multiplies inputs less ``mean`` by ``scale``.
        rows: Inputs.
        fields: Fields of a row, by whose ranges `FLATTEST` counts; None where all ranges are 1.
        prefix: Before the names of the buffers.
    """
    least = FLATTEST if fields is None else FLATTEST * np.concatenate(ranges(fields))
    deviation = np.maximum(rows.std(axis=0, dtype=np.float64), least)
    getattr(network, f"{prefix}mean").copy_(torch.from_numpy(rows.mean(axis=0, dtype=np.float64)))
    getattr(network, f"{prefix}scale").copy_(torch.from_numpy(1.0 / deviation))


# ------------------------------------------------------------------------------------------------------------- player


class GreedyPlayer:
    """What greedy players of a team have in common.

    Attributes:
        joint: The choices, or the numbers, of each role's agents as one action.
        gives_numbers: Whether actions are real numbers: then they are the means, and nothing is scored.
        gives_logits: Whether alternatives are scored by logits of a policy; else by values.
        scores: Of the alternatives in the last decision, ``[n, A_role, M]`` by role; -inf for forbidden ones.
    """

    def __init__(self, roster: Roster) -> None:
        """Nothing has been decided."""
        self.joint, self.gives_numbers, self.gives_logits = roster.joint, roster.gives_numbers, False
        self.scores = dict[str, np.ndarray]()

    @property
    def policy_outputs(self) -> dict[str, np.ndarray]:
        """Probabilities or values; see `palaestra.core.run.opponents.Opponent`."""
        if any(len(self.joint[role].sizes) > 1 for role in self.scores):
            return {}
        most = max((scores.shape[2] for scores in self.scores.values()), default=0)
        wide = [(0, 0), (0, 0)]
        rows = [np.pad(s, [*wide, (0, most - s.shape[2])], constant_values=-np.inf) for s in self.scores.values()]
        if not rows:
            return {}
        table = np.concatenate(rows, axis=1)
        if self.gives_logits:
            return {"probability": probabilities(table, None)}
        return {"action value": np.where(np.isfinite(table), table, np.nan)}

    def best(self, role: str, values: np.ndarray, legal: Any) -> np.ndarray:
        """Actions of the agents of a role: the numbers ``values [n, A_role, M]``, or the choices of greatest value.

        Args:
            role: Its name.
            values: Of the alternatives, or scaled numbers.
            legal: What the player is told to be legal.
        """
        if self.gives_numbers:
            return self.joint[role].split(values)
        allowed = legal[role] if isinstance(legal, dict) else legal
        self.scores[role] = values if legal is None else np.where(self.joint[role].mask(allowed), values, -np.inf)
        return self.joint[role].split(self.scores[role].argmax(axis=2))


class UtilityPlayer(GreedyPlayer):
    """Plays one team greedily, each agent by its own utilities: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        memory_size: 0, the player is memoryless.
    """

    memory_size = 0

    def __init__(self, arrays: Mapping[str, np.ndarray], game: Game, team: str) -> None:
        """Reads the weights of the team.

        Args:
            arrays: As `Utilities.arrays` gives them.
            game: The rules.
            team: Name of the team.

        Raises:
            ValueError: The weights were made for another game.
        """
        roster = Roster(game, [team], numbers=True)
        super().__init__(roster)
        self.layers: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for group_name, group in roster.groups.items():
            name = name_of_group(group_name, arrays, roster, team)
            layers = [(weight.T, bias) for weight, bias in arrays_to_layers(arrays, f"{name}.")]
            role, places = group.role.name, group.places
            sizes = (layers[0][0].shape[0], layers[-1][0].shape[1])
            if sizes != (roster.sizes[role], roster.choices[role]):
                raise ValueError(
                    f"the policy sees {sizes[0]} numbers and has {sizes[1]} choices; {team} of {game.name} sees "
                    f"{roster.sizes[role]} and has {roster.choices[role]}, so it was trained for another game"
                )
            place_bias = arrays.get(f"{name}.place_bias", np.empty(0))
            if place_bias.ndim != 2 or place_bias.shape[1] != len(layers[0][1]):
                raise ValueError(f"the policy's {name}.place_bias is {place_bias.shape}, not one row for each place")
            if places.max() >= len(place_bias):
                raise ValueError(
                    f"the policy is one for teams of {len(place_bias)}; {team} has {len(places)} in {role!r}"
                )
            (weight, bias), *rest = layers
            self.layers[role] = [(weight, bias + place_bias[places]), *rest]

    def values(self, role: str, observations: np.ndarray) -> np.ndarray:
        """Utilities float32 ``[n, A_team, choices]`` of the team's agents of one role."""
        (weight, bias), *rest = self.layers[role]
        hidden = observations @ weight + bias
        for weight, bias in rest:
            hidden = np.maximum(hidden, 0.0) @ weight + bias
        return hidden

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        chosen = {}
        for name in self.layers:
            values = self.values(name, observations[name] if isinstance(observations, dict) else observations)
            chosen[name] = self.best(name, values, legal)
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen


def name_of_group(name: str, arrays: Mapping[str, np.ndarray], roster: Roster, team: str) -> str:
    """The group of a policy's weights that plays a group of a game, as a rule that of the same name.

    Roles may have other names where the same rules are another environment: red of Skirmish is a ``unit`` of
    SkirmishDuel. So the only group of a policy plays the only one of a game if it learnt the same team, or if the
    teams are alike.
    """
    there = list(dict.fromkeys(key.partition(".")[0] for key in arrays))
    if name in there or len(there) != 1 or len(roster.groups) != 1:
        return name
    return there[0] if roster.alike or there[0].endswith(f"_{team}") else name


def load_player(path: Path, game: Game, team: str) -> UtilityPlayer:
    """The greedy player of a policy file.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return UtilityPlayer(arrays, game, team)


class NetworkPlayer(GreedyPlayer):
    """Plays one team, whose agents have one role, greedily: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        memory_size: Numbers that the player remembers per lane: the recurrent states of all agents, or 0.
    """

    def __init__(self, network: Any, roster: Roster) -> None:
        """Keeps the network.

        Args:
            network: Utilities of the team's agents, as `FlatUtilities`.
            roster: The team's agents.
        """
        (self.role,) = roster.sizes
        super().__init__(roster)
        self.network, self.memory_size = network, roster.agents * network.memory_size

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        kept, observed = None, {self.role: torch.from_numpy(np.ascontiguousarray(observations))}
        if self.memory_size:
            kept = torch.from_numpy(memory.astype(np.float32)).unflatten(-1, (-1, self.network.memory_size))
            kept = kept * observed[self.role].any(-1, keepdim=True)  # who is out of the match remembers nothing
        with torch.no_grad():
            values, features = self.network.evaluate(observed, kept)
        if self.memory_size:
            memory[:] = features.flatten(-2).numpy()
        return self.best(self.role, values.numpy(), legal)


def fitting_network(make: Callable[[], Module], arrays: Mapping[str, np.ndarray]) -> Module:
    """The network of a policy file; its widths are read from shapes in the file, which may be anybody's.

    Raises:
        ValueError: It would have more weights than the file; it is then not made.
    """
    with torch.device("meta"):  # shapes alone
        weights = sum(weight.numel() for weight in make().parameters())
    if weights > sum(array.size for array in arrays.values()):
        raise ValueError(f"the weights do not fit: the network would have {weights}, the policy has fewer")
    return make()


def load_arrays(network: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Gives a network the weights of a policy file.

    Raises:
        ValueError: An array is missing, is none of the network's, or has another shape.
    """
    network.requires_grad_(False)
    try:
        network.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    except RuntimeError as error:
        raise ValueError(f"the weights do not fit: {' '.join(str(error).split())}") from error


def flat_player(
    arrays: Mapping[str, np.ndarray], game: Game, team: str, kind: type[FlatUtilities] = FlatUtilities
) -> NetworkPlayer:
    """The greedy player of a team.

    Args:
        arrays: As `FlatUtilities.arrays` gives them.
        game: The rules.
        team: Name of the team.
        kind: Class of the network.

    Raises:
        ValueError: The weights were made for another game.
    """
    roster, is_recurrent = Roster(game, [team], numbers=True), "second.weight_ih" in arrays
    names = ("first.weight", "second.weight_hh" if is_recurrent else "second.weight")
    if any(name not in arrays or arrays[name].ndim != 2 for name in names):
        raise ValueError(f"the policy has no matrices {' and '.join(names)}")
    hidden = (len(arrays[names[0]]), arrays[names[1]].shape[1 if is_recurrent else 0])
    network = fitting_network(lambda: kind(roster, hidden, is_recurrent), arrays)
    load_arrays(network, arrays)
    return NetworkPlayer(network, roster)


def load_flat_player(path: Path, game: Game, team: str, kind: type[FlatUtilities] = FlatUtilities) -> NetworkPlayer:
    """The greedy player of a policy file; arguments as of `flat_player`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return flat_player(arrays, game, team, kind)
