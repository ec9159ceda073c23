"""What an author supplies: tables of named quantities and a few small functions of ONE match.

The functions are plain Python that reads like the rules. The suite compiles them, together with every plain function
they call, into the one batch loop of `palaestra.core.linker`; with ``NUMBA_DISABLE_JIT=1`` the same source runs in
CPython with the same bits.

The match record ``s`` has the author's fields (`Game.state`) and these of the suite:

=====================  ==========  ==================================================================================
``s.alive``            uint8 [A]   the slot is in the match; all 1 before `reset`; rules write 0 at death, 1 at arrival
``s.acting``           uint8 [A]   the slot is asked for an action now; all 1 before `reset`, the rules write it
``s.steps``            int64       decisions taken in this match, counted before `step` is called
``s.parameters``       record      one float64 per `Parameter`, and ``horizon``
``s.info``             record      ``winner`` (team index, -1 nobody), ``end_reason`` (index into `Game.end_reasons`),
                                   ``illegal`` (int64 [A], counted by the suite) and the author's `Game.info`
``s.playing``          int64 [A]   script that plays the slot in this match, -1 if somebody outside does
``s.strength``         f64 [A]     share of the decisions that the script takes itself; the others are random
``s.rng``              uint64      stream of the rules: use `palaestra.core.rng.uniform` and friends
``s.script_rng``       uint64      stream of the scripts
=====================  ==========  ==================================================================================

Slots are numbered over all roles in their order. Floats in ``s`` are float64 so that compiled and interpreted runs
agree to the bit. Numba has no nested bool arrays: flags inside records are uint8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from palaestra.core.fields import (
    ActionField,
    Choice,
    Continuous,
    Field,
    Parameter,
    action_dtype,
    parameter_dtype,
    record_dtype,
)

DRAW = -1
"""Value of ``s.info.winner`` while nobody has won, and after a draw."""


@dataclass(frozen=True)
class Role:
    """A run of slots that share their observation and action tables.

    Attributes:
        name: Name of the run; kernels write ``observations.<name>[k]`` and read ``actions.<name>[k]``, k counting
            within the role.
        agents: Names ``{team}_{i}`` of the slots.
        observation: What each of them sees.
        action: What each of them decides.
    """

    name: str
    agents: tuple[str, ...]
    observation: tuple[Field, ...]
    action: tuple[ActionField, ...]


class Codec(Protocol):
    """Translates one agent's arrays to what its users speak (text, graphs, token ids) and back. Plain Python."""

    def observation_space(self, role: Role) -> Any:
        """Gymnasium space of the encoded observation."""
        ...

    def action_space(self, role: Role) -> Any:
        """Gymnasium space of the encoded action."""
        ...

    def encode(self, role: Role, observation: np.void) -> Any:
        """Observation record of one agent -> what the user sees."""
        ...

    def decode(self, role: Role, action: Any) -> Any:
        """What the user says -> an action as the plain face takes it.

        Raises:
            ValueError: The action cannot be understood; names what is wrong.
        """
        ...


