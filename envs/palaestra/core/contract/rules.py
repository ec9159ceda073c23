"""What an author supplies: tables of named quantities and a few small functions of ONE match.

The functions are plain Python that reads like the rules. The suite compiles them, with every plain function that they
call, into the one batch loop of `palaestra.core.compile.linker`; with ``NUMBA_DISABLE_JIT=1`` CPython runs them, bit
for bit.

The match record ``s`` has the author's fields (`Game.state`) and these of the suite:

=====================  ==========  ==================================================================================
``s.alive``            uint8 [A]   the slot is in the match; all 1 before `reset`; rules write 0 at death, 1 at the
                                   arrival of a slot that was never in the match. For respawn keep it 1, write
                                   ``s.acting`` 0 and keep a counter of your own
``s.acting``           uint8 [A]   the slot is asked for an action now; all 1 before `reset`, the rules write it
``s.steps``            int64       decisions taken in this match, counted before `step` is called
``s.parameters``       record      one float64 per `Parameter`, and ``horizon``
``s.info``             record      ``winner`` (team index, -1 none), ``end_reason`` (index into `Game.end_reasons`),
                                   ``illegal`` (int64 [A], counted by the suite) and the author's `Game.info`
``s.current_player``   int64 [A]   script that plays the slot in this match, -1 for the caller
``s.team``             int64 [A]   team of the slot, -1 for a slot beyond the visible agents
``s.strength``         f64 [A]     share of the decisions that the script takes itself; the others are random. Where
                                   hooks read it, the script takes all of them and grades itself
``s.rng``              uint64      stream of the rules: use `palaestra.game.uniform` and friends
``s.script_rng``       uint64      stream of the scripts
=====================  ==========  ==================================================================================

Slots are numbered over the visible agents of all roles in their order. A is the capacity; slots beyond the visible
agents are never alive. Floats in ``s`` are float64 and flags uint8 (Numba has no nested bool arrays). Compiled and
interpreted runs agree to the bit as long as rules take `math.sqrt`, not a power of 0.5.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from palaestra.core.contract import layout
from palaestra.core.contract.fields import Choice, Continuous, Field, ObservationField, Parameter, bounds
from palaestra.core.contract.game_parts import Codec, Enumeration, Representation, Role
from palaestra.core.contract.keywords import check_word
from palaestra.core.contract.worlds import read_only

DRAW = -1
"""Value of ``s.info.winner`` while there is no winner, and after a draw."""
LONGEST = 10**9
"""Decisions that a match may last: twelve days at a thousand a second."""
TERMINATED, TRUNCATED = 1, 2
"""What `Game.step` and `Game.evaluate` return when the match is over; 0 while it goes on."""


@dataclass(frozen=True, eq=False)
class Game:
    """The rules of one game as data and functions of one match.

    A kernel game gives ``step``. A game whose bodies an engine moves gives ``command``, ``evaluate`` and the engine: a
    hook ``advance`` that is compiled with the rules, or ``physics`` for one outside. The rules are the same for both.

    Attributes:
        name: CamelCase name, the middle of the id.
        roles: The slots.
        state: The author's fields of the match record: ``(name, dtype)`` or ``(name, dtype, shape)``.
        reset: ``reset(s, world)`` starts a match. The author's fields are zero before it.
        step: ``step(s, world, actions, rewards, scratch) -> int`` plays one decision. It returns 0 while the match goes
            on, `TERMINATED` (or True) when a rule ended it, `TRUNCATED` when it has to be cut off (a diverged body, a
            spent budget). ``rewards`` ([A]) is zero before it. The horizon is the suite's business.
        observe: ``observe(s, world, observations, scratch)`` writes every observation field of every slot (all are
            zero before it) but those ``at="reset"``.
        observe_reset: ``observe_reset(s, world, observations, scratch)`` writes the fields ``at="reset"`` when a match
            has started.
        legal: ``legal(s, world, mask)`` writes ``mask.<role>[k].<choice>[alternative] = 1`` (int8), zero before it; for
            a choice with candidates it calls `palaestra.game.offer` for each alternative. The suite replaces an
            illegal choice by its no-op and counts it.
        script: ``script(s, world, slot, which, actions, scratch)`` writes the action of ``slot`` for script number
            ``which``.
        plan: ``plan(s, world, team, which, scratch)`` is called once in a decision for each team and script, before the
            first of the team's slots that the script plays: what concerns the whole team goes into ``scratch``.
        scripts: Names of the scripts, in the order of their numbers. ``"random"``, ``"mix"`` and
            ``"held_out"`` are the suite's.
        held_out: Names of the scripts, the last ones of ``scripts``, that are for evaluation: ``"mix"`` draws from the
            others, ``"held_out"`` from these. They can be named all the same.
        command: ``command(s, world, actions, scratch)`` turns actions into the inputs of the engine's bodies.
        advance: ``advance(s, world, scratch)`` moves the bodies by one period: a compiled engine.
        load: ``load(s, world, scratch)`` completes the bodies of a compiled engine after `reset`.
        evaluate: ``evaluate(s, world, rewards, scratch) -> int`` applies the rules to the bodies' new state; results as
            of ``step``. It adds to the rewards (``+=``), which are zeroed once a decision, not once a period: an
            assignment would lose what earlier periods paid.
        physics: ``"module:Class"`` of an engine outside (see `palaestra.game.PhysicsEngine`).
        physics_options: Keywords for it. Functions of its package among them belong to the digest of the rules.
        model_digest: Callable giving a text that stands for what decides the rules outside of Python code and `world`,
            such as the model file that an engine reads from another package. It enters the digest of the rules. If it
            has a method ``licence()``, what that says stands on the game's page.
        periods: Times command - engine - evaluate happen in one decision.
        parameters: Per-lane numbers of the rules. The suite puts ``horizon`` before them.
        horizon: Decisions until a match is truncated.
        info: Author's fields of ``s.info``.
        end_reasons: Names of the ends by rule, from number 2 on (0 is running, 1 the horizon): use `end_reason`.
        truncation_reasons: Names of the ends by `TRUNCATED`, their numbers follow those of ``end_reasons``.
        lane_observation: Fields stored once per lane, ``observations.lane.<name>``.
        team_observation: Fields stored once per team, ``observations.team[t].<name>``.
        representations: Other ways to see the match, by name.
        default_observation: What faces show unless asked: ``"flat"``, ``"dict"``, or a representation's name, which
            may say its form (``"entities:dict"``).
        reward: ``"team"``: the members of a team are paid the same; ``"agent"``: each its own.
        reward_dtype: ``"f4"``, or ``"f8"`` where peers pay in double precision.
        global_state: ``global_state(s, world, out)`` writes the float32 vector for centralised critics.
        global_state_size: Its length. Without the hook the state is all observations side by side.
        scratch: Fields of the work record that each thread owns.
        world: NamedTuple of arrays, plain numbers and further such tuples: read-only data, never compiled in.
        zero_sum: Whether the two team rewards add up to exactly zero in every step.
        determinism: ``"cross-platform"`` (arithmetic and `math.sqrt` only: the same bits on all machines) or
            ``"per-platform"`` (powers, trigonometry, engines).
        default_opponent: Script that plays the teams a Gymnasium user does not.
        render: ``"module:function"``: ``draw(game, world, s)`` of one match: its picture, uint8 ``[H, W, 3]``, or an
            object that `numpy.asarray` makes that of (`palaestra.drawing.canvas.Canvas`); one that is a
            `palaestra.core.contract.pictures.Drawing` can be drawn at any ``render_size=``. ``s`` has attributes
            as in every hook (``s.info.winner``). ``game.name`` is there the preset that is played: ``TeamTag-2v2``.
            ``"engine"`` where the engine outside draws. By default the match record as text; None for no picture.
        render_fps: Decisions per second of simulated time.
        render_text: ``"module:function"``: ``write(game, world, s) -> str`` of one match, for ``render_mode="ansi"``.
            Like ``render`` it reads the record and changes nothing. By default the match record; None for no text.
        captions: What pictures and texts name beyond the rules (units, maps, passages), in a form of the game's own. It
            decides nothing: it is neither compiled nor part of the digest.
        click: ``"module:function"``: ``click(game, world, s, slot, x, y)`` for ``palaestra play``. It returns what a
            click on column x and row y of the picture means for the agent in ``slot``: an action in the form of its
            space (an int, an array, a dict by field), the name of the agent to command next, or None for nothing.
        facts: ``"module:function"``: ``facts(game, world, s) -> Facts`` of one match: what alternatives of choices do
            now, and numbers to plot. Like ``render`` it reads the record and changes nothing.
        plots: At most two names of what the page of a match plots over time unless its reader asks for something else:
            observation fields of one number, info fields, fields of ``state``, numbers of ``facts``.
        goal_reward: ``"module:function"``: ``reward(achieved, desired, info) -> [N]``, what the rules pay for decisions
            after which the observation fields ``achieved_goal`` and ``desired_goal`` are these (arrays ``[N, ...]`` of
            the shapes that faces show). It is the ``compute_reward`` of the faces, which hindsight replay calls.
        codecs: Codecs by name, which users choose by ``codec="name"``: for faces of single agents (a ParallelEnv, or
            the team of one).
        default_codec: Name of the codec that such faces use by default; ``codec="none"`` gives the
            plain arrays. None: plain arrays are the default.
        engine_version: Callable giving the version string that per-platform hashes are keyed by.
        enumeration: How positions are counted, for games small enough to be solved.
        symmetric_teams: Whether the two teams have the same task under the same rules, so that a player of one can play
            the other and neither has an advantage. `palaestra.evaluation` then plays each seed from both sides. A
            ``mirror`` proves it in the conformance kit; where an engine outside moves the bodies it is the author's
            word.
        mirror: ``mirror(states, actions) -> None`` reflects matches in place: plain NumPy on records [N] with the
            author's fields, ``alive`` and ``acting``, and on action records [N]. With ``symmetric_teams`` it also
            exchanges the teams. A mirrored match goes on as the mirror of the match, to the bit; a draw
            ``integer(s, 2)`` falls on the other side.
    """

    name: str
    roles: tuple[Role, ...]
    state: Sequence[tuple]
    reset: Callable
    observe: Callable
    step: Callable | None = None
    observe_reset: Callable | None = None
    legal: Callable | None = None
    script: Callable | None = None
    plan: Callable | None = None
    scripts: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    command: Callable | None = None
    advance: Callable | None = None
    load: Callable | None = None
    evaluate: Callable | None = None
    physics: str | None = None
    physics_options: Mapping[str, Any] = field(default_factory=dict)
    model_digest: Callable[[], str] | None = None
    periods: int = 1
    parameters: tuple[Parameter, ...] = ()
    horizon: int = 1000
    info: tuple[Field, ...] = ()
    end_reasons: tuple[str, ...] = ()
    truncation_reasons: tuple[str, ...] = ()
    lane_observation: tuple[ObservationField, ...] = ()
    team_observation: tuple[ObservationField, ...] = ()
    representations: Mapping[str, Representation] = field(default_factory=dict)
    default_observation: str = "flat"
    reward: Literal["team", "agent"] = "team"
    reward_dtype: Literal["f4", "f8"] = "f4"
    global_state: Callable | None = None
    global_state_size: int = 0
    scratch: Sequence[tuple] = (("unused", "f8"),)
    world: Any = None
    zero_sum: bool = False
    determinism: Literal["cross-platform", "per-platform"] = "per-platform"
    default_opponent: str = "random"
    render: str | None = "palaestra.drawing.plain_picture:draw"
    render_fps: float = 10.0
    render_text: str | None = "palaestra.drawing.plain_picture:write"
    captions: Any = None
    click: str | None = None
    facts: str | None = None
    plots: tuple[str, ...] = ()
    goal_reward: str | None = None
    codecs: Mapping[str, Codec] = field(default_factory=dict)
    default_codec: str | None = None
    engine_version: Callable[[], str] | None = None
    enumeration: Enumeration | None = None
    symmetric_teams: bool = False
    mirror: Callable[[Any, Any], None] | None = None

    agents: tuple[str, ...] = field(init=False)
    teams: dict[str, tuple[int, ...]] = field(init=False)
    team_index: np.ndarray = field(init=False)
    slots: int = field(init=False)
    sized: bool = field(init=False)
    state_dtype: np.dtype = field(init=False)
    info_dtype: np.dtype = field(init=False)
    action_dtype: np.dtype = field(init=False)
    observation_dtype: np.dtype = field(init=False)
    kernel_observation_dtype: np.dtype = field(init=False)
    mask_dtype: np.dtype = field(init=False)
    kernel_mask_dtype: np.dtype = field(init=False)
    scratch_dtype: np.dtype = field(init=False)

    def __post_init__(self) -> None:
        """Derives the slots, teams and record layouts, and refuses contradictions.

        ``slots`` is the capacity A, ``sized`` says that some table has a capacity of its own. ``observation_dtype`` and
        ``mask_dtype`` are in the sizes that users see; kernels write records of the ``kernel_`` layouts.
        """
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        for contradiction in _contradictions(self):
            raise ValueError(f"{self.name}: {contradiction}")
        agents = tuple(a for role in self.roles for a in role.agents)
        teams = _teams_of(agents, self.name)
        if self.zero_sum and len(teams) != 2:
            raise ValueError(f"{self.name}: zero_sum needs two teams, got {list(teams)}")
        put("agents", agents)
        put("teams", {team: tuple(slots) for team, slots in teams.items()})
        if self.symmetric_teams and not teams_are_alike(self):
            raise ValueError(f"{self.name}: symmetric_teams needs two teams with equally many agents of each role")
        put("team_index", np.array([list(teams).index(a.rpartition("_")[0]) for a in agents]))
        put("slots", sum(role.slots for role in self.roles))
        put("sized", layout.is_sized(self.roles, (*self.lane_observation, *self.team_observation, *self.info)))
        # The parameters of another game, as `dataclasses.replace` hands them on, begin with its horizon.
        own = self.parameters[_is_horizon(self.parameters[0]) :] if self.parameters else ()
        put("parameters", (_horizon(self.horizon), *own))
        put("info_dtype", layout.info_dtype(self.info, self.slots))
        put("state_dtype", layout.state_dtype(self.name, self.state, self.parameters, self.info_dtype))
        put("action_dtype", layout.actions_dtype(self.roles))
        observed = (self.roles, self.team_observation, len(self.teams), self.lane_observation)
        put("kernel_observation_dtype", layout.observations_dtype(*observed, visible=False))
        put("observation_dtype", layout.observations_dtype(*observed, visible=True))
        masked = () if self.legal is None else self.roles
        put("kernel_mask_dtype", layout.masks_dtype(masked, visible=False))
        put("mask_dtype", layout.masks_dtype(masked, visible=True))
        put("scratch_dtype", np.dtype(list(self.scratch), align=True))
        _check_names(self)
        put("world", read_only(self.world))
        put("_variants", {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes pickled fields; NumPy's pickles forget that an array is read-only, which compiled code relies on."""
        vars(self).update(state)
        vars(self)["world"] = read_only(self.world)

    @property
    def mixtures(self) -> tuple[str, ...]:
        """Players that draw a script for each match: ``"mix"``, and ``"held_out"`` where scripts are held out."""
        return ("mix",) * bool(self.scripts) + ("held_out",) * bool(self.held_out)

    def titled(self, title: str) -> Game:
        """The same rules under another name, for pictures."""
        other = object.__new__(Game)
        vars(other).update(vars(self), name=title)
        return other

    def shown_as(self, observation: str | None) -> tuple[Game, Any]:
        """Resolves an ``observation=`` argument to the game in that representation and ``"flat"`` or ``"dict"``.

        Args:
            observation: ``"flat"``, ``"dict"``, a representation's name, ``"name:flat"``, ``"name:dict"``, or None for
                the game's default.

        Raises:
            ValueError: No such representation or form; names those that there are.
        """
        if not isinstance(observation, str | None):
            raise ValueError(f'observation must be "flat", "dict" or a representation of the game, got {observation!r}')
        name, _, form = (self.default_observation if observation is None else observation).partition(":")
        if name in ("flat", "dict") and not form:
            return self, name
        if form not in ("", "flat", "dict"):
            raise ValueError(f'observation={observation!r}: the form of {name!r} is "flat" or "dict", got {form!r}')
        shown = self.represented(name)
        return shown, form or shown.default_observation

    def represented(self, name: str) -> Game:
        """The game as one of its representations shows it; the same object each time.

        Raises:
            ValueError: No such representation; names those that there are.
        """
        if name not in self.representations:
            known = ", ".join(map(repr, ("flat", "dict", *self.representations)))
            raise ValueError(f"{self.name} has no observation {name!r}: choose from {known}")
        variants: dict[str, Game] = self._variants  # type: ignore[attr-defined]
        if name not in variants:
            other = self.representations[name]
            variants[name] = replace(
                self,
                roles=tuple(replace(r, observation=other.observation.get(r.name, r.observation)) for r in self.roles),
                observe=other.observe,
                observe_reset=other.observe_reset,
                lane_observation=other.lane_observation,
                team_observation=other.team_observation,
                global_state=other.global_state or self.global_state,
                global_state_size=other.global_state_size or self.global_state_size,
                default_observation=other.default_form,
                codecs={**self.codecs, **other.codecs},
            )
            vars(variants[name])["shown_from"] = (self, name)
        return variants[name]

    def __repr__(self) -> str:
        """The name and the sizes of the teams."""
        return f"<Game {self.name}: {', '.join(f'{team} {len(slots)}' for team, slots in self.teams.items())}>"

    def __deepcopy__(self, memo: dict) -> Game:
        """Rules do not change: copies share them."""
        return self

    def end_reason(self, number: int) -> str:
        """Name of ``s.info.end_reason``: ``""`` while running, ``"horizon"``, or a rule's name.

        Raises:
            ValueError: No reason has this number.
        """
        names = self.all_end_reasons
        if not 0 <= number < len(names):
            raise ValueError(
                f"{self.name}: s.info.end_reason is {number}, and the reasons are {dict(enumerate(names))}: its step "
                "writes a number that Game(end_reasons=...) does not name"
            )
        return names[number]

    @functools.cached_property
    def all_end_reasons(self) -> tuple[str, ...]:
        """Names of the numbers of ``s.info.end_reason``, see `end_reason`."""
        return ("", "horizon", *self.end_reasons, *self.truncation_reasons)

    @functools.cached_property
    def team_names(self) -> dict[int, str]:
        """Names of the numbers of teams, ``""`` for -1: the winner of a draw."""
        return {DRAW: "", **dict(enumerate(self.teams))}

    @functools.cached_property
    def team_of_slots(self) -> np.ndarray:
        """``s.team`` of every match: the team's number, -1 for slots beyond the visible agents."""
        return read_only(np.pad(self.team_index, (0, self.slots - len(self.agents)), constant_values=-1))

    def role_of(self, slot: int) -> tuple[Role, int]:
        """Role of a slot and its index within the role."""
        for role in self.roles:
            if slot < len(role.agents):
                return role, slot
            slot -= len(role.agents)
        raise IndexError(f"{self.name} has {len(self.agents)} slots")

    def team_roles(self, team: str) -> dict[str, list[int]]:
        """Roles in which a team has members, and the members' indices within each role."""
        if team not in self._members:
            check_word("team", team, tuple(self.teams))
        return self._members[team]

    @functools.cached_property
    def _members(self) -> dict[str, dict[str, list[int]]]:
        """Members of each role by team; opponents ask in every step."""
        found: dict[str, dict[str, list[int]]] = {team: {} for team in self.teams}
        for team, slots in self.teams.items():
            for role, index in map(self.role_of, slots):
                found[team].setdefault(role.name, []).append(index)
        return found


