"""Random sequences of calls on a batch, repeated lane by lane on simulations of one lane each.

The batch is called in every way that a user may call it: masks, indices, one value for all lanes or one a lane, other
threads, actions handed over or written, snapshots and copies. The single simulations know nothing of lanes: they are
called without masks, in one thread, and never restored. After each call every lane that is played alone too must be the
same, bit by bit: its record, its results and its streams.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from palaestra.core.run.arrays import summed
from palaestra.core.run.opponents import OpponentSpec
from palaestra.testing.drawn import Draw
from palaestra.testing.harness import CheckError, require
from palaestra.testing.players import Player, RememberingPlayer
from palaestra.testing.snapshot_view import difference, first_difference, rows_of, snapshot_view, unlike
from palaestra.testing.subject import Subject

MODES = ("next_step", "same_step", "off")
MOST_LANES, MOST_ENGINE_LANES = 9, 3
ALONE = 3
"""How many lanes of a larger batch are played alone too: the first, the last and others."""
SHOWN_CALLS = 6
"""How many of the last calls a failure names."""

STEPS = ("step", "step", "step", "reset")
"""Calls of a learner."""
CALLS = (
    *("step",) * 16,
    *("reset", "seed", "set_parameters", "set_parameters", "set_opponent", "set_opponent"),
    *("load_states", "refresh", "snapshot", "snapshot", "restore", "restore", "copy", "read"),
)
"""All calls, the frequent ones more than once."""


class Episode:
    """One batch, some of its lanes alone, and the calls on both.

    Attributes:
        whole: The batch.
        alone: Simulations of one lane, by the lane of the batch that they repeat.
        calls: What was called, as text.
    """

    def __init__(self, subject: Subject, draw: Draw, modes: Sequence[str] = MODES, workers: int = 0) -> None:
        """Draws the batch: lanes, threads, autoreset mode, horizon, opponents; and makes it.

        Args:
            subject: What is checked.
            draw: Of the check.
            modes: Autoreset modes to draw from.
            workers: Processes of the batch.
        """
        self._subject, self._draw, self._workers = subject, draw, workers
        most = MOST_ENGINE_LANES if subject.is_engine_game else MOST_LANES
        n = draw.integer("lanes", max(1, workers), most)
        self._mode = draw.choice("autoreset_mode", modes)
        horizon = draw.choice("horizon", (draw.integer("horizon", 1, 12), draw.integer("horizon", 1, 40)))
        self._options: dict[str, Any] = {"autoreset_mode": self._mode, "horizon": horizon}
        self._opponents = self._drawn_opponents()
        if self._opponents:
            self._options["opponents"] = self._opponents
        self.whole = self._make_whole(n)
        lanes = {0, n - 1, *draw.order(n)[:ALONE].tolist()} if n > ALONE else set(range(n))
        self.alone = {lane: subject.batch(1, **self._options) for lane in sorted(lanes)[: ALONE + 1]}
        self.calls: list[str] = []
        self._remembering = ""
        self._stale = False
        self._player = Player(self.whole)
        self._saved: tuple[Any, ...] | None = None

    def _make_whole(self, n: int) -> Any:
        if self._workers:
            return self._subject.batch(n, workers=self._workers, **self._options)
        threads = self._draw.integer("threads", 1, n + 2) if self._draw.chance(0.3) else 1
        self._draw.numbers["threads"] = threads
        return self._subject.batch(n, threads=threads, **self._options)

    def _drawn_opponents(self) -> dict[str, OpponentSpec]:
        """Opponents for some teams, from the first match on."""
        specs = opponent_specs(self._subject.game)
        if not specs or self._draw.chance(0.4):
            return {}
        teams = list(self._subject.game.teams)
        some = [team for team in teams if self._draw.chance(0.6)]
        return {team: self._draw.choice(f"opponent of {team}", specs) for team in some}

    @property
    def n(self) -> int:
        """Lanes of the batch."""
        return self.whole.num_envs

    def start(self) -> None:
        """The first reset: by one seed, by a seed a lane, or without any; and a Python opponent in some lanes."""
        draw, whole = self._draw, self.whole
        fitting = [team for team in whole.game.teams if RememberingPlayer.fits(whole, team)]
        if fitting and len(whole.game.teams) > 1 and draw.chance(0.25):
            self._remembering = draw.choice("python opponent", fitting)
            self._assign(self._remembering, None, draw.mask("its lanes", self.n))
        kind = draw.choice("first reset", ("seed", "seeds", "no seed"))
        seeds = self._seeds(kind)
        whole.reset(seed=seeds) if kind != "no seed" else whole.reset()
        if kind == "no seed":
            seeds = draw.numbers["seed"] = whole.lane_seeds.copy()
            require(len(set(seeds.tolist())) == self.n, f"lanes without a seed have the seeds {seeds.tolist()}")
        by_lane = seeds_of(seeds, self.n)
        for lane, sim in self.alone.items():
            sim.reset(seed=by_lane[lane])
        self._called(f"reset(seed={seeds if kind == 'seed' else by_lane})")
        self.compare()

    def play(self, calls: Sequence[str], count: int) -> int:
        """Draws and makes calls; compares after each. Returns the decisions played, lanes times steps."""
        self.start()
        steps = 0
        for _ in range(count):
            name = self._draw.choice("call", calls)
            if self._mode == "off" and self.whole.states["pending"].all():
                name = "reset"  # every lane waits for it
            getattr(self, f"call_{name}")()
            self.compare()
            steps += self.n if name == "step" else 0
        return steps

    def compare(self) -> None:
        """Demands that every lane that is played alone too is the same there."""
        shown = snapshot_view(self.whole)
        for lane, sim in self.alone.items():
            rows = slice(lane, lane + 1)
            if found := difference(self.whole.game, rows_of(shown, rows), snapshot_view(sim), lane):
                self._fail(found)
            if (differs := first_difference(self.whole.states[rows], sim.states)) is not None:
                path, index, ours, theirs = differs
                where = f"{'.'.join(path)}{list(index[1:]) if len(index) > 1 else ''}"
                self._fail(f"lane {lane}: state {where} = {ours} and {theirs}")
            if self.whole.lane_seeds[lane] != sim.lane_seeds[0]:
                self._fail(f"lane {lane}: lane_seeds = {self.whole.lane_seeds[lane]} and {sim.lane_seeds[0]}")

    def _fail(self, found: str) -> NoReturn:
        last = "; ".join(self.calls[-SHOWN_CALLS:])
        raise CheckError(f"{found} (in a batch of {self.n} and alone) after {len(self.calls)} calls, the last: {last}")

    def _called(self, text: str) -> None:
        self.calls.append(text)

    # -- calls: each on the batch as a user may write it, and on each single simulation in its plainest form -----------

    def call_step(self) -> None:
        """One decision: actions written, handed over, or written team by team; of all lanes or of some."""
        whole = self.whole
        self._player.play(whole)
        words = whole.buffers.action_words.copy()
        way = self._draw.choice("step", ("written", "written", "given", "by team", "some lanes"))
        moves = self._draw.mask("lanes that move", self.n) if way == "some lanes" else np.ones(self.n, np.bool_)
        if way == "some lanes":
            before = whole.states[~moves].copy()
            whole.step(lanes=moves)
            if (differs := first_difference(before, whole.states[~moves])) is not None:
                self._fail(f"{'.'.join(differs[0])} of a lane that is left out of a step has changed")
        elif way == "given":
            actions = copy.deepcopy(whole.actions)
            whole.buffers.action_words[...] = whole.action_table.idle
            whole.step(actions)
        elif way == "by team":
            self._write_by_team(words)
            whole.step()
        else:
            whole.step()
        for lane, sim in self.alone.items():
            sim.buffers.action_words[0] = words[lane]
            sim.step(lanes=None if moves[lane] else np.zeros(1, np.bool_))
        self._called(f"step ({way if moves.all() else lanes_text(moves)})")

    def _write_by_team(self, words: np.ndarray) -> None:
        """Writes the actions team by team, for some lanes and then for the others."""
        whole = self.whole
        given = copy.deepcopy(whole.actions)
        whole.buffers.action_words[...] = whole.action_table.idle
        some = self._draw.mask("lanes written first", self.n)
        for team in whole.game.teams:
            roles = whole.game.team_roles(team)
            parts = {r: given if isinstance(given, np.ndarray) else given[r] for r in roles}
            for lanes in (some, np.flatnonzero(~some)) if self._draw.chance(0.5) else (slice(None),):
                rows = {r: np.ascontiguousarray(part[lanes][:, roles[r]]) for r, part in parts.items()}
                own = rows if len(rows) > 1 else next(iter(rows.values()))
                whole.write_team_actions(team, own, *(() if isinstance(lanes, slice) else (lanes,)))
        columns = whole.action_table.words["column"]
        if not np.array_equal(whole.buffers.action_words[:, columns], words[:, columns]):
            self._fail("write_team_actions does not write the actions that it is given")

    def call_reset(self) -> None:
        """Starts matches: in all lanes or some, with or without seeds; those that wait are among them."""
        draw = self._draw
        which = None if draw.chance(0.3) else draw.mask("reset mask", self.n)
        if which is not None and self._mode == "off":
            which |= self.whole.states["pending"] != 0
        kind = draw.choice("reset", ("no seed", "no seed", "seed", "seeds"))
        seeds = self._seeds(kind)
        options = {} if seeds is None else {"seed": seeds}
        self.whole.reset(*(() if which is None else (which,)), **options)
        for lane in self._lanes(which):
            self.alone[lane].reset(**({} if seeds is None else {"seed": seeds_of(seeds, self.n)[lane]}))
        self._called(f"reset({lanes_text(which)}, {kind})")

    def call_seed(self) -> None:
        """Seeds all lanes or some."""
        which = None if self._draw.chance(0.3) else self._draw.mask("seed mask", self.n)
        seeds: Any = self._seeds(self._draw.choice("seeding", ("seed", "seeds")))
        self.whole.seed(seeds, which)
        for lane in self._lanes(which):
            self.alone[lane].seed(seeds_of(seeds, self.n)[lane])
        self._called(f"seed({lanes_text(which)})")

    def _seeds(self, kind: str) -> Any:
        if kind == "no seed":
            return None
        return self._draw.seed() if kind == "seed" else self._draw.seeds("seed", self.n)

    def call_set_parameters(self) -> None:
        """Changes a parameter in all lanes or some, by one value or one a lane."""
        draw, game = self._draw, self.whole.game
        free = [p for p in game.parameters if p.name not in self._subject.keywords]
        parameter = draw.choice("parameter", free) if free and draw.chance(0.6) else None
        name = parameter.name if parameter is not None else "horizon"
        lanes, which = self._some_lanes()
        count = int(which.sum())
        if parameter is None or name == "horizon":
            values = np.array([draw.integer("horizon", 1, 30) for _ in range(count)], np.float64)
        else:
            values = draw.parameter("value", parameter, count, game.parameters)
        if draw.chance(0.4):
            values[:] = values[0]
            given: Any = float(values[0])
        else:
            given = values
        draw.numbers["parameter"] = name
        before = self.whole.parameters[name].copy()
        self.whole.set_parameters(lanes, **{name: given})
        for value, lane in zip(values, np.flatnonzero(which).tolist(), strict=True):
            if lane in self.alone:
                self.alone[lane].set_parameters(**{name: float(value)})
        self._stale = True
        self._called(f"set_parameters({lanes_text(lanes)}, {name}={given})")
        waits = any(p.name == name and p.at_start for p in game.parameters)
        expected = before.copy()
        expected[which] = before[which] if waits else values
        now = self.whole.parameters[name]
        for lane in np.flatnonzero(now != expected).tolist():
            self._fail(f"lane {lane}: parameter {name} is {now[lane]}, not {expected[lane]}")

    def call_set_opponent(self) -> None:
        """Gives a team or an agent to another player, in all lanes or some."""
        draw, game = self._draw, self.whole.game
        specs: list[OpponentSpec] = [*opponent_specs(game), None]
        teams = [team for team in game.teams if team != self._remembering]
        if len(specs) == 1 or not teams:
            return
        team = draw.choice("team", teams)
        name = draw.choice("agent", [game.agents[slot] for slot in game.teams[team]]) if draw.chance(0.3) else team
        lanes, which = self._some_lanes()
        spec = draw.choice("opponent", specs)
        self.whole.set_opponent(name, spec, lanes)
        for lane in self._lanes(which):
            self.alone[lane].set_opponent(name, spec)
        self._called(f"set_opponent({name!r}, {spec!r}, {lanes_text(lanes)})")

    def _assign(self, team: str, spec: OpponentSpec, which: np.ndarray) -> None:
        """Lets a Python opponent with a memory play a team in some lanes."""
        self.whole.set_opponent(team, RememberingPlayer(self.whole, team), which)
        for lane in self._lanes(which):
            self.alone[lane].set_opponent(team, RememberingPlayer(self.alone[lane], team))
        self._python_lanes = which

    def call_load_states(self) -> None:
        """Lets lanes go on from the records of others."""
        which = self._draw.mask("load mask", self.n)
        sources = [self._draw.integer("source", 0, self.n - 1) for _ in range(int(which.sum()))]
        records = self.whole.states[sources].copy()
        self.whole.load_states(records, *(() if which.all() and self._draw.chance(0.5) else (which,)))
        for row, lane in enumerate(np.flatnonzero(which).tolist()):
            found = first_difference(records[row : row + 1], self.whole.states[lane : lane + 1])
            if found and not self._subject.is_engine_game:  # an engine starts its bodies, which may round
                self._fail(f"lane {lane}: load_states does not leave the record as given: {found}")
            if lane in self.alone:
                self.alone[lane].load_states(records[row : row + 1])
        self._called(f"load_states(of lanes {sources}, {lanes_text(which)})")

    def call_refresh(self) -> None:
        """Observations and masks are functions of the record: written anew they are the same.

        A parameter that was changed since the last step may show in them: then the single simulations follow.
        """
        which = None if self._draw.chance(0.3) else self._draw.mask("refresh mask", self.n)
        self.whole.refresh(which)
        for lane in self._lanes(which) if self._stale else ():
            self.alone[lane].refresh()
        self._called(f"refresh({lanes_text(which)})")

    def call_snapshot(self) -> None:
        """Takes a snapshot, and notes where the single simulations are for the time after it is restored."""
        alone = {lane: self._where_is(sim) for lane, sim in self.alone.items()}
        self._saved = (self.whole.snapshot(), self.whole.states.copy(), alone, copy.deepcopy(self._player))
        self._called("snapshot")

    def call_restore(self) -> None:
        """Goes back to the snapshot, here or in another simulation of other threads."""
        if self._saved is None:
            return
        snapshot, states, alone, self._player = self._saved
        self._saved = None
        where = self._draw.choice("restore", ("here", "elsewhere"))
        if where == "elsewhere":
            self.whole = self._make_whole(self.n)
            if self._remembering:
                opponent = RememberingPlayer(self.whole, self._remembering)
                self.whole.set_opponent(self._remembering, opponent, self._python_lanes)
        self.whole.restore(snapshot)
        self._called(f"restore ({where})")
        for lane in range(self.n):
            if found := first_difference(states[lane : lane + 1], self.whole.states[lane : lane + 1]):
                self._fail(f"lane {lane}: the record is not as saved: {found}")
        for lane, saved in alone.items():
            self.alone[lane] = self._bring_back(self.alone[lane], saved)
        self.call_step()  # results of steps before the snapshot are not part of it

    def _where_is(self, sim: Any) -> Any:
        """What brings a single simulation back here without a snapshot; a copy where an engine moves the bodies."""
        if self._subject.is_engine_game:
            return self._subject.keep(copy.deepcopy(sim))
        memories = [a.memory.copy() for of_team in sim.opponent_assignments.values() for a in of_team]
        return sim.states.copy(), sim.lane_seeds.copy(), memories

    def _bring_back(self, sim: Any, saved: Any) -> Any:
        if self._subject.is_engine_game:
            saved.buffers.clear_results()
            saved.refresh()  # as a restore does
            return saved
        states, seeds, memories = saved
        sim.load_states(states)
        sim.lane_seeds[...] = seeds
        assignments = [a for of_team in sim.opponent_assignments.values() for a in of_team]
        for assignment, memory in zip(assignments, memories, strict=True):
            assignment.memory[...] = memory
        return sim

    def call_copy(self) -> None:
        """Goes on with a copy, by deepcopy or pickle."""
        if self._workers:
            return
        how = self._draw.choice("copy", ("deepcopy", "pickle") if self._subject.level == "full" else ("deepcopy",))
        if how == "pickle":
            copied = pickle.loads(pickle.dumps(self.whole))
        else:  # of the same rules: they need not be linked anew
            copied = copy.deepcopy(self.whole, {id(self.whole.game): self.whole.game})
        self.whole = self._subject.keep(copied)
        self._called(how)

    def call_read(self) -> None:
        """Reads what is computed when asked for: the global state, rewards and open slots of teams, rows of teams."""
        whole, shown = self.whole, self.whole.state().copy()
        for lane, sim in self.alone.items():
            if shown[lane].tobytes() != sim.state()[0].tobytes():
                self._fail(f"lane {lane}: state() = {shown[lane]} and {sim.state()[0]}")
        for team, slots in whole.game.teams.items():
            paid = whole.team_rewards(team)
            members = whole.rewards[:, list(slots)]
            expected = summed(members) if whole.game.reward == "agent" else members[:, 0]
            if not np.array_equal(paid, expected):
                self._fail(f"team_rewards({team!r}) is {paid}, not {expected}")
            python = np.zeros(self.n, np.bool_)
            if team == self._remembering:
                python = self._python_lanes
            outside = (whole.states["assigned_player"] == -1) & ~python[:, None]
            wanted = tuple(slot for slot in slots if outside[:, slot].any())
            found = whole.open_slots(team)
            if found != wanted:
                self._fail(f"open_slots({team!r}) is {found}, not {wanted}")
            for what in ("observations", "legal"):
                rows = [whole.team_view(team, what, np.array([lane])) for lane in self.alone]
                for lane, row in zip(self.alone, rows, strict=True):
                    if different := unlike(row, self.alone[lane].team_view(team, what)):
                        self._fail(f"lane {lane}: team_view({team!r}, {what!r}) has {different}")
        self._called("state, team_rewards, open_slots, team_view")

    # -- lanes ---------------------------------------------------------------------------------------------------------

    def _some_lanes(self) -> tuple[Any, np.ndarray]:
        """What ``lanes=`` may be (None, a mask, indices as a list or an array) and the same as a mask."""
        kind = self._draw.choice("lanes=", ("None", "mask", "list", "indices"))
        if kind == "None":
            return None, np.ones(self.n, np.bool_)
        which = self._draw.mask("lanes", self.n)
        return {"mask": which, "list": np.flatnonzero(which).tolist(), "indices": np.flatnonzero(which)}[kind], which

    def _lanes(self, which: np.ndarray | None) -> list[int]:
        """The lanes of a mask that are played alone too."""
        return [lane for lane in self.alone if which is None or which[lane]]


def opponent_specs(game: Any) -> list[str]:
    """Players that can be given a team: scripts, at some strength, mixed, and the random player."""
    if not game.scripts:
        return ["random"] if len(game.teams) > 1 else []
    graded = (*(f"{name}:0.5" for name in game.scripts), *(f"{name}:0.25" for name in game.mixtures))
    return [*game.scripts, *game.mixtures, "random", *graded]


def seeds_of(seeds: Any, lanes: int) -> list[int]:
    """The seed of each lane: ``seed + i``, or as given."""
    return [int(seeds) + i for i in range(lanes)] if np.ndim(seeds) == 0 else [int(s) for s in seeds]


def lanes_text(lanes: Any) -> str:
    """Lanes of a mask or of indices, as text."""
    if lanes is None:
        return "all lanes"
    array = np.asarray(lanes)
    return f"lanes {(np.flatnonzero(array) if array.dtype == np.bool_ else array).tolist()}"


def play_episodes(
    subject: Subject, rounds: Any, calls: Sequence[str], count: int, make: Callable[[], Episode] | None = None
) -> int:
    """Plays an episode a round. Returns the lane-steps."""
    steps = 0
    for _ in rounds:
        subject.draw.numbers.clear()
        steps += (make or (lambda: Episode(subject, subject.draw)))().play(calls, count)
        subject.close()
    return steps
