"""N matches as arrays. Every face and adapter is a view on one Simulation; no rule is ever written twice.

`Simulation` owns the arrays and offers the calls. How a decision is carried out is the business of its three kinds:
`palaestra.core.run.kernel.KernelSimulation` (compiled rules), `palaestra.core.run.physics.PhysicsSimulation` (another
engine moves the bodies) and `palaestra.core.run.workers.ProcessSimulation` (slices of the lanes in processes).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, NEXT_STEP, OFF, SAME_STEP, SKIP, WAITING
from palaestra.core.compile.identity import rules_digest
from palaestra.core.compile.linker import jit_disabled, record_view
from palaestra.core.contract.actions import ActionTable, OutOfRange
from palaestra.core.contract.factories import load
from palaestra.core.contract.keywords import check_count as check_number
from palaestra.core.contract.pictures import Size, check_size, pixels_of
from palaestra.core.contract.rules import Game
from palaestra.core.rng import SALT_RULES, SALT_SCRIPTS, lane_keys, lane_seeds
from palaestra.core.run.arrays import Arrays, ByRole
from palaestra.core.run.buffers import Allocate, allocated, check_count, write_observations_flat
from palaestra.core.run.call_guard import CallGuard, Closes, RollbackOnError, exclusive
from palaestra.core.run.opponent_assignments import OpponentAssignments
from palaestra.core.run.opponents import OpponentSpec
from palaestra.core.run.parameters import ParameterRecords
from palaestra.core.run.recorder_protocol import Call, RecorderProtocol
from palaestra.core.run.snapshot import Snapshot, check_records, check_snapshot

AutoresetMode = Literal["next_step", "same_step", "off"]
OPTIONS = ("autoreset_mode", "threads", "compiled", "out_of_range", "render_size")
MODES: dict[str, int] = {"next_step": NEXT_STEP, "same_step": SAME_STEP, "off": OFF}


class Simulation(Arrays, Closes, ABC):
    """N matches of one game.

    A call that an interrupt (Ctrl-C, an alarm) or an error of the engine ends has happened, or has not, or the next
    call raises `palaestra.core.run.call_guard.InterruptedCallError` until a reset of all lanes or a restore. Two
    threads cannot play one simulation at the same time: the second call is refused.

    Attributes:
        game: The rules.
        num_envs: Number of lanes N.
        compiled: Whether the rules run as machine code.
        observations: Per role ``[N, A_role, size]`` float32 where the role's fields share a dtype, else a structured
            ``[N, A_role]`` array.
        team_observations: What each team sees besides, structured ``[N, T]`` in the order of ``game.teams``, or None.
        lane_observations: What all agents see besides, structured ``[N]``, or None.
        actions: Per role, the simulation's own: int64 ``[N, A_role]`` (one choice) or ``[N, A_role, K]``, float64
            ``[N, A_role, K]``, or structured ``[N, A_role]`` for composite actions.
        rewards: Float of `Game.reward_dtype`, ``[N, A]``.
        alive: bool ``[N, A]``, the slot is in the match.
        acting: bool ``[N, A]``, the slot is asked for an action now.
        agent_terminated: bool ``[N, A]``, left the match in this step.
        terminated: bool ``[N]``, the match was ended by a rule in this step.
        truncated: bool ``[N]``, by the horizon.
        legal: int8 masks per role ``[N, A_role, M]`` (the choices side by side; records by choice where a choice has a
            list of candidates), or None if the game has no such rule.
        world_observations: Fields of ``lane_observation`` that are an array of the world: read-only views ``[N, ...]``
            of the one array.
        info: Arrays by name, ``[N, ...]``: winner, end_reason, illegal, and the game's own.
        final_observations: Like observations, valid in lanes that finished in this step under ``same_step``.
        final_legal: Like legal, likewise.
        final_info: Like info, likewise.
        states: The match records ``[N]``: readable by name (``states["position_m"]``), for renderers, critics and
            tests. Fields of the rules are at capacity.
        buffers: The memory itself, of which the arrays above are views.
        action_table: What an action may hold.
        opponent_assignments: Python opponents by team.
        guard: Which call is running or was interrupted.
        origin: Id and keywords that `palaestra.make_batch` was given; None for a simulation made by hand.
        title: What pictures call the game: the preset that is played, or the name of the game.
        render_size: Columns and rows of pictures; None for the size of the game's own.
        recorder: Receives all calls that decide how the matches go on, or None. A copy has none.
    """

    origin: tuple[str, dict[str, Any]] | None = None
    recorder: RecorderProtocol | None = None

    def __init__(
        self,
        game: Game,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode = "next_step",
        threads: int = 1,
        compiled: bool = True,
        out_of_range: OutOfRange = "clip",
        render_size: Size | None = None,
        parameters: Mapping[str, Any] | None = None,
        opponents: Mapping[str, OpponentSpec] | None = None,
        allocate: Allocate | None = None,
        attach: bool = False,
    ) -> None:
        """Allocates the arrays; no match has started before `reset`.

        Args:
            game: The rules.
            num_envs: Number of lanes.
            autoreset_mode: ``"next_step"``, ``"same_step"`` or ``"off"`` (finished lanes wait for `reset`).
            threads: Threads that share the lanes; an external engine receives their number.
            compiled: False runs the rules as plain Python, with the same bits, index checks and no compilation: for
                tests and for debuggers. ``NUMBA_DISABLE_JIT=1`` says so for the whole process.
            out_of_range: ``"clip"``: finite real numbers beyond their bounds become the nearer bound, in `actions` too;
                ``"raise"``: they are refused. NaN, infinity and wrong choices are always refused.
            render_size: Columns and rows of the pictures that `render` gives; None for the size of the game's own.
            parameters: Values of `Game.parameters` for all lanes.
            opponents: Players by name of team or agent; the caller of `step` plays the others.
            allocate: ``allocate(name, shape, dtype)`` gives zeroed memory, shared memory say.
            attach: The memory is another simulation's and already holds parameters and assignments.

        Raises:
            ValueError: A number is out of range; names it and the range.
            TypeError: An unknown parameter; suggests the near name.
        """
        num_envs, threads = check_count("num_envs", num_envs), check_count("threads", threads)
        if autoreset_mode not in MODES:
            raise ValueError(f"autoreset_mode must be one of {', '.join(MODES)}, got {autoreset_mode!r}")
        if out_of_range not in ("clip", "raise"):
            raise ValueError(f'out_of_range must be "clip" or "raise", got {out_of_range!r}')
        self.threads, self.out_of_range, self.render_size = threads, out_of_range, check_size(render_size)
        self.compiled = compiled and not jit_disabled()
        self.autoreset_mode = autoreset_mode
        self.autoreset = MODES[autoreset_mode]
        buffers = allocated(game, num_envs, num_envs if self.autoreset == SAME_STEP else 1, threads, allocate)
        super().__init__(game, num_envs, buffers, ActionTable(game, out_of_range))
        self.title = game.name
        self.lane_seeds = np.zeros(num_envs, np.uint64)
        self.opponent_assignments = OpponentAssignments()
        self.guard = CallGuard(game.name)
        self._outputs_hold = True  # not after a call without outputs, until all lanes show what their records hold
        self._parameters = ParameterRecords(game, self.states)
        if not attach:
            self.states["strength"] = 1.0
            self.states["team"] = game.team_of_slots
            self.states["assigned_player"] = CALLER
            self.states["current_player"] = CALLER
            self._parameters.write_defaults()
            self.buffers.action_words[:] = self.action_table.idle
        if parameters:
            self.set_parameters(**parameters)
        for team, spec in (opponents or {}).items():
            self.set_opponent(team, spec)

    @functools.cached_property
    def rules(self) -> str:
        """Digest of the rules, see `palaestra.core.compile.identity.rules_digest`."""
        return rules_digest(self.game)

    @property
    def started(self) -> bool:
        """Whether a match has been started in every lane."""
        return self.guard.started

    def __repr__(self) -> str:
        """Kind, game and options in one line."""
        state = "closed" if self.guard.closed else "started" if self.started else "reset() starts it"
        lanes = f"{self.num_envs} lane{'s' * (self.num_envs > 1)}"
        return f"<{type(self).__name__} {self.game.name}: {lanes}, autoreset_mode={self.autoreset_mode!r}, {state}>"

    # -- calls ---------------------------------------------------------------------------------------------------------

    @exclusive
    def seed(self, seed: int | Sequence[int] | np.ndarray, mask: np.ndarray | None = None) -> None:
        """Gives lane i the stream ``seed + i``, or the i-th of N seeds; only where ``mask`` (bool ``[N]``) is set.

        Takes effect in the next draw. Without a mask all lanes are seeded.
        """
        seeds, which = lane_seeds(seed, self.num_envs), self._which(mask)
        interrupted = self.guard.interrupted  # a reset that helps may follow
        self._begin("seed", overwrites_all=True)
        self._seed(seeds, which, interrupted)
        self.guard.interrupted = interrupted

    def _seed(self, seeds: np.ndarray, which: np.ndarray, interrupted: str) -> None:
        self._about_to("seed", which, interrupted=interrupted)
        self.lane_seeds[which] = seeds[which]
        self.states["rng"][which] = lane_keys(seeds, SALT_RULES)[which]
        self.states["script_rng"][which] = lane_keys(seeds, SALT_SCRIPTS)[which]
        self.states["seeded"][which] = 1
        self.opponent_assignments.clear_memory(which)
        self._has_done()

    @exclusive
    def reset(self, mask: np.ndarray | None = None, *, seed: int | Sequence[int] | np.ndarray | None = None) -> ByRole:
        """Starts a new match in all lanes, or where ``mask`` (bool ``[N]``) is set. Returns `observations`.

        Without a seed the streams go on; lanes that never had one get one from the operating system. A seed is for the
        same lanes as the reset.
        """
        which = self._which(mask)
        is_whole = mask is None or bool(which.all())
        if not self.started and not is_whole:
            raise ValueError("the first reset starts all lanes: call reset() without a mask")
        seeds = None if seed is None else lane_seeds(seed, self.num_envs)
        if interrupted := self.guard.interrupted:
            self._begin("reset", overwrites_all=is_whole)
        self.guard.interrupted = "reset"
        if seeds is not None:
            self._seed(seeds, which, interrupted)
        unseeded = None if self.started else self.states["seeded"] == 0
        if unseeded is not None and unseeded.any():
            drawn = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
            self._seed(lane_seeds(drawn, self.num_envs), unseeded, interrupted)
        if self.recorder is not None:
            self._about_to("reset", which, interrupted=interrupted)
        self._reset_lanes(which)
        self.guard.started = True
        self._has_done()
        self.guard.interrupted = ""
        return self.observations

    def step(self, actions: Any = None, lanes: np.ndarray | None = None, *, outputs: bool = True) -> None:
        """Plays one decision in all lanes, or where ``lanes`` (bool ``[N]``) is set; results are in the arrays.

        A lane that is left out stays as it is, its stream and what it shows included, and its action is not looked at.
        Its results say that nothing happened: no reward, and no end but that of a match that waits for `reset`.

        Args:
            actions: An array like `actions`, or a dict by role. None plays what was written into `actions`.
            lanes: Which lanes move; all if None.
            outputs: False for search, which reads `states`, rewards, ends and winners alone: observations and masks of
                the lanes that move are not written, and neither is what `state` takes from them. They hold again after
                the next call with outputs (`step`, `refresh`, `restore`; `reset` and `load_states` for their lanes).
                Illegal choices are replaced and counted all the same. The first such call compiles the rules anew.

        Raises:
            ActionError: Outside its space (shape, range, NaN); names lane, agent, value and space. No match has moved.
            RuntimeError: Before the first reset, or after close.
            ValueError: ``lanes`` is not bool ``[N]``; ``outputs=False`` with an engine outside, workers, a Python
                opponent, a recorder, or matches that start anew by themselves.
        """
        guard = self.guard
        if guard.blocked and not (guard.suspended and self._open_again()):
            raise guard.refusal_of_step()
        guard.blocked = True  # no thread switch lies between the test and this
        try:
            if actions is not None:
                self.write_actions(actions)
            step = self._one_call if outputs and self._outputs_hold else None
            if step is not None and lanes is None and not self.opponent_assignments and self.recorder is None:
                offender = step()
            else:
                offender = self._step_in_parts(None if lanes is None else self._which(lanes), outputs)
        except BaseException as error:
            guard.end_step_by(error)
            raise
        guard.blocked = False
        if offender >= 0:
            raise self.action_table.refusal(self.buffers.action_words, offender)

    def _step_in_parts(self, which: np.ndarray | None, outputs: bool) -> int:
        """A decision of the lanes ``which`` (all if None) that is more than one call of machine code.

        With Python opponents, a recorder, threads, an engine, lanes that are left out, or without outputs. Where it is
        interrupted before the matches move, nothing has happened; later, the mark of the guard stays.

        Returns:
            The place of an action that was refused, or -1.
        """
        guard = self.guard
        if not outputs:
            self._check_no_outputs("step")
        play = self._step_lanes if outputs else self._step_results
        guard.running = "step"
        try:
            if outputs and not self._outputs_hold:  # for players that read, and for what is written at a start alone
                guard.interrupted = "step"
                self._refresh_lanes(np.ones(self.num_envs, np.bool_))
                guard.interrupted = ""
            keep_outputs = self.recorder is not None and self.recorder.keep_outputs
            remembered = self.opponent_assignments.query(self, self.lane_seeds, which, keep_outputs)
            self._about_to("step", which)
            guard.interrupted = "step"
            offender = play() if which is None else self._step_some(which, play)
            if offender < 0:
                for team, assignment, lanes, memory in remembered:
                    assignment.remember(self, team, lanes, memory)
                self._has_done()
            guard.interrupted = ""
        except BaseException as error:
            if guard.interrupted:
                guard.interrupted = f"step (by {type(error).__name__})"
            raise
        finally:
            guard.running = ""
        return offender

    def _step_some(self, which: np.ndarray, play: Callable[[], int]) -> int:
        """As ``play`` (`_step_lanes` or `_step_results`), for some lanes alone."""
        pending, left_out = self.states["pending"], ~which
        before = pending.copy()
        pending[left_out] = SKIP
        try:
            offender = play()
        finally:
            pending[left_out] = before[left_out]
        if offender < 0:
            self.buffers.clear_results(left_out & (before != WAITING))
            self.rewards[left_out] = 0.0
            self.agent_terminated[left_out] = False
        return offender

    @exclusive
    def snapshot(self) -> Snapshot:
        """A copy of everything that decides how the matches go on."""
        self.guard.check_whole("snapshot")
        states, seeds, memories = self.states.copy(), self.lane_seeds.copy(), self.opponent_assignments.memories()
        made = Snapshot(self.game.name, self.rules, states, seeds, memories, self._save_engine())
        self._about_to("snapshot", what=made)
        self._has_done()
        return made

    @exclusive
    def restore(self, snapshot: Snapshot) -> ByRole:
        """Goes back to a snapshot of this or an equal simulation. Returns `observations`.

        Raises:
            ValueError: The snapshot is of another game, of other rules or sizes, or of other python opponents.
        """
        sizes = self.opponent_assignments.memory_sizes()
        check_snapshot(snapshot, self.game.name, self.num_envs, self.rules, sizes)
        self._about_to("restore", what=snapshot)
        self._begin("restore", overwrites_all=True)
        self.states[...] = snapshot.states
        self.lane_seeds[...] = snapshot.lane_seeds
        self.opponent_assignments.restore_memories(snapshot.memories)
        self._load_engine(snapshot.engine)
        everywhere = np.ones(self.num_envs, np.bool_)
        self.buffers.clear_results(everywhere)
        self.guard.started = True
        self._refresh_lanes(everywhere)
        self._has_done()
        self.guard.interrupted = ""
        return self.observations

    @exclusive
    def load_states(self, records: np.ndarray, mask: np.ndarray | None = None, *, outputs: bool = True) -> ByRole:
        """Lets lanes go on from match records: for search, curricula and tests. Returns `observations`.

        A record holds all that decides how a match goes on, its streams, parameters and players included: take them
        from `states` (a copy) and change what you want. An engine outside starts its bodies as the records say.

        Args:
            records: Records of ``game.state_dtype``, one for each chosen lane in their order.
            mask: bool ``[N]``; all lanes if None.
            outputs: False for search: what the lanes show is not written, see `step`.

        Raises:
            ValueError: Records of another game, of other agents, or not one a lane; ``outputs=False`` with an engine
                outside, workers, a Python opponent or a recorder.
        """
        if not outputs:
            self._check_no_outputs("load_states")
        which = self._which(mask)
        records = np.asarray(records)
        check_records(self.game, records, int(which.sum()))
        if not self.started and not which.all():
            raise ValueError("no match has started yet: load records into all lanes, or call reset() first")
        self.guard.check_whole("load_states")
        self._about_to("load_states", which)
        self._begin("load_states")
        self.states[which] = records
        self._load_bodies(which)
        self.buffers.clear_results(which)
        self.guard.started = True
        (self._refresh_lanes if outputs else self._share_masks)(which)
        self._has_done()
        self.guard.interrupted = ""
        return self.observations

    @exclusive
    def refresh(self, mask: np.ndarray | None = None) -> ByRole:
        """Writes observations and masks anew after `states` were changed by hand. Returns `observations`."""
        which = self._which(mask)
        self.guard.check_whole("refresh")
        self._about_to("refresh", which)
        self._begin("refresh")
        self._refresh_lanes(which)
        self._has_done()
        self.guard.interrupted = ""
        return self.observations

    def render(self, lane: int = 0) -> np.ndarray:
        """Picture of one match, uint8 ``[H, W, 3]``, drawn without a display; H and W as `render_size` says.

        Raises:
            NotImplementedError, ValueError: The game has no picture; there is no such lane.
        """
        return pixels_of(self.draw(lane), self.render_size)

    def draw(self, lane: int = 0) -> Any:
        """What `Game.render` gives for one match: pixels, or what `numpy.asarray` makes pixels of.

        Raises:
            NotImplementedError, ValueError: See `render`.
        """
        check_number("lane", lane, -self.num_envs, self.num_envs - 1)
        if self.game.render is None:
            raise NotImplementedError(f"{self.game.name} has no picture")
        if self.game.render == "engine":
            return self._render_engine(lane)
        game = self.game.titled(self.title)
        return load(self.game.render)(game, game.world, record_view(self.states)[lane])

    def render_text(self, lane: int = 0) -> str:
        """One match in words.

        Raises:
            NotImplementedError, ValueError: The game has no text; there is no such lane.
        """
        check_number("lane", lane, -self.num_envs, self.num_envs - 1)
        if self.game.render_text is None:
            raise NotImplementedError(f"{self.game.name} has no text picture")
        return load(self.game.render_text)(self.game, self.game.world, record_view(self.states)[lane])

    # -- teams and parameters ------------------------------------------------------------------------------------------

    @exclusive
    def set_opponent(
        self, team_or_agent: str, opponent: OpponentSpec, lanes: np.ndarray | Sequence[int] | None = None
    ) -> None:
        """Assigns the player of a team, or of one agent, from now on.

        Args:
            team_or_agent: Name of a team, or of one agent (``"red_1"``). None gives an agent back to the player of the
                rest of its team, or to the caller of `step`. A later word for the team holds for all its agents. One
                `Opponent` that is given several agents of a team is asked once for all of them.
            opponent: None (the caller of `step`), a script's name, ``"random"``, ``"mix"``, ``"held_out"``, a file, or
                an `Opponent`: see `palaestra.core.run.opponents.resolve`. ``"mix"`` and ``"held_out"`` draw a script at
                the start of each match, ``"tracker:0.7"`` is a script of strength 0.7.
            lanes: bool ``[N]`` mask or indices; all lanes if None.

        Raises:
            ValueError: No such team, agent or player.
        """
        self.guard.check_whole("set_opponent")
        which = self._picked(lanes)
        self._about_to("set_opponent", which, team_or_agent)
        with RollbackOnError(
            self.states, self.opponent_assignments, "strength", "assigned_player", "current_player", "script_rng"
        ):
            self.opponent_assignments.assign(self, team_or_agent, opponent, which, self.started)
        self._has_done()

    def open_slots(self, team: str) -> tuple[int, ...]:
        """Slots of a team that, in some lane, the caller of `step` plays."""
        return self.opponent_assignments.open_slots(self.game, self.states, team)

    @exclusive
    def set_parameters(
        self, lanes: np.ndarray | Sequence[int] | None = None, **values: float | str | np.ndarray
    ) -> None:
        """Changes numbers of the rules, in all lanes or in ``lanes`` (mask or indices).

        They change at once, but for those that say ``at_start``: these wait for the lane's next match.
        """
        self.guard.check_whole("set_parameters")
        which = self._picked(lanes)
        self._about_to("set_parameters", which, tuple(values))
        with RollbackOnError(self.states, self.opponent_assignments, "parameters", "next_parameters"):
            self._parameters.write(lanes, values, self.started)
        self._has_done()

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Read-only views ``[N]`` of the parameters by name."""
        return self._parameters.views()

    @exclusive
    def state(self) -> np.ndarray:
        """Global state float32 ``[N, S]`` for centralised critics: the game's own, or all observations side by side.

        The array is the simulation's own: the next call writes it again.
        """
        self.guard.check_whole("state")
        if self.game.global_state is not None:
            self._write_state(self.buffers.state)
        else:
            write_observations_flat(self.buffers)
        return self.buffers.state

    # -- what the kinds supply -----------------------------------------------------------------------------------------

    _one_call: Callable[[], int] | None = None
    """A decision as one call of machine code, which no interrupt can end halfway; None where it takes more."""

    def _recover(self) -> None:
        """Called before a call that writes everything anew follows an interrupted one: waits for what still runs."""

    @abstractmethod
    def _reset_lanes(self, which: np.ndarray) -> None: ...

    @abstractmethod
    def _step_lanes(self) -> int: ...

    def _check_no_outputs(self, call: Call) -> None:
        """Refuses a call without outputs where somebody needs them; else compiles what plays so."""
        other = "worker processes play" if self.game.physics is None else "an engine outside moves the bodies"
        raise ValueError(f"{call}(outputs=False) is for compiled rules in this process: in {self.game.name} {other}")

    def _step_results(self) -> int:
        """As `_step_lanes`, without observations and masks."""
        raise NotImplementedError

    def _share_masks(self, which: np.ndarray) -> None:
        """Marks loaded lanes as without observations; those of a run of equal records have the masks of the first."""
        raise NotImplementedError

    @abstractmethod
    def _refresh_lanes(self, which: np.ndarray) -> None: ...

    @abstractmethod
    def _write_state(self, out: np.ndarray) -> None: ...

    def _save_engine(self) -> Any:
        return None

    def _load_engine(self, saved: Any) -> None:
        return None

    def _load_bodies(self, which: np.ndarray) -> None:
        return None

    def _render_engine(self, lane: int) -> np.ndarray:
        raise NotImplementedError(f"{self.game.name}: this simulation has no engine that draws")

    # -- copying -------------------------------------------------------------------------------------------------------

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy take: rules, options, arrays, opponents and the engine's way to where it is."""
        self.guard.check_whole("copy")
        return {
            "game": self.game,
            "num_envs": self.num_envs,
            "options": self._copy_options(),
            "arrays": {name: array.copy() for name, array in self.buffers.live().items()},
            "lane_seeds": self.lane_seeds.copy(),
            "opponent_assignments": dict(self.opponent_assignments),
            "started": self.started,
            "outputs_hold": self._outputs_hold,
            "origin": self.origin,
            "title": self.title,
            "engine": self._save_engine() if self.started else None,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """Builds an independent simulation in the same state."""
        self.__init__(saved["game"], saved["num_envs"], **saved["options"])  # type: ignore[misc]
        for name, value in saved["arrays"].items():
            getattr(self.buffers, name)[...] = value
        self.lane_seeds[...] = saved["lane_seeds"]
        self.opponent_assignments.update(saved["opponent_assignments"])
        self.guard.started, self._outputs_hold = saved["started"], saved["outputs_hold"]
        self.origin, self.title = saved["origin"], saved["title"]
        if saved["engine"] is not None:
            self._load_engine(saved["engine"])
        self.guard.blocked = not self.started

    def _copy_options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OPTIONS}

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _begin(self, call: str, overwrites_all: bool = False) -> None:
        """Marks the matches that a call is about to change; ``guard.interrupted = ""`` takes the mark away.

        Args:
            call: Its name.
            overwrites_all: Whether it writes everything anew, so that it may follow an interrupted call.

        Raises:
            InterruptedCallError: An earlier call was interrupted.
        """
        if not overwrites_all:
            self.guard.check_whole(call)
        elif self.guard.interrupted:
            self._recover()
        self.guard.interrupted = call

    def _about_to(
        self, call: Call, which: np.ndarray | None = None, what: Any = None, *, interrupted: str | None = None
    ) -> None:
        """Tells the recorder; ``interrupted`` is the mark to leave if it refuses, where `_begin` has set one."""
        if self.recorder is not None:
            mark = self.guard.interrupted
            self.guard.interrupted = mark if interrupted is None else interrupted
            self.recorder.before(call, which, what)
            self.guard.interrupted = mark

    def _has_done(self) -> None:
        if self.recorder is not None:
            self.recorder.after()