def _check_names(game: Game) -> None:
    """Refuses fields that are named like an attribute of NumPy's records: in plain Python ``s.size`` is no field."""
    tables = (game.state_dtype, game.action_dtype, game.kernel_observation_dtype, game.kernel_mask_dtype)
    for name in (name for table in (*tables, game.scratch_dtype) for name in _names_in(table)):
        if hasattr(np.record, name):
            raise ValueError(f"{game.name}: {name!r} is an attribute of NumPy's records: give the field another name")


def _names_in(table: np.dtype) -> Iterator[str]:
    for name in table.base.names or ():
        yield name
        yield from _names_in(table.base[name])


def _horizon(decisions: float) -> Parameter:
    return Parameter("horizon", decisions, 1, LONGEST, "decisions", "match is truncated after", whole=True)


def _is_horizon(parameter: Parameter) -> bool:
    return parameter == _horizon(parameter.default)


def _teams_of(agents: tuple[str, ...], owner: str) -> dict[str, list[int]]:
    if len(set(agents)) != len(agents):
        raise ValueError(f"{owner}: agent names repeat: {agents}")
    teams: dict[str, list[int]] = {}
    for slot, agent in enumerate(agents):
        team, _, number = agent.rpartition("_")
        if not team or not number.isdigit():
            raise ValueError(f"{owner}: agent {agent!r} is not named team_number")
        teams.setdefault(team, []).append(slot)
    return teams


