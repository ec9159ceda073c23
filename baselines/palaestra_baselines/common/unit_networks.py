"""Networks without a fixed number of units: for games whose agents see a row for each other unit.

An agent observes fields about itself and one `palaestra.game.Table` of other units: teammates in the order of
names without itself, then opponents. Its choice has named alternatives, and after them an alternative per target:
opponents, or teammates where an agent may aim at these (a healer). The same weights encode every row, so they fit any
number of agents, rows and targets: weights that were made on one battle play another one.

The sets of rows are encoded and pooled as in Zaheer et al., "Deep Sets" (arXiv 1703.06114); one value per target from
features of the agent and of the target's row is the unit-oriented stream of Chai et al. (arXiv 2203.14477).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from palaestra.core.files import FileError, printable
from palaestra.game import Choice, Field, Game, Role, Table
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import (
    NEVER,
    FlatUtilities,
    NetworkPlayer,
    Utilities,
    UtilityPlayer,
    fitting_network,
    load_arrays,
    load_flat_player,
    load_player,
    scale_inputs,
)
from palaestra_baselines.common.policy_file import read_policy

SEEN, TARGET = "seen", "can_be_target"
"""Columns that a table of units has: a living unit in sight; one that the agent may aim at now."""
Network = Literal["flat", "entity"]
UNITS = "units"
"""Entry of a policy file's metadata: what its weights read and choose, as `UnitLayout.labels`."""


