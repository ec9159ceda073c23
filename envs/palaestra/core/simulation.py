"""N matches as arrays. Every face and adapter is a view on one Simulation; no rule is ever written twice.

`Simulation` owns the arrays and the verbs. How a decision is carried out is the business of its three kinds:
`palaestra.core.kernel.KernelSimulation` (compiled rules), `palaestra.core.engine.EngineSimulation` (another engine
moves the bodies) and `palaestra.core.workers.ProcessSimulation` (slices of the lanes in processes).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from palaestra.core.actions import (
    ActionError,
    action_rows,
    idle_words,
    mask_rows,
    observation_rows,
    refusal,
    take_role,
    word_table,
)
from palaestra.core.fields import parameter_values
from palaestra.core.game import Game, Role
from palaestra.core.lanes import EXTERNAL, MIX, NEXT_STEP, OFF, SAME_STEP, WAITING
from palaestra.core.opponents import OpponentSpec, resolve, split_strength
from palaestra.core.rng import SALT_RULES, SALT_SCRIPTS, draw_integers, lane_keys
from palaestra.core.seats import Seats, ask, forget, take_seat
from palaestra.core.tape import Tape

AutoresetMode = Literal["next_step", "same_step", "off"]
MODES: dict[str, int] = {"next_step": NEXT_STEP, "same_step": SAME_STEP, "off": OFF}

Arrays = Any
"""An array where the game has one role, else a dict of arrays by role."""


@dataclass(frozen=True)
class Snapshot:
    """Everything that decides how the matches go on: made by `Simulation.snapshot`, taken back by `restore`.

    Attributes:
        game: Name of the game.
        states: The match records, one a lane.
        lane_seeds: Seeds of the lanes.
        memories: Memory of each python opponent, by team.
        engine: What the engine needs to come back (None for kernels).
    """

    game: str
    states: Any
    lane_seeds: np.ndarray
    memories: dict[str, np.ndarray]
    engine: Any = None


class Simulation(ABC):
    """N matches of one game.

    Attributes:
        game: The rules.
        num_envs: Number of lanes N.
        observations: Per role ``[N, A_role, size]`` float32 where the role's fields share a dtype, else a structured
            ``[N, A_role]`` array.
        team_observations: What each team sees besides, structured ``[N, T]`` in the order of ``game.teams``, or None.
        lane_observations: What everybody sees besides, structured ``[N]``, or None.
        actions: Per role, the simulation's own: int64 ``[N, A_role]`` (one choice) or ``[N, A_role, K]``, float64
            ``[N, A_role, K]``, or structured ``[N, A_role]`` for composite actions.
        rewards: float32 ``[N, A]``.
        alive: bool ``[N, A]``, the slot is in the match.
        acting: bool ``[N, A]``, the slot is asked for an action now.
        agent_terminated: bool ``[N, A]``, left the match in this step.
        terminated: bool ``[N]``, the match was ended by a rule in this step.
        truncated: bool ``[N]``, by the horizon.
        legal: int8 masks per role ``[N, A_role, M]`` (the choices side by side), or None if the game has no such rule.
        info: Arrays by name, ``[N, ...]``: winner, end_reason, illegal, and the game's own.
        final_observations: Like observations, valid in lanes that finished in this step under ``same_step``.
        final_legal: Like legal, likewise.
        final_info: Like info, likewise.
        states: The match records ``[N]``: readable by name (``states["position_m"]``), for renderers, critics and
            tests.
        origin: Id and keywords that `palaestra.make_batch` was given; None for a simulation made by hand.
        tape: Who hears what moves the simulation, or None. A copy has none.
    """

    origin: tuple[str, dict[str, Any]] | None = None
    tape: Tape | None = None

    def __init__(
        self,
        game: Game,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode = "next_step",
        threads: int = 1,
        parameters: Mapping[str, Any] | None = None,
        opponents: Mapping[str, OpponentSpec] | None = None,
        allocate: Callable[[str, tuple[int, ...], np.dtype], np.ndarray] | None = None,
        attach: bool = False,
    ) -> None:
        """Allocates the arrays; no match has started before `reset`.

        Args:
            game: The rules.
            num_envs: Number of lanes.
            autoreset_mode: ``"next_step"``, ``"same_step"`` or ``"off"`` (finished lanes wait for `reset`).
            threads: Threads that share the lanes (kernel games).
            parameters: Values of `Game.parameters` for all lanes.
            opponents: Who plays which team or agent, by name; the others are played by whoever calls `step`.
            allocate: ``allocate(name, shape, dtype)`` gives zeroed memory, shared memory say.
            attach: The memory is another simulation's and already holds parameters and assignments.

        Raises:
            ValueError: A number is out of range; names it and the range.
            TypeError: An unknown parameter; suggests the near name.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        if autoreset_mode not in MODES:
            raise ValueError(f"autoreset_mode must be one of {', '.join(MODES)}, got {autoreset_mode!r}")
        self.game, self.num_envs, self.threads = game, num_envs, threads
        self.autoreset_mode = autoreset_mode
        self._mode = MODES[autoreset_mode]
        zeros: Callable[..., Any] = allocate or (lambda _name, shape, dtype: np.zeros(shape, dtype))
        n, a = num_envs, len(game.agents)
        self._words, self._word_names = word_table(game)
        w = len(self._words)
        self.states = zeros("states", (n,), game.state_dtype)
        self._wi = zeros("actions", (n, w), np.dtype("i8"))
        self._observation_memory = zeros("observations", (n,), game.observation_dtype)
        self._mask_memory = zeros("legal", (n,), game.mask_dtype)
        self.rewards = zeros("rewards", (n, a), np.dtype("f4"))
        self.terminated = zeros("terminated", (n,), np.dtype("?"))
        self.truncated = zeros("truncated", (n,), np.dtype("?"))
        self.agent_terminated = zeros("agent_terminated", (n, a), np.dtype("?"))
        finals = n if self._mode == SAME_STEP else 1
        self._final_memory = zeros("final_observations", (finals,), game.observation_dtype)
        self._final_mask_memory = zeros("final_legal", (finals,), game.mask_dtype)
        self._final_info = zeros("final_info", (finals,), game.info_dtype)
        self._scratch = np.zeros(threads, game.scratch_dtype)
        self._action_rows = self._wi.view(game.action_dtype)[:, 0]
        self.alive = self.states["alive"].view("?")
        self.acting = self.states["acting"].view("?")
        self.actions = self._per_role(lambda r: action_rows(self._wi, game, r))
        self._name_observations()
        seen: Any = self._observation_memory
        self.team_observations: np.ndarray | None = seen["team"] if game.team_observation else None
        self.lane_observations: np.ndarray | None = seen["lane"] if game.lane_observation else None
        self.final_observations = self._per_role(lambda r: observation_rows(self._final_memory, game, r))
        self.legal: Arrays | None = (
            self._per_role(lambda r: mask_rows(self._mask_memory, game, r)) if game.legal is not None else None
        )
        self.final_legal: Arrays | None = (
            self._per_role(lambda r: mask_rows(self._final_mask_memory, game, r)) if game.legal is not None else None
        )
        self.info = {name: self.states["info"][name] for name in game.info_dtype.names or ()}
        self.final_info = {name: self._final_info[name] for name in game.info_dtype.names or ()}
        self.lane_seeds = np.zeros(n, np.uint64)
        self._seats: Seats = {}
        self._started = False
        self._closed = False
        if not attach:
            self.states["strength"] = 1.0
            for parameter in game.parameters:
                self.states["parameters"][parameter.name] = parameter.default
            self.states["assigned"] = EXTERNAL
            self.states["playing"] = EXTERNAL
            self._wi[:] = idle_words(self._words)
        if parameters:
            self.set_parameters(**parameters)
        for team, spec in (opponents or {}).items():
            self.set_opponent(team, spec)

    # -- verbs ---------------------------------------------------------------------------------------------------------

    def seed(self, seed: int | Sequence[int] | np.ndarray, mask: np.ndarray | None = None) -> None:
        """Gives lane i the stream ``seed + i``, or the i-th of N seeds; only where ``mask`` (bool ``[N]``) is set.

        Takes effect in the next draw. Without a mask all lanes are seeded.
        """
        if isinstance(seed, int | np.integer):
            if not 0 <= int(seed) < 2**64:
                raise ValueError(f"seed must be in [0, 2**64), got {seed}")
            seeds = np.uint64(seed) + np.arange(self.num_envs, dtype=np.uint64)
        else:
            seeds = np.asarray(seed)
            if seeds.shape != (self.num_envs,) or seeds.dtype.kind not in "iu" or (seeds.astype(object) < 0).any():
                raise ValueError(f"seeds must be {self.num_envs} non-negative integers, got shape {seeds.shape}")
        which = slice(None) if mask is None else self._lane_mask(mask)
        seeds = seeds.astype(np.uint64)
        self.lane_seeds[which] = seeds[which]
        self.states["rng"][which] = lane_keys(seeds, SALT_RULES)[which]
        self.states["script_rng"][which] = lane_keys(seeds, SALT_SCRIPTS)[which]
        self.states["seeded"][which] = 1
        forget(self._seats, which)

    def reset(self, mask: np.ndarray | None = None, *, seed: int | Sequence[int] | np.ndarray | None = None) -> Arrays:
        """Starts a new match in all lanes, or where ``mask`` (bool ``[N]``) is set. Returns `observations`.

        Without a seed the streams go on; lanes that never had one get one from the operating system. A seed is for the
        same lanes as the reset.
        """
        self._check_open()
        which = np.ones(self.num_envs, np.bool_) if mask is None else self._lane_mask(mask)
        if not self._started and not which.all():
            raise ValueError("the first reset starts all lanes: call reset() without a mask")
        if seed is not None:
            self.seed(seed, which)
        unseeded = self.states["seeded"] == 0
        if unseeded.any():
            self.seed(np.random.SeedSequence().generate_state(self.num_envs, np.uint64), unseeded)
        if self.tape is not None:
            self.tape.before(self, which)
        self._reset_lanes(which)
        self._started = True
        if self.tape is not None:
            self.tape.after(self)
        return self.observations

    def step(self, actions: Any = None, out: Mapping[str, np.ndarray] | None = None) -> None:
        """Plays one decision in all lanes; results are in the arrays.

        Args:
            actions: An array like `actions`, or a dict by role. None plays what was written into `actions`.
            out: Caller's own arrays for ``observations`` (games with one role of one dtype), ``rewards``,
                ``terminated``, ``truncated``: C-contiguous, of the right shape and dtype. The simulation uses them as
                its own until another call names others.

        Raises:
            ActionError: Outside its space (shape, range, NaN); names lane, agent, value and space. No match has moved.
            RuntimeError: Before the first reset, or after close.
        """
        if not self._started or self._closed:
            self._check_open()
            raise RuntimeError("step before reset: call reset() first")
        if actions is not None:
            self._take_actions(actions)
        remembered = ask(self, self._seats) if self._seats else ()
        before = self._take_buffers(out) if out is not None else {}
        if self.tape is not None:
            self.tape.before(self, None)
        offender = self._step_lanes()
        if offender >= 0:
            if before:
                self._use_buffers(before)
            raise refusal(self.game, self._words, self._word_names, self._wi, offender)
        for seat, lanes, memory in remembered:
            seat.memory[lanes] = memory
        if self.tape is not None:
            self.tape.after(self)

    def snapshot(self) -> Snapshot:
        """A copy of everything that decides how the matches go on."""
        memories = {team: np.concatenate([s.memory for s in seats], axis=1) for team, seats in self._seats.items()}
        return Snapshot(self.game.name, self.states.copy(), self.lane_seeds.copy(), memories, self._save_engine())

    def restore(self, snapshot: Snapshot) -> Arrays:
        """Goes back to a snapshot of this or an equal simulation. Returns `observations`.

        Raises:
            ValueError: The snapshot is of another game or size, or of other python opponents.
        """
        self._check_open()
        if snapshot.game != self.game.name or snapshot.states.shape != self.states.shape:
            raise ValueError(
                f"snapshot of {snapshot.game} with {len(snapshot.states)} lanes does not fit {self.game.name} "
                f"with {self.num_envs}"
            )
        widths = {team: sum(seat.memory.shape[1] for seat in seats) for team, seats in self._seats.items()}
        if widths != {team: memory.shape[1] for team, memory in snapshot.memories.items()}:
            raise ValueError(
                f"the snapshot was taken against other opponents (memory sizes {widths} here): set_opponent them first"
            )
        self.states[...] = snapshot.states
        self.lane_seeds[...] = snapshot.lane_seeds
        for team, seats in self._seats.items():
            start = 0
            for seat in seats:
                width = seat.memory.shape[1]
                seat.memory[...] = snapshot.memories[team][:, start : start + width]
                start += width
        self._load_engine(snapshot.engine)
        for array in (self.rewards, self.terminated, self.truncated, self.agent_terminated):
            array[...] = 0
        self._started = True
        self._see_lanes(np.ones(self.num_envs, np.bool_))
        return self.observations

    def render(self, lane: int = 0) -> np.ndarray:
        """Picture of one match, uint8 ``[H, W, 3]``, drawn without a display.

        Raises:
            NotImplementedError: The game has no picture.
        """
        if self.game.render is None:
            raise NotImplementedError(f"{self.game.name} has no picture")
        module, _, function = self.game.render.partition(":")
        draw = getattr(importlib.import_module(module), function)
        return draw(self.game, self.game.world, self.states[lane])

    def close(self) -> None:
        """Frees threads and engines; may be called twice."""
        self._closed = True

    # -- teams and parameters ------------------------------------------------------------------------------------------

    def set_opponent(self, who: str, opponent: OpponentSpec, lanes: np.ndarray | Sequence[int] | None = None) -> None:
        """Says who plays a team, or one agent, from now on.

        Args:
            who: Name of a team, or of one agent (``"red_1"``): then a script, ``"random"`` or None, which gives the
                agent back to whoever calls `step` or plays the rest of its team. A later word for the team holds for
                all its agents.
            opponent: None (whoever calls `step`), a script's name, ``"random"``, ``"mix"``, a file, or an `Opponent`:
                see `palaestra.core.opponents.resolve`. ``"mix"`` draws a script at the start of each match,
                ``"tracker:0.7"`` is a script of strength 0.7.
            lanes: bool ``[N]`` mask or indices; all lanes if None.

        Raises:
            ValueError: No such team, agent or player, or one agent of a team for a player that is no script.
        """
        team, slots = self._team_of(who)
        which = np.zeros(self.num_envs, np.bool_)
        which[slice(None) if lanes is None else lanes] = True
        name, strength = split_strength(self.game, opponent)
        resolved = resolve(self.game, team, name)
        number = resolved if isinstance(resolved, int) else EXTERNAL
        if number != EXTERNAL and len(self.game.teams) == 1 and self.game.script is None:
            raise ValueError(f"{self.game.name} has one team and no scripts: whoever calls step plays it")
        if who == team:
            take_seat(self._seats, team, None if isinstance(resolved, int) else resolved, which)
        elif not isinstance(resolved, int):
            raise ValueError(f"{who} can be given to a script alone: whoever else plays, plays a whole team ({team})")
        now = number
        if number == MIX:  # matches that run are played by a script drawn now, later ones by one drawn at their start
            now = draw_integers(self.states["script_rng"], which, len(self.game.scripts)) if self._started else EXTERNAL
        for slot in slots:
            self.states["strength"][which, slot] = strength
            self.states["assigned"][which, slot] = number
            self.states["playing"][which, slot] = now

    def _team_of(self, who: str) -> tuple[str, tuple[int, ...]]:
        """Team and slots of a team's or an agent's name."""
        if who in self.game.teams:
            return who, self.game.teams[who]
        if who in self.game.agents:
            return who.rpartition("_")[0], (self.game.agents.index(who),)
        teams, agents = ", ".join(self.game.teams), ", ".join(self.game.agents)
        raise ValueError(f"{self.game.name} has no team {who!r}: choose from {teams}, or one agent from {agents}")

    def open_slots(self, team: str) -> tuple[int, ...]:
        """Slots of a team that, in some lane, are played by whoever calls `step`."""
        seated = np.zeros(self.num_envs, np.bool_)
        for seat in self._seats.get(team, []):
            seated |= seat.lanes
        outside = (self.states["assigned"] == EXTERNAL) & ~seated[:, None]
        return tuple(slot for slot in self.game.teams[team] if outside[:, slot].any())

    def set_parameters(self, lanes: np.ndarray | Sequence[int] | None = None, **values: float | np.ndarray) -> None:
        """Changes numbers of the rules at once, in all lanes or in ``lanes`` (mask or indices)."""
        arrays = parameter_values(self.game.parameters, values, self.game.name)
        for name, array in arrays.items():
            self.states["parameters"][name][slice(None) if lanes is None else lanes] = array

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Read-only views ``[N]`` of the parameters by name."""
        views = {}
        for p in self.game.parameters:
            view = self.states["parameters"][p.name][:]
            view.flags.writeable = False
            views[p.name] = view
        return views

    def state(self) -> np.ndarray:
        """Global state float32 ``[N, S]`` for centralised critics: the game's own, or all observations side by side."""
        if self.game.global_state is not None:
            out = np.zeros((self.num_envs, self.game.global_state_size), np.float32)
            self._write_state(out)
            return out
        parts = []
        for name in self.game.observation_dtype.names or ():
            block = self._observation_memory[name]
            if block.dtype.names is None:
                raise RuntimeError("observation tables are records")
            parts += [np.asarray(block[m], np.float32).reshape(self.num_envs, -1) for m in block.dtype.names]
        return np.concatenate(parts, axis=1)

    def team_rewards(self, team: str) -> np.ndarray:
        """Reward of a team, float32 ``[N]``: the common value of its members."""
        return self.rewards[:, self.game.teams[team][0]]

    # -- what the kinds supply -----------------------------------------------------------------------------------------

    @abstractmethod
    def _reset_lanes(self, which: np.ndarray) -> None: ...

    @abstractmethod
    def _step_lanes(self) -> int: ...

    @abstractmethod
    def _see_lanes(self, which: np.ndarray) -> None: ...

    @abstractmethod
    def _write_state(self, out: np.ndarray) -> None: ...

    def _save_engine(self) -> Any:
        return None

    def _load_engine(self, saved: Any) -> None:
        return None

    def _buffers_changed(self) -> None:  # noqa: B027 (a kind that holds no pointers has nothing to do)
        """Called after `out=` named other arrays."""

    # -- copying -------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy take: rules, options, arrays, opponents and the engine's way to where it is."""
        return {
            "game": self.game,
            "num_envs": self.num_envs,
            "options": self._copy_options(),
            "arrays": {name: np.array(getattr(self, name)) for name in _LIVE},
            "seats": self._seats,
            "started": self._started,
            "origin": self.origin,
            "engine": self._save_engine() if self._started else None,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Builds an independent simulation in the same state."""
        self.__init__(saved["game"], saved["num_envs"], **saved["options"])  # type: ignore[misc]
        for name, value in saved["arrays"].items():
            getattr(self, name)[...] = value
        self._seats = saved["seats"]
        self._started = saved["started"]
        self.origin = saved["origin"]
        if saved["engine"] is not None:
            self._load_engine(saved["engine"])

    def _copy_options(self) -> dict[str, Any]:
        return {"autoreset_mode": self.autoreset_mode, "threads": self.threads}

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _per_role(self, view: Callable[[Role], np.ndarray]) -> Arrays:
        roles = self.game.roles
        return view(roles[0]) if len(roles) == 1 else {r.name: view(r) for r in roles}

    def _name_observations(self) -> None:
        self.observations = self._per_role(lambda r: observation_rows(self._observation_memory, self.game, r))

    def _take_actions(self, actions: Any) -> None:
        if isinstance(self.actions, np.ndarray):
            take_role(self.game.roles[0], self.actions, actions)
            return
        if not isinstance(actions, Mapping) or set(actions) != set(self.actions):
            raise ActionError(f"actions must be a dict with the roles {', '.join(self.actions)}")
        for role in self.game.roles:
            take_role(role, self.actions[role.name], actions[role.name])

    def _take_buffers(self, out: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Uses the caller's arrays from now on. Returns those that were used before."""
        for name, array in out.items():
            self._check_buffer(name, array)
        before = {name: getattr(self, name) for name in out}
        if all(before[name] is array for name, array in out.items()):
            return {}
        waiting = self.states["pending"] == WAITING
        if waiting.any():  # the step does not write these lanes
            for name, array in out.items():
                array[waiting] = before[name][waiting]
        self._use_buffers(out)
        return before

    def _check_buffer(self, name: str, array: np.ndarray) -> None:
        if name not in ("observations", "rewards", "terminated", "truncated"):
            raise ValueError(f"out= takes observations, rewards, terminated, truncated, not {name!r}")
        own = getattr(self, name)
        if not isinstance(own, np.ndarray) or (name == "observations" and own.dtype.names is not None):
            raise ValueError("out= takes observations only of games with one role whose fields share a dtype")
        if name == "observations" and own[0].nbytes != self.game.observation_dtype.itemsize:
            raise ValueError("out= takes observations only of games without team or lane fields")
        fits = array.shape == own.shape and array.dtype == own.dtype
        if not (fits and array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
            raise ValueError(
                f"out[{name!r}] must be a writable C-contiguous {own.dtype} array of shape {own.shape}, "
                f"got {array.dtype} {array.shape}"
            )

    def _use_buffers(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            setattr(self, name, array)
            if name == "observations":
                rows = array.reshape(self.num_envs, -1)
                self._observation_memory = rows.view(self.game.observation_dtype)[:, 0]
        self._buffers_changed()

    def team_view(self, team: str, what: str, lanes: np.ndarray | slice = slice(None)) -> Any:
        """Rows of one team in ``observations`` or ``legal``: ``[n, A_team, ...]``, a dict if it has several roles."""
        source = getattr(self, what)
        if source is None:
            return None
        parts = {}
        for role, slots in self.team_roles(team).items():
            array = source if isinstance(source, np.ndarray) else source[role]
            parts[role] = array[lanes][:, slots]
        return next(iter(parts.values())) if len(parts) == 1 else parts

    def write_team_actions(self, team: str, actions: Any, lanes: np.ndarray | slice = slice(None)) -> None:
        """Writes the actions of one team: ``[n, A_team, ...]``, or a dict by role where the team has several roles.

        Raises:
            ActionError: Wrong shape or kind. Ranges are checked by `step`.
        """
        roles = self.team_roles(team)
        for role_name, slots in roles.items():
            role = next(r for r in self.game.roles if r.name == role_name)
            given = actions[role_name] if len(roles) > 1 else actions
            target = self.actions if isinstance(self.actions, np.ndarray) else self.actions[role_name]
            rows = np.empty_like(target[lanes][:, slots])
            take_role(role, rows, given)
            if isinstance(lanes, slice):
                target[lanes, slots] = rows
            else:
                target[lanes[:, None], slots] = rows

    def team_roles(self, team: str) -> dict[str, list[int]]:
        """Roles in which a team has members, and the members' indices within each role."""
        members: dict[str, list[int]] = {}
        for slot in self.game.teams[team]:
            role, index = self.game.role_of(slot)
            members.setdefault(role.name, []).append(index)
        return members

    def _lane_mask(self, mask: np.ndarray) -> np.ndarray:
        which = np.ascontiguousarray(mask)
        if which.dtype != np.bool_ or which.shape != (self.num_envs,):
            raise ValueError(f"mask must be bool of shape ({self.num_envs},), got {which.dtype} {which.shape}")
        return which

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this simulation is closed: make another")


_LIVE = (
    "states",
    "_wi",
    "_observation_memory",
    "_mask_memory",
    "_final_memory",
    "_final_mask_memory",
    "_final_info",
    "rewards",
    "terminated",
    "truncated",
    "agent_terminated",
    "lane_seeds",
)
"""Arrays that a copy takes over."""