def _contradictions(game: Game) -> Iterator[str]:
    """What an author cannot have meant, in words."""
    yield from _bad_hooks(game)
    if (game.global_state is None) != (game.global_state_size == 0):
        yield "give global_state and global_state_size together"
    if any(p.name == "horizon" and not _is_horizon(p) for p in game.parameters):
        yield "the parameter horizon is the suite's: give Game(horizon=...)"
    if game.reward == "agent" and game.zero_sum:
        yield 'zero_sum is a promise about team rewards: it needs reward="team"'
    if game.default_codec is not None and game.default_codec not in game.codecs:
        yield f"default_codec {game.default_codec!r} is not one of codecs"
    if game.default_observation.partition(":")[0] not in ("flat", "dict", *game.representations):
        yield f"default_observation {game.default_observation!r} is neither flat, dict nor a representation"
    defaults = {p.name: p.default for p in game.parameters}
    for p in game.parameters:
        if p.up_to and p.default > defaults.get(p.up_to, -np.inf):
            yield f"the range from {p.name!r} up to {p.up_to!r} does not exist, or its defaults are exchanged"
    numbers = {f.name for role in game.roles for f in role.observation if isinstance(f, Field) and f.size == 1}
    numbers |= {f.name for f in game.info} | {name for name, *_ in game.state}
    if len(game.plots) > 2 or not (numbers.issuperset(game.plots) or game.representations or game.facts):
        yield f"plots names at most two fields, got {game.plots}"
    names = [*(r.name for r in game.roles), "team", "lane"]
    if len(set(names)) != len(names):
        yield f"names of roles repeat, or are 'team' or 'lane': {names[:-2]}"
    for name, dtype, *_ in game.state:
        yield from _bad_kinds(name, np.dtype(dtype))
    yield from _bad_sizes(game)
    yield from _bad_numbers(game)