@dataclass(frozen=True, eq=False)
class Enumeration:
    """How the positions of a small game are counted, for `palaestra.exact`. Functions of many matches, plain NumPy.

    A position is what decides how a match goes on, the horizon and the streams left aside. Chance is one draw
    ``integer(s, coins)`` of the rules in each decision: `palaestra.exact` sets the stream so that it falls as it wants,
    and plays the game's own compiled step.

    Attributes:
        positions: Number of positions.
        place: ``place(states, numbers)`` writes the author's fields (and ``alive``, ``acting``) of the positions
            ``numbers`` (int64 [N]) into records ``states`` [N] whose own fields are zero.
        number: ``number(states) -> int64 [N]``: the positions of records that the rules have reached.
        coins: Equally likely outcomes of the one draw of `step`; 1 if it draws nothing.
        start_coins: Likewise of `reset`.
        canonical: ``canonical(numbers) -> int64 [N]``: one position for all those that are alike by symmetry (same
            value for the same team). Solvers then visit fewer positions. None where nothing is alike.
    """

    positions: int
    place: Callable[[Any, np.ndarray], None]
    number: Callable[[Any], np.ndarray]
    coins: int = 1
    start_coins: int = 1
    canonical: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Game:
    """The rules of one game as data and functions of one match.

    A kernel game gives ``step``; a game whose bodies another engine moves gives ``command``, ``judge`` and ``plant``.

    Attributes:
        name: CamelCase name, the middle of the id.
        roles: The slots.
        state: The author's fields of the match record: ``(name, dtype)`` or ``(name, dtype, shape)``.
        reset: ``reset(s, world)`` starts a match. The author's fields are zero before it.
        step: ``step(s, world, actions, rewards, scratch) -> bool`` plays one decision; True means that a rule ended
            the match. ``rewards`` (float32 [A]) is zero before it. The horizon is the suite's business.
        observe: ``observe(s, world, observations, scratch)`` writes every observation field of every slot (all are
            zero before it).
        legal: ``legal(s, world, mask)`` writes ``mask.<role>[k].<choice>[alternative] = 1`` (int8), zero before it.
            The suite replaces an illegal choice by its no-op and counts it.
        script: ``script(s, world, slot, which, actions, scratch)`` writes the action of ``slot`` for script number
            ``which``.
        scripts: Names of the scripts, in the order of their numbers. ``"random"`` and ``"mix"`` are the suite's.
        command: ``command(s, world, actions, scratch)`` turns actions into the inputs of the engine's bodies.
        judge: ``judge(s, world, rewards, scratch) -> bool`` applies the rules to the bodies' new state. It adds to the
            rewards (``+=``), which are zeroed once a decision, not once a period: an assignment would lose what earlier
            periods paid.
        plant: ``"module:Class"`` of the engine (see `palaestra.core.engine.Plant`).
        plant_options: Keywords for the engine.
        periods: Times command - engine - judge happen in one decision.
        parameters: Per-lane numbers of the rules. The suite puts ``horizon`` before them.
        horizon: Decisions until a match is truncated.
        info: Author's fields of ``s.info``.
        end_reasons: Names of the ends by rule, from number 2 on (0 is running, 1 the horizon): use `end_reason`.
        lane_observation: Fields stored once per lane, ``observations.lane.<name>``.
        team_observation: Fields stored once per team, ``observations.team[t].<name>``.
        global_state: ``global_state(s, world, out)`` writes the float32 vector for centralised critics.
        global_state_size: Its length. Without the hook the state is all observations side by side.
        scratch: Fields of the work record that each thread owns.
        world: NamedTuple of read-only arrays whose sizes are known only at run time.
        zero_sum: Whether the two team rewards add up to exactly zero in every step.
        reproducibility: ``"exact"`` (arithmetic and square roots only) or ``"pinned"`` (trigonometry or an engine).
        default_opponent: Script that plays the teams a Gymnasium user does not.
        render: ``"module:function"``: ``draw(game, world, s) -> uint8 [H, W, 3]`` of one match.
        render_fps: Decisions per second of simulated time.
        codecs: Named codecs for ``codec=``.
        engine_version: Callable giving the version string that pinned hashes are keyed by.
        enumeration: How positions are counted, for games small enough to be solved.
        mirror: ``mirror(states, actions) -> None`` reflects matches in place: plain NumPy on records [N] with the
            author's fields, ``alive`` and ``acting``, and on action records [N]. Where the teams are alike it also
            exchanges them. A mirrored match goes on as the mirror of the match, to the bit; a draw ``integer(s, 2)``
            falls on the other side.
        mirror_swaps_teams: Whether the mirror exchanges the teams.
    """

    name: str
    roles: tuple[Role, ...]
    state: Sequence[tuple]
    reset: Callable
    observe: Callable
    step: Callable | None = None
    legal: Callable | None = None
    script: Callable | None = None
    scripts: tuple[str, ...] = ()
    command: Callable | None = None
    judge: Callable | None = None
    plant: str | None = None
    plant_options: Mapping[str, Any] = field(default_factory=dict)
    periods: int = 1
    parameters: tuple[Parameter, ...] = ()
    horizon: int = 1000
    info: tuple[Field, ...] = ()
    end_reasons: tuple[str, ...] = ()
    lane_observation: tuple[Field, ...] = ()
    team_observation: tuple[Field, ...] = ()
    global_state: Callable | None = None
    global_state_size: int = 0
    scratch: Sequence[tuple] = (("unused", "f8"),)
    world: Any = None
    zero_sum: bool = False
    reproducibility: Literal["exact", "pinned"] = "pinned"
    default_opponent: str = "random"
    render: str | None = None
    render_fps: float = 10.0
    codecs: Mapping[str, Codec] = field(default_factory=dict)
    engine_version: Callable[[], str] | None = None
    enumeration: Enumeration | None = None
    mirror: Callable[[Any, Any], None] | None = None
    mirror_swaps_teams: bool = True

    agents: tuple[str, ...] = field(init=False)
    teams: dict[str, tuple[int, ...]] = field(init=False)
    team_index: np.ndarray = field(init=False)
    state_dtype: np.dtype = field(init=False)
    info_dtype: np.dtype = field(init=False)
    action_dtype: np.dtype = field(init=False)
    observation_dtype: np.dtype = field(init=False)
    mask_dtype: np.dtype = field(init=False)
    scratch_dtype: np.dtype = field(init=False)

    def __post_init__(self) -> None:
        """Derives the slots, teams and record layouts, and refuses contradictions."""
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        for contradiction in _contradictions(self):
            raise ValueError(f"{self.name}: {contradiction}")
        agents = tuple(a for role in self.roles for a in role.agents)
        if len(set(agents)) != len(agents):
            raise ValueError(f"{self.name}: agent names repeat: {agents}")
        teams: dict[str, list[int]] = {}
        for slot, agent in enumerate(agents):
            team, _, number = agent.rpartition("_")
            if not team or not number.isdigit():
                raise ValueError(f"{self.name}: agent {agent!r} is not named team_number")
            teams.setdefault(team, []).append(slot)
        if self.zero_sum and len(teams) != 2:
            raise ValueError(f"{self.name}: zero_sum needs two teams, got {list(teams)}")
        count = len(agents)
        put("agents", agents)
        put("teams", {team: tuple(slots) for team, slots in teams.items()})
        names = list(teams)
        put("team_index", np.array([names.index(a.rpartition("_")[0]) for a in agents]))
        # The parameters of another game, as `dataclasses.replace` hands them on, begin with its horizon.
        own = self.parameters[_is_horizon(self.parameters[0]) :] if self.parameters else ()
        put("parameters", (_horizon(self.horizon), *own))
        info = [("winner", "i8"), ("end_reason", "i8"), ("illegal", "i8", (count,))]
        put("info_dtype", np.dtype(info + [(f.name, f.dtype, f.shape) for f in self.info], align=True))
        suite = [
            ("rng", "u8"),
            ("script_rng", "u8"),
            ("assigned", "i8", (count,)),
            ("strength", "f8", (count,)),
            ("parameters", parameter_dtype(self.parameters)),
            ("seeded", "u1"),
            ("steps", "i8"),  # from here on a record is cleared when a match starts; what stands before outlives it
            ("playing", "i8", (count,)),
            ("info", self.info_dtype),
            ("alive", "u1", (count,)),
            ("acting", "u1", (count,)),
            ("pending", "u1"),
        ]
        taken = {name for name, *_ in suite} & {name for name, *_ in self.state}
        if taken:
            raise ValueError(f"{self.name}: state fields {sorted(taken)} belong to the suite")
        put("state_dtype", np.dtype([*suite, *self.state], align=True))
        put("action_dtype", np.dtype([(r.name, action_dtype(r.action), (len(r.agents),)) for r in self.roles]))
        observation: list[tuple] = [(r.name, record_dtype(r.observation), (len(r.agents),)) for r in self.roles]
        if self.team_observation:
            observation.append(("team", record_dtype(self.team_observation), (len(teams),)))
        if self.lane_observation:
            observation.append(("lane", record_dtype(self.lane_observation)))
        put("observation_dtype", np.dtype(observation))
        mask = [
            (r.name, np.dtype([(c.name, "i1", (c.n,)) for c in r.action if isinstance(c, Choice)]), (len(r.agents),))
            for r in self.roles
            if any(isinstance(c, Choice) for c in r.action)
        ]
        put("mask_dtype", np.dtype(mask if mask else [("none", "i1")]))
        put("scratch_dtype", np.dtype(list(self.scratch), align=True))

    def __deepcopy__(self, memo: dict) -> Game:
        """Rules do not change: copies share them."""
        return self

    def end_reason(self, number: int) -> str:
        """Name of ``s.info.end_reason``: ``""`` while running, ``"horizon"``, or a rule's name."""
        return ("", "horizon", *self.end_reasons)[number]

    def role_of(self, slot: int) -> tuple[Role, int]:
        """Role of a slot and its index within the role."""
        for role in self.roles:
            if slot < len(role.agents):
                return role, slot
            slot -= len(role.agents)
        raise IndexError(f"{self.name} has {len(self.agents)} slots")


