"""The parts that the rules of a game are made of, beside its tables: roles, representations, codecs, enumerations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from palaestra.core.contract.fields import ActionField, Choice, ObservationField, Table, check_agents_of_parts


@dataclass(frozen=True)
class Role:
    """A run of slots that share their observation and action tables.

    Attributes:
        name: Name of the run; kernels write ``observations.<name>[k]`` and read ``actions.<name>[k]``, k counting
            within the role.
        agents: Names ``{team}_{i}`` of the slots that users see.
        observation: What each of them sees.
        action: What each of them decides.
        capacity: Slots in the kernel's memory; None where they are the agents. Games that differ in their agents
            alone then share one compiled kernel.
    """

    name: str
    agents: tuple[str, ...]
    observation: tuple[ObservationField, ...]
    action: tuple[ActionField, ...]
    capacity: int | None = None

    def __post_init__(self) -> None:
        """Refuses names by agent that are not of its agents."""
        for seen in (*self.observation, *self.action):
            for column in seen.columns if isinstance(seen, Table) else (seen,):
                if not isinstance(column, Choice):
                    check_agents_of_parts(column, len(self.agents))

    @property
    def slots(self) -> int:
        """Slots in the kernel's memory."""
        return len(self.agents) if self.capacity is None else self.capacity


@dataclass(frozen=True, eq=False)
class Representation:
    """Another way to see the same match, chosen by ``observation="name"``; it is compiled when it is first used.

    It changes nothing in the rules: what agents may do and are paid is the same.

    Attributes:
        about: One line for the documentation.
        observe: Like `Game.observe`.
        observation: Observation tables by role; roles left out keep theirs.
        lane_observation: Like `Game.lane_observation`.
        team_observation: Like `Game.team_observation`.
        observe_reset: Like `Game.observe_reset`.
        global_state: Like `Game.global_state`, by default the game's own.
        global_state_size: Its length.
        default_form: What ``"name"`` alone means: ``"name:flat"`` or ``"name:dict"``.
        codecs: Codecs that read what this representation shows, besides the game's.
    """

    about: str
    observe: Callable
    observation: Mapping[str, tuple[ObservationField, ...]]
    lane_observation: tuple[ObservationField, ...] = ()
    team_observation: tuple[ObservationField, ...] = ()
    observe_reset: Callable | None = None
    global_state: Callable | None = None
    global_state_size: int = 0
    default_form: Literal["flat", "dict"] = "flat"
    codecs: Mapping[str, Codec] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentView:
    """Everything of one agent that a codec may read. The arrays are the simulation's own: read, never write.

    Attributes:
        role: The agent's role.
        slot: Number of its slot.
        row: Its observation record.
        team: What its team sees besides: a record, or None.
        lane: What all agents see besides: a record, or None.
        world: The game's world.
        mask: Its mask record (of the game's choices), or None where the game forbids nothing.
        record: The match record. None for the last observation of a match that a batch has started anew in the same
            step (autoreset ``"same_step"``): `Codec.encode` then has to do without it.
    """

    role: Role
    slot: int
    row: Any
    team: Any
    lane: Any
    world: Any
    mask: Any
    record: Any


class Codec(Protocol):
    """Translates one agent's arrays to what its users read and write (text, graphs, token ids), and back. Plain Python.

    Attributes:
        total: Whether `decode` accepts all of the action space (unknown texts are the no-op, say). Default: False.
        info: ``info(view) -> dict[str, Any]``: what faces add to ``info``, plain Python values by names that faces do
            not use. As for `encode`, the record may be None. May be left out.
        encode_many: Sequence of what `encode` gives in N matches, from one view of records ``[N]``. May be left out.
        info_many: ``info_many(view) -> dict[str, Sequence]``: likewise what `info` gives, by name, one value a match.
        decode_many: ``decode_many(view, actions)``: what `decode` gives in N matches, as one array ``[N, ...]``, or
            what else the face takes of N matches without a codec. Likewise.
        encode_action: ``encode_action(view, action)``, the inverse of `decode`: how a user writes an action that is
            given as the same face takes it without a codec. ValueError where it cannot be written; real numbers may be
            rounded. May be left out: then a codec whose action space is that of the face without a codec takes actions
            as they are meant there.
        tools: ``tools(role) -> dict[str, str]``: what texts with tags say, for language models that call tools instead:
            name and what it does; ``<name>text</name>`` is a turn. May be left out.
        turn_tokens: ``turn_tokens(game)`` -> `palaestra.core.contract.turn_tokens.TurnTokens`: a vocabulary in which
            small language models play without texts. ValueError where the options are too many for it. May be left out.
        demonstration: ``demonstration(view) -> list[str]``: right turns of a match from where it stands, for those
            who learn from texts. Empty where none are known; the record may be None. May be left out.
    """

    def observation_space(self, role: Role) -> Any:
        """Gymnasium space of the encoded observation."""
        ...

    def action_space(self, role: Role) -> Any:
        """Gymnasium space of the encoded action."""
        ...

    def encode(self, view: AgentView) -> Any:
        """The observation that the user gets, a member of the observation space."""
        ...

    def decode(self, view: AgentView, action: Any) -> Any:
        """The user's action in the form that the same face takes without a codec (``codec="none"``).

        Raises:
            ValueError: The action cannot be understood; names what is wrong. The match does not move.
        """
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What those who watch a match as it stands are told beyond its record, see `Game.facts`.

    Attributes:
        options: By slot and by name of a choice, what each of its alternatives does; an empty text for one that is not
            there. Choices that are left out have their ``meanings``.
        numbers: By name, what a page can plot: one number, one a team, or one an agent; NaN where there is none.
    """

    options: Mapping[int, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    numbers: Mapping[str, float | Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Enumeration:
    """How the positions of a small game are counted, for `palaestra.exact`. Functions of many matches, plain NumPy.

    A position is what decides how a match goes on, the horizon and the streams left aside. Chance is one draw
    ``integer(s, chance_outcomes)`` of the rules in each decision: `palaestra.exact` sets the stream so that it falls as
    it wants, and plays the game's own compiled step.

    Attributes:
        positions: Number of positions.
        write_state: ``write_state(states, numbers)`` writes the author's fields (and ``alive``, ``acting``) of the
            positions ``numbers`` (int64 [N]) into records ``states`` [N] whose own fields are zero.
        state_index: ``state_index(states) -> int64 [N]``: the positions of records that the rules have reached.
        chance_outcomes: Equally likely outcomes of the one draw of `step`; 1 if it draws nothing.
        initial_chance_outcomes: Likewise of `reset`.
        canonical: ``canonical(numbers) -> int64 [N]``: one position for all those that are alike by symmetry (same
            value for the same team). Solvers then visit fewer positions. None where nothing is alike.
    """

    positions: int
    write_state: Callable[[Any, np.ndarray], None]
    state_index: Callable[[Any], np.ndarray]
    chance_outcomes: int = 1
    initial_chance_outcomes: int = 1
    canonical: Callable[[np.ndarray], np.ndarray] | None = None