def _bad_kinds(name: str, dtype: np.dtype) -> Iterator[str]:
    """Kinds of numbers in a state field, and in the records inside it, that a match record may not have."""
    kind = dtype.base
    for member in kind.names or ():
        yield from _bad_kinds(f"{name}.{member}", kind[member])
    if kind.kind == "b" or (kind.kind == "f" and kind.itemsize < 8):
        yield f"state field {name!r} is {kind}: flags are uint8 and real numbers float64 in a match record"


def _bad_hooks(game: Game) -> Iterator[str]:
    engines = (game.advance is not None) + (game.physics is not None)
    if (game.step is None) == (game.evaluate is None):
        yield "give either step, or command, evaluate and an engine (advance or physics)"
    if game.evaluate is not None and (game.command is None or engines != 1):
        yield "evaluate needs command and one engine: advance or physics"
    if game.step is not None and (game.command is not None or engines):
        yield "command, advance and physics go with evaluate, not with step"
    if game.load is not None and game.advance is None:
        yield "load completes the bodies of a compiled engine: it needs advance"
    if (game.script is None) != (not game.scripts):
        yield "give script and the names of the scripts together"
    if game.plan is not None and game.script is None:
        yield "plan plans for scripts: it needs script"
    if game.held_out and game.held_out != game.scripts[1:][-len(game.held_out) :]:
        yield f"held_out must be the last scripts, and not all, got {game.held_out} of {game.scripts}"
    if game.default_opponent not in (*game.scripts, "random", *game.mixtures):
        yield f"default_opponent {game.default_opponent!r} is not a script"
    if game.default_opponent in (*game.held_out, "held_out"):
        yield f"default_opponent {game.default_opponent!r} is held out for evaluation: name another player"
    if game.legal is not None and not any(isinstance(a, Choice) for r in game.roles for a in r.action):
        yield "legal has no choice to forbid"