@dataclass(frozen=True)
class UnitLayout:
    """Where an observation holds the numbers of an agent and those of other units, and what the choice aims at.

    Attributes:
        role: The one role of the learning agents.
        table: The rows of other units.
        own: The other fields, in their order.
        first: Where the table begins in an observation.
        seen: Column `SEEN` of a row.
        target: Column `TARGET` of a row.
        named: Meanings of the named alternatives.
        targets: T, number of the other alternatives.
        teammates: int64 ``[A]``: rows of teammates, the first ones, of each agent.
        places: int64 ``[A]``: index of each agent in its team.
    """

    role: Role
    table: Table
    own: tuple[Field, ...]
    first: int
    seen: int
    target: int
    named: tuple[str, ...]
    targets: int
    teammates: np.ndarray
    places: np.ndarray

    @staticmethod
    def of(roster: Roster) -> UnitLayout:
        """Reads the layout of the learning agents.

        Raises:
            ValueError: They have several roles, or the game has no such table or choice; says what is missing.
        """
        game, name = roster.game, roster.game.name
        if len(roster.sizes) != 1:
            raise ValueError(f"{name}: agents that learn have the roles {', '.join(roster.sizes)}; one is needed")
        role = next(role for role in game.roles if role.name in roster.sizes)
        tables = [f for f in role.observation if isinstance(f, Table)]
        if len(tables) != 1:
            raise ValueError(f"{name}: {role.name!r} observes {len(tables)} tables of units; exactly one is needed")
        table, columns = tables[0], offsets_of(tables[0].columns)
        for column in (SEEN, TARGET):
            if column not in columns:
                raise ValueError(f"{name}: the rows of {table.name!r} have no column {column!r}")
        choice = role.action[0]
        assert isinstance(choice, Choice)
        sides = [len(members) for members in game.teams.values()]
        own_side = np.array([sides[team] for team in roster.team_of])
        targets = choice.n - len(choice.meanings)
        if len(sides) != 2 or table.rows != sum(sides) - 1:
            raise ValueError(f"{name}: {table.name!r} has {table.rows} rows, not one for each other unit of two teams")
        if not choice.meanings or targets < (sum(sides) - own_side).max():
            raise ValueError(f"{name}: {choice.name!r} has no alternative for each opponent after its named ones")
        members = [sorted(game.teams[team]) for team in game.teams]
        places = [members[team].index(slot) for team, slot in zip(roster.team_of, roster.slots, strict=True)]
        return UnitLayout(
            role,
            table,
            tuple(f for f in role.observation if isinstance(f, Field)),
            offsets_of(role.observation)[table.name],
            columns[SEEN],
            columns[TARGET],
            choice.meanings,
            targets,
            own_side - 1,
            np.array(places),
        )

    @property
    def own_size(self) -> int:
        """Numbers of an agent about itself."""
        return sum(f.size for f in self.own)

    @property
    def labels(self) -> dict[str, list[str]]:
        """What weights read and choose: fields and columns with their sizes, and named alternatives."""
        read = {"own": self.own, "columns": self.table.columns}
        return {name: [f"{f.name}[{f.size}]" for f in fields] for name, fields in read.items()} | {
            "named": list(self.named)
        }

    def check(self, labels: Any) -> None:
        """Whether weights of another layout fit, by what a policy file says of it, which may be anybody's.

        Raises:
            ValueError: They read or choose something else; names what differs.
        """
        words = {"own": "fields of the agent", "columns": f"columns of {self.table.name!r}", "named": "alternatives"}
        for name, here in self.labels.items():
            told = labels.get(name) if isinstance(labels, Mapping) else None
            there = told if isinstance(told, list) else []
            if there != here:
                more, less = [x for x in there if x not in here], [x for x in here if x not in there]
                found = printable(", ".join(map(str, more))) if more else "nothing"
                what = f"it has {found} beyond, and lacks {', '.join(less) or 'nothing'}"
                raise ValueError(f"the policy has other {words[name]} than the game ({what}), or in another order")

    def split(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers of the agents ``[..., A, own_size]`` and rows ``[..., A, R, W]`` of ``[..., A, size]``."""
        last = self.first + self.table.size
        rows = observations[..., self.first : last].unflatten(-1, self.table.shape)
        if self.first == self.own_size:  # the table is the last field, as a rule: a view
            return observations[..., : self.first], rows
        return torch.cat([observations[..., : self.first], observations[..., last:]], -1), rows

    def targets_of_rows(self) -> np.ndarray:
        """int64 ``[A, R]``: number of the target that each row of an agent is; T for a teammate beyond the targets."""
        row, mates, place = np.arange(self.table.rows), self.teammates[:, None], self.places[:, None]
        teammates = np.minimum(row + (row >= place), self.targets)
        return np.where(row < mates, teammates, row - mates)


def offsets_of(fields: Iterable[Field | Table]) -> dict[str, int]:
    """Where each field begins, by name."""
    found, first = {}, 0
    for f in fields:
        found[f.name] = first
        first += f.size
    return found


@dataclass(frozen=True)
class SeenRows:
    """The rows of teammates, or of opponents, that agents see: S rows, one agent's after the other's.

    Attributes:
        agents: int64 ``[S]``, index of each row's agent among all agents of all observations.
        rows: int64 ``[S]``, its number among the rows of the agent.
        is_target: bool ``[S]``, whether the agent may aim at it now.
        encoded: ``[S, E]``.
    """

    agents: torch.Tensor
    rows: torch.Tensor
    is_target: torch.Tensor
    encoded: torch.Tensor


@dataclass(frozen=True)
class UnitFeatures:
    """What an encoder makes of observations.

    Attributes:
        agents: ``[..., A, H]``.
        sides: Rows of teammates and of opponents.
    """

    agents: torch.Tensor
    sides: tuple[SeenRows, SeenRows]


class UnitEncoder(nn.Module):
    """Features of agents and of the units that they see, by weights that all agents and units share.

    A row is encoded with what the agent knows of itself, by weights of its own for teammates and for opponents::

        e_j = relu(W_side row_j + U_side own + b_side)            of each unit j that is seen
        h = relu(V [own, mean_j e_j of each side, log(1 + number seen) of each side] + c)

    Only rows of units that are seen are computed, a sixth to a third of all in large battles. With recurrence a cell of
    gated recurrent units (Cho et al., arXiv 1406.1078) follows; its state is the feature.
    """

    own_mean: torch.Tensor
    own_scale: torch.Tensor
    row_mean: torch.Tensor
    row_scale: torch.Tensor
    is_side: torch.Tensor

    def __init__(self, layout: UnitLayout, hidden: tuple[int, int], recurrent: bool = False) -> None:
        """Networks of random weights from torch's generator.

        Args:
            layout: Of the learning agents.
            hidden: E and H, widths of the features of a row and of an agent.
            recurrent: Whether a recurrent cell follows.
        """
        super().__init__()
        self.layout, self.memory_size = layout, hidden[1] if recurrent else 0
        own, width, (rows, agents) = layout.own_size, layout.table.width, hidden
        self.sides = nn.ModuleList(nn.Linear(width + own, rows) for _ in range(2))
        self.agent = nn.Linear(own + 2 * rows + 2, agents)
        self.cell = nn.GRUCell(agents, agents) if recurrent else None
        for name, size in (("own", own), ("row", width)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_scale", torch.ones(size))
        is_teammate = torch.from_numpy(np.arange(layout.table.rows) < layout.teammates[:, None])
        self.register_buffer("is_side", torch.stack([is_teammate, ~is_teammate]), persistent=False)

    def forward(self, observations: torch.Tensor, memory: torch.Tensor | None = None) -> UnitFeatures:
        """Features of observations ``[..., A, size]``; with recurrence of ``memory [..., A, H]``, too.

        Raises:
            ValueError: The encoder is recurrent, and ``memory`` is None.
        """
        own, rows = self.layout.split(observations)
        own = (own - self.own_mean) * self.own_scale
        flat, rows = own.reshape(-1, own.shape[-1]), rows.reshape(-1, *self.layout.table.shape)
        seen = (rows[..., self.layout.seen] > 0.0).view(-1, *self.is_side.shape[1:])
        sides, pooled = [], [flat]
        for layer, is_side in zip(self.sides, self.is_side, strict=True):
            is_seen = (seen & is_side).flatten(0, 1)
            side = self._encoded(layer, rows, flat, is_seen)  # type: ignore[arg-type]
            number = is_seen.sum(-1, keepdim=True).to(flat.dtype)
            total = flat.new_zeros(len(flat), side.encoded.shape[-1]).index_add(0, side.agents, side.encoded)
            pooled += [total / number.clamp(min=1.0), number.log1p()]
            sides.append(side)
        features = torch.relu(self.agent(torch.cat(pooled, -1)))
        if self.cell is not None:
            if memory is None:
                raise ValueError("the network is recurrent: it wants the recurrent state of the agents")
            features = self.cell(features, memory.reshape(-1, memory.shape[-1]))
        return UnitFeatures(features.view(*own.shape[:-1], -1), (sides[0], sides[1]))

    def _encoded(self, layer: nn.Linear, rows: torch.Tensor, own: torch.Tensor, is_seen: torch.Tensor) -> SeenRows:
        """Rows of a side, of all rows ``[N, R, W]``: the layer's part of an agent is computed once for all of its."""
        agents, numbers = is_seen.nonzero(as_tuple=True)
        seen, width = rows[agents, numbers], rows.shape[-1]
        weight = layer.weight[:, :width] * self.row_scale
        of_agent = nn.functional.linear(own, layer.weight[:, width:], layer.bias - weight @ self.row_mean)
        encoded = nn.functional.linear(seen, weight).add_(of_agent.index_select(0, agents)).relu_()
        return SeenRows(agents, numbers, seen[:, self.layout.target] > 0.0, encoded)

    def standardise(self, observations: np.ndarray) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A, size]``.

        Only agents that observe anything count, and only rows of units that they see.
        """
        own, rows = (part.numpy() for part in self.layout.split(torch.from_numpy(observations)))
        for name, fields, used in (
            ("own", self.layout.own, own[own.any(-1)]),
            ("row", self.layout.table.columns, rows[rows[..., self.layout.seen] > 0.0]),
        ):
            if len(used):
                scale_inputs(self, used, fields, f"{name}_")


class UnitStream(nn.Module):
    """A number for each row: ``w . relu(U h + V row + b) + c`` of features h of the agent."""

    def __init__(self, agents: int, rows: int, hidden: int) -> None:
        """Layers of random weights for features of given widths."""
        super().__init__()
        self.of_agent = nn.Linear(agents, hidden)
        self.of_row = nn.Linear(rows, hidden, bias=False)
        self.out = nn.Linear(hidden, 1)

    def forward(self, of_agents: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Numbers ``[...]`` of rows ``[..., E]``.

        Args:
            of_agents: ``[..., hidden]``, what `of_agent` makes of the agent of each row.
            rows: The rows.
        """
        hidden = self.of_row(rows).add_(of_agents).relu_()
        return (hidden.flatten(0, -2) @ self.out.weight[0] + self.out.bias).view(rows.shape[:-1])


