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

    def rows_of_targets(self) -> np.ndarray:
        """int64 ``[2, A, T]``: row of each target of agents that aim at opponents, then at teammates; R for none."""
        k, place = np.arange(self.targets), self.places[:, None]
        mates, rows = self.teammates[:, None], self.table.rows
        opponents = np.where(mates + k < rows, mates + k, rows)
        teammates = np.where((k <= mates) & (k != place), k - (k > place), rows)
        return np.stack([opponents, teammates])


def offsets_of(fields: Iterable[Field | Table]) -> dict[str, int]:
    """Where each field begins, by name."""
    found, first = {}, 0
    for f in fields:
        found[f.name] = first
        first += f.size
    return found


@dataclass(frozen=True)
class UnitFeatures:
    """What an encoder makes of observations.

    Attributes:
        agents: ``[..., A, H]``.
        sides: Rows of teammates and of opponents, ``[..., A, R_side, E]`` each; 0 for units that are not seen. Where
            agents have different numbers of teammates, both hold all R rows, those of the other side 0.
        heals: bool ``[..., A, 1]``: a teammate may be aimed at now.
    """

    agents: torch.Tensor
    sides: tuple[torch.Tensor, torch.Tensor]
    heals: torch.Tensor


class UnitEncoder(nn.Module):
    """Features of agents and of the units that they see, by weights that all agents and units share.

    A row is encoded with what the agent knows of itself, by weights of its own for teammates and for opponents::

        e_j = relu(W_side row_j + U_side own + b_side)            where j is seen, else 0
        h = relu(V [own, mean_j e_j of each side, log(1 + number seen) of each side] + c)

    With recurrence a cell of gated recurrent units (Cho et al., arXiv 1406.1078) follows; its state is the feature.
    """

    own_mean: torch.Tensor
    own_scale: torch.Tensor
    row_mean: torch.Tensor
    row_scale: torch.Tensor
    is_teammate: torch.Tensor

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
        self.register_buffer("is_teammate", is_teammate.float(), persistent=False)
        self.same = len(set(layout.teammates.tolist())) == 1

    def forward(self, observations: torch.Tensor, memory: torch.Tensor | None = None) -> UnitFeatures:
        """Features of observations ``[..., A, size]``; with recurrence of ``memory [..., A, H]``, too.

        Raises:
            ValueError: The encoder is recurrent, and ``memory`` is None.
        """
        layout = self.layout
        own, rows = layout.split(observations)
        own = (own - self.own_mean) * self.own_scale
        seen = rows[..., layout.seen]
        parts = self._sides_of(rows, seen)
        sides, pooled = [], [own]
        for layer, (part, mask) in zip(self.sides, parts, strict=True):
            encoded = self._encoded(layer, part, mask, own)  # type: ignore[arg-type]
            number = mask.sum(-1, keepdim=True)
            pooled += [encoded.sum(-2) / number.clamp(min=1.0), number.log1p()]
            sides.append(encoded)
        features = torch.relu(self.agent(torch.cat(pooled, -1)))
        if self.cell is not None:
            if memory is None:
                raise ValueError("the network is recurrent: it wants the recurrent state of the agents")
            flat = self.cell(features.reshape(-1, features.shape[-1]), memory.reshape(-1, memory.shape[-1]))
            features = flat.view_as(features)
        part, mask = parts[0]
        heals = (part[..., layout.target] * mask > 0.0).any(-1, keepdim=True)
        return UnitFeatures(features, (sides[0], sides[1]), heals)

    def _sides_of(self, rows: torch.Tensor, seen: torch.Tensor) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """Rows and masks ``[..., A, R_side]`` of both sides."""
        if self.same:
            split = int(self.layout.teammates[0])
            return (rows[..., :split, :], seen[..., :split]), (rows[..., split:, :], seen[..., split:])
        return (rows, seen * self.is_teammate), (rows, seen * (1.0 - self.is_teammate))

    def _encoded(self, layer: nn.Linear, rows: torch.Tensor, seen: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Rows ``[..., A, R_side, E]``: the layer's part of the agent is computed once for all of its rows."""
        weight = layer.weight[:, : rows.shape[-1]] * self.row_scale
        of_agent = nn.functional.linear(own, layer.weight[:, rows.shape[-1] :], layer.bias - weight @ self.row_mean)
        of_rows = nn.functional.linear(rows * seen[..., None], weight)
        return of_rows.addcmul_(of_agent[..., None, :], seen[..., None]).relu_()

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

    def forward(self, agents: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Numbers ``[..., A, R]`` of features ``[..., A, H]`` and rows ``[..., A, R, E]``."""
        hidden = self.of_row(rows).add_(self.of_agent(agents)[..., None, :]).relu_()
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
        self.register_buffer("targets", torch.from_numpy(self.layout.rows_of_targets()), persistent=False)

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
        """Utilities ``[..., A, M]`` of features; `NEVER` for alternatives that aim at no row of the agent."""
        named = self.named(features.agents)
        if self.encoder.same and not bool(features.heals.any()):  # as a rule nobody heals: the rows of opponents do
            aimed = self.stream(features.agents, features.sides[1])
            return torch.cat([named, aimed, self._never(aimed, self.layout.targets - aimed.shape[-1])], -1)
        rows = torch.cat(features.sides, -2) if self.encoder.same else sum(features.sides)
        values = self.stream(features.agents, rows)
        values = torch.cat([values, self._never(values, 1)], -1)
        index = torch.where(features.heals, self.targets[1], self.targets[0])
        return torch.cat([named, values.gather(-1, index)], -1)

    @staticmethod
    def _never(values: torch.Tensor, count: int) -> torch.Tensor:
        return values.new_full((*values.shape[:-1], count), NEVER)

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