def _bad_sizes(game: Game) -> Iterator[str]:
    for role in game.roles:
        if role.slots < len(role.agents):
            yield f"capacity {role.capacity} of {role.name!r} does not hold its {len(role.agents)} agents"
        for choice in (c for c in role.action if isinstance(c, Choice)):
            if choice.candidates is not None and game.legal is None:
                yield f"{choice.name!r} has candidates: legal has to list them"
    not_shared = [*game.team_observation, *(f for r in game.roles for f in r.observation)]
    at_reset = any(f.at == "reset" for f in (*game.lane_observation, *not_shared))
    if at_reset != (game.observe_reset is not None):
        yield 'give observe_reset and fields with at="reset" together'
    for f in (f for f in not_shared if f.world is not None):
        yield f"{f.name!r} is an array of the world: such a field belongs to lane_observation"
    for f in game.lane_observation:
        if f.world is None:
            continue
        array = getattr(game.world, f.world, None)
        if not isinstance(array, np.ndarray) or array.shape != f.shape or array.dtype != np.dtype(f.dtype):
            given = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            yield f"{f.name!r} is {f.dtype} {f.shape}, but world.{f.world} is {given}"
    if game.scripts and len({a.rpartition("_")[0] for r in game.roles for a in r.agents}) * len(game.scripts) > 62:
        yield "teams times scripts must be at most 62"