class UnitUtilities(nn.Module):
    """Utilities of all learning agents, or logits: one value per named alternative and one per target.

    Attributes:
        memory_size: H, length of the recurrent state of an agent; 0 without recurrence.
    """

    targets: torch.Tensor

    def __init__(self, roster: Roster, hidden: tuple[int, ...], recurrent: bool = False) -> None:
        """Networks of random weights from torch's generator.

        Args:
            roster: The learning agents.
            hidden: Widths of the features of a row (the first) and of an agent (the last).
            recurrent: Whether agents have a recurrent state.

        Raises:
            ValueError: The game has no such table or choice, see `UnitLayout.of`.
        """
        super().__init__()
        self.layout, (rows, agents) = UnitLayout.of(roster), (hidden[0], hidden[-1])
        self.encoder = UnitEncoder(self.layout, (rows, agents), recurrent)
        self.named = nn.Linear(agents, len(self.layout.named))
        self.stream = UnitStream(agents, rows, rows)
        self.register_buffer("targets", torch.from_numpy(self.layout.targets_of_rows()), persistent=False)

    @property
    def memory_size(self) -> int:
        """See the class."""
        return self.encoder.memory_size

    def forward(self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of observations ``[..., A, size]`` by role; ``memory`` as in `evaluate`."""
        return self.evaluate(observations, memory)[0]

    def evaluate(
        self, observations: Mapping[str, torch.Tensor], memory: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Utilities ``[..., A, M]`` and features ``[..., A, H]``, which are the new recurrent state.

        Args:
            observations: ``[..., A, size]`` by role.
            memory: ``[..., A, H]``, recurrent state before the decision; only with recurrence.
        """
        features = self.encoder(observations[self.layout.role.name], memory)
        return self.values(features), features.agents

    def values(self, features: UnitFeatures) -> torch.Tensor:
        """Utilities ``[..., A, M]`` of features; `NEVER` for targets at which an agent may not aim now."""
        named = self.named(features.agents)
        number = named.shape[-1]
        values = nn.functional.pad(named, (0, self.layout.targets + 1), value=NEVER).flatten(0, -2)
        of_agents = self.stream.of_agent(features.agents).flatten(0, -2)
        for side in features.sides:
            agents, rows = side.agents[side.is_target], side.rows[side.is_target]
            aimed = self.stream(of_agents.index_select(0, agents), side.encoded[side.is_target])
            targets = self.targets[agents % len(self.targets), rows]
            values = values.index_put((agents, number + targets), aimed)
        return values[:, :-1].unflatten(0, named.shape[:-1])

    def standardise(self, observed: Mapping[str, np.ndarray]) -> None:
        """Scales inputs by mean and standard deviation of observations ``[N, A, size]`` by role."""
        self.encoder.standardise(observed[self.layout.role.name])

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name for a player: those of no layer depend on numbers of units."""
        return {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}

    def notes(self) -> dict[str, Any]:
        """Further metadata of a policy file."""
        return {UNITS: self.layout.labels}

    def player(self, game: Game, team: str) -> NetworkPlayer:
        """The greedy player of a team by copies of the current weights."""
        return unit_player(self.arrays(), game, team)


def make_utilities(
    roster: Roster, network: Network, hidden: tuple[int, ...], recurrent: bool = False
) -> Utilities | FlatUtilities | UnitUtilities:
    """Utilities of the learning agents by the name of their network.

    Raises:
        ValueError: ``entity`` in a game without a table of units, see `UnitLayout.of`.
    """
    if network == "entity":
        return UnitUtilities(roster, hidden, recurrent)
    return FlatUtilities(roster, hidden) if recurrent else Utilities(roster, hidden)


# ------------------------------------------------------------------------------------------------------------- player


def unit_player(arrays: Mapping[str, np.ndarray], game: Game, team: str) -> NetworkPlayer:
    """The greedy player of a team.

    Args:
        arrays: As `UnitUtilities.arrays` gives them.
        game: The rules.
        team: Name of the team.

    Raises:
        ValueError: An array is missing or has another shape, or the game has no such table.
    """
    roster, names = Roster(game, [team]), ("encoder.sides.0.weight", "encoder.agent.weight")
    if any(name not in arrays or arrays[name].ndim != 2 for name in names):
        raise ValueError(f"the policy has no matrices {' and '.join(names)}")
    hidden = tuple(len(arrays[name]) for name in names)
    network = fitting_network(lambda: UnitUtilities(roster, hidden, "encoder.cell.weight_ih" in arrays), arrays)
    load_arrays(network, arrays)
    return NetworkPlayer(network, roster)


def load_unit_player(path: Path, game: Game, team: str) -> NetworkPlayer:
    """The greedy player of a policy file, which may have been trained in another game of the same units.

    Raises:
        FileError: The file is no saved policy of units, or reads or chooses something else than the team's agents.
    """
    arrays, notes = read_policy(path)
    trained_in = notes.get("env_id")
    if UNITS not in notes:
        raise FileError(f"{path}: its metadata say nothing about {UNITS}, it plays {printable(trained_in)} alone")
    try:
        UnitLayout.of(Roster(game, [team])).check(notes[UNITS])
        return unit_player(arrays, game, team)
    except ValueError as error:
        raise FileError(
            f"{path}: cannot play {team} of {game.name}: {error} (it was trained in {printable(trained_in)})"
        ) from error


def load_utilities(path: Path, game: Game, team: str) -> UtilityPlayer | NetworkPlayer:
    """The greedy player of a policy file, by whichever network it holds.

    Raises:
        FileError: The file is no saved policy, or does not fit the team.
    """
    arrays, notes = read_policy(path)
    if UNITS in notes:
        return load_unit_player(path, game, team)
    return (load_flat_player if "first.weight" in arrays else load_player)(path, game, team)