def _horizon(decisions: float) -> Parameter:
    return Parameter("horizon", decisions, 1, 2**53, "decisions", "match is truncated after")


def _is_horizon(parameter: Parameter) -> bool:
    return parameter == _horizon(parameter.default)


def _contradictions(game: Game) -> Iterator[str]:
    """What an author cannot have meant, in words."""
    if (game.step is None) == (game.judge is None):
        yield "give either step, or command, judge and plant"
    if game.judge is not None and (game.command is None or game.plant is None):
        yield "judge needs command and plant"
    if (game.script is None) != (not game.scripts):
        yield "give script and the names of the scripts together"
    if game.default_opponent not in (*game.scripts, "random", *(["mix"] if game.scripts else [])):
        yield f"default_opponent {game.default_opponent!r} is not a script"
    if (game.global_state is None) != (game.global_state_size == 0):
        yield "give global_state and global_state_size together"
    if game.legal is not None and not any(isinstance(a, Choice) for r in game.roles for a in r.action):
        yield "legal has no choice to forbid"
    if any(p.name == "horizon" and not _is_horizon(p) for p in game.parameters):
        yield "the parameter horizon is the suite's: give Game(horizon=...)"
    names = [*(r.name for r in game.roles), "team", "lane"]
    if len(set(names)) != len(names):
        yield f"names of roles repeat, or are 'team' or 'lane': {names[:-2]}"
    for name, dtype, *_ in game.state:
        kind = np.dtype(dtype).base
        if kind.kind == "b" or (kind.kind == "f" and kind.itemsize < 8):
            yield f"state field {name!r} is {kind}: flags are uint8 and real numbers float64 in a match record"
    yield from _bad_numbers(game)


def _bad_numbers(game: Game) -> Iterator[str]:
    seen = [*game.lane_observation, *game.team_observation, *(f for r in game.roles for f in r.observation)]
    for f in (*seen, *(a for r in game.roles for a in r.action if isinstance(a, Continuous))):
        if not (np.isfinite(f.low) and np.isfinite(f.high) and f.low <= f.high):
            yield f"{f.name!r} has no finite bounds: [{f.low:g}, {f.high:g}]"
    for action in (a for r in game.roles for a in r.action):
        low, high = (0, action.n - 1) if isinstance(action, Choice) else (action.low, action.high)
        if not low <= action.noop <= high:
            yield f"noop of {action.name!r} is {action.noop:g}, not in [{low:g}, {high:g}]"
    if game.horizon < 1:
        yield f"horizon must be at least 1, got {game.horizon}"
    for p in game.parameters:
        if not p.low <= p.default <= p.high:
            yield f"default of {p.name!r} is {p.default:g}, not in [{p.low:g}, {p.high:g}]"