def _bad_numbers(game: Game) -> Iterator[str]:
    seen = [*game.lane_observation, *game.team_observation, *(f for r in game.roles for f in r.observation)]
    for f in (*seen, *(a for r in game.roles for a in r.action if isinstance(a, Continuous))):
        for column in getattr(f, "columns", (f,)):
            low, high = bounds(column)
            is_action, checked = isinstance(column, Continuous), getattr(column, "checked", None)
            may_be_infinite = checked is not None and np.dtype(getattr(column, "dtype", "f8")).kind == "f"
            if checked is not None and not (np.isfinite(checked).all() and checked[0] <= checked[1]):
                yield f"checked range of {column.name!r} is {checked}: give finite numbers (low, high)"
            bad = ~(low <= high) | ~(may_be_infinite | (np.isfinite(low) & np.isfinite(high)))
            if bad.any():
                text = f"[{low[bad][0]:g}, {high[bad][0]:g}]"
                hint = "" if is_action else " (infinite ones need real numbers and checked=(low, high))"
                yield f"{column.name!r} has no finite bounds: {text}{hint}"
    for action in (a for r in game.roles for a in r.action):
        limits = (0, action.n - 1) if isinstance(action, Choice) else bounds(action)
        low, high, noop = (np.broadcast_to(np.asarray(b), action.shape) for b in (*limits, action.noop))
        bad = ~((low <= noop) & (noop <= high))
        if bad.any():
            yield f"noop of {action.name!r} is {noop[bad][0]:g}, not in [{low[bad][0]:g}, {high[bad][0]:g}]"
    if game.horizon < 1:
        yield f"horizon must be at least 1, got {game.horizon}"
    for p in game.parameters:
        if not p.low <= p.default <= p.high:
            yield f"default of {p.name!r} is {p.default:g}, not in [{p.low:g}, {p.high:g}]"
        if p.values and p.default not in p.values:
            yield f"default of {p.name!r} is {p.default:g}, none of its values"


def teams_are_alike(game: Game) -> bool:
    """Whether two teams have equally many slots of each role, so that players can change sides."""
    crews = [Counter(game.role_of(slot)[0].name for slot in slots) for slots in game.teams.values()]
    return len(crews) == 2 and crews[0] == crews[1]
