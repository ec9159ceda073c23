"""Matches between players: an exact number, the same seeds for all players, both players on both sides.

Every lane plays a fixed list of matches, each to its end under a seed of its own. So short matches count no more than
long ones, and the result does not depend on the number of lanes, threads or processes (for scripts to the bit; a
network may round differently in a batch of another size).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.compile.identity import rules_code
from palaestra.core.contract.rules import teams_are_alike
from palaestra.core.files.short_repr import short_repr, text_html
from palaestra.core.run.opponents import OpponentSpec, player_name
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation.ratings import NORMAL_95, Rating, fit_elo, wilson_interval
from palaestra.game import Game

EVALUATION_RUN = 2**31
"""Number of the evaluation's run: match k has seed (run << 32) + k. Training runs count from 0."""
SUCCESS_ENDS = ("solved", "done")
"""Names of ends of a match in which a task is done."""
Make = Callable[[int], Simulation]
Progress = Callable[[int, int], Any]
MatesOf = Callable[[str], Mapping[str, OpponentSpec]]
"""``mates_of(team)`` -> players of agents of that team, by agent, beside whom the first player plays the others."""

MATCH = np.dtype(
    [
        ("seed", "u8"),
        ("side", "i8"),  # team that the first player played
        ("outcome", "i8"),  # 1 the first player won, -1 the second, 0 a draw
        ("steps", "i8"),  # decisions
        ("end_reason", "i8"),
        ("return_a", "f8"),  # sum of the first player's rewards
        ("return_b", "f8"),
    ]
)


@dataclass(frozen=True, eq=False)
class MatchTable:
    """Results of one player, or of two against each other.

    Attributes:
        id: What was played.
        a: Name of the first player, whose wins, losses and returns are counted.
        b: Name of the second; None where the game has one team.
        game: The rules, for the names of teams and ends.
        results: One `MATCH` record a match, in the order of seeds and sides.
    """

    id: str
    a: str
    b: str | None
    game: Game
    results: np.ndarray

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return text_html(str(self))

    @property
    def matches(self) -> int:
        """Matches played."""
        return len(self.results)

    @property
    def wins(self) -> int:
        """Matches that a won."""
        return int((self.results["outcome"] == 1).sum())

    @property
    def losses(self) -> int:
        """Matches that b won."""
        return int((self.results["outcome"] == -1).sum())

    @property
    def draws(self) -> int:
        """Matches without a winner."""
        return self.matches - self.wins - self.losses

    @property
    def score(self) -> float:
        """Share of points of a: a win is 1, a draw 1/2."""
        return (self.wins + 0.5 * self.draws) / self.matches

    @property
    def swapped(self) -> bool:
        """Whether a has played both teams."""
        return self.b is not None and bool((self.results["side"] == 1).any())

    @property
    def seeds(self) -> int:
        """Independent trials: the two matches of a seed that was played from both sides are one."""
        return len(np.unique(self.results["seed"]))

    @property
    def win_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share of wins, a seed being one trial."""
        return self._interval(self.wins / self.matches)

    @property
    def score_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the score, a seed being one trial."""
        return self._interval(self.score)

    def _interval(self, share: float) -> tuple[float, float]:
        """A seed's points are in [0, 1], so their variance is at most that of a trial: no interval is too short."""
        return wilson_interval(share * self.seeds, self.seeds)

    @property
    def first_team_score(self) -> float:
        """Share of points of the first team, for either player: 1/2 if the sides are fair between equal players."""
        won = np.where(self.results["side"] == 0, self.results["outcome"], -self.results["outcome"])
        return float((1.0 + won.mean()) / 2)

    @property
    def first_team_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of `first_team_score`, a seed being one trial."""
        return self._interval(self.first_team_score)

    @property
    def mean_return(self) -> float:
        """Mean return of a."""
        return float(self.results["return_a"].mean())

    @property
    def return_half_width(self) -> float:
        """Half of the 95 % interval of the mean return, by the normal approximation; infinite with one seed.

        The deviations of a seed's matches are summed before they are squared (a cluster-robust standard error).
        """
        if self.seeds < 2:
            return float("inf")
        _, seed = np.unique(self.results["seed"], return_inverse=True)
        deviations = np.bincount(seed, self.results["return_a"] - self.mean_return)
        variance = self.seeds / (self.seeds - 1) * (deviations**2).sum()
        return float(NORMAL_95 * np.sqrt(variance) / self.matches)

    @property
    def has_success(self) -> bool:
        """Whether one team plays, and its rules say when a match is a success: `has_success`."""
        return has_success(self.game)

    @property
    def success(self) -> float:
        """Share of matches that a won or that ended `solved` or `done`; 0 where `has_success` is False."""
        names = [name in SUCCESS_ENDS for name in self.game.all_end_reasons]
        return float(((self.results["outcome"] == 1) | np.array(names)[self.results["end_reason"]]).mean())

    @property
    def success_interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share of successes."""
        return self._interval(self.success)

    @property
    def end_reasons(self) -> dict[str, int]:
        """How many matches ended how, the most frequent first."""
        counted = Counter(self.game.end_reason(int(number)) for number in self.results["end_reason"])
        return dict(counted.most_common())

    @property
    def sides(self) -> dict[str, tuple[int, int, int]]:
        """Wins, losses and draws of a by the team that it played."""
        sides = {}
        for number, team in enumerate(self.game.teams):
            outcomes = self.results["outcome"][self.results["side"] == number]
            if len(outcomes):
                sides[team] = tuple(int((outcomes == outcome).sum()) for outcome in (1, -1, 0))
        return sides

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "id": self.id,
            "a": self.a,
            "b": self.b,
            "matches": self.matches,
            "seeds": self.seeds,
            **({} if self.b is None else self._figures_of_two()),
            **({"success": self.success, "success_interval": list(self.success_interval)} if self.has_success else {}),
            "mean_return": self.mean_return,
            "return_half_width": self.return_half_width if self.seeds > 1 else None,
            "mean_steps": float(self.results["steps"].mean()),
            "end_reasons": self.end_reasons,
        }

    def _figures_of_two(self) -> dict[str, Any]:
        return {
            "wins": self.wins,
            "losses": self.losses,
            "draws": self.draws,
            "win_interval": list(self.win_interval),
            "score": self.score,
            "score_interval": list(self.score_interval),
            "sides_swapped": self.swapped,
            "sides": {team: list(counts) for team, counts in self.sides.items()},
            "first_team": next(iter(self.game.teams)),
            "first_team_score": self.first_team_score,
            "first_team_interval": list(self.first_team_interval),
        }

    def __str__(self) -> str:
        """The numbers, as text."""
        lines = [f"{self.id}: {self._pairing()}"]
        if self.b is not None:
            low, high = self.score_interval
            lines.append(f"  {self.wins} wins, {self.losses} losses, {self.draws} draws")
            lines.append(f"  score {self.score:.3f}, 95 % interval {low:.3f} to {high:.3f}")
            sides = (f"{team} {w}-{lost}-{d}" for team, (w, lost, d) in self.sides.items())
            lines.append(f"  by side: {', '.join(sides)}")
        if self.a == self.b:  # then the score is 0.5 by definition; this shows whether the sides are fair
            low, high = self.first_team_interval
            team = next(iter(self.game.teams))
            lines.append(f"  {team}'s share {self.first_team_score:.3f}, 95 % interval {low:.3f} to {high:.3f}")
        if self.has_success:
            low, high = self.success_interval
            lines.append(f"  success {self.success:.3f}, 95 % interval {low:.3f} to {high:.3f}")
        half = f" +- {self.return_half_width:.3f}" if self.seeds > 1 else ""
        lines.append(
            f"  mean return {self.mean_return:.3f}{half}, {self.results['steps'].mean():.1f} decisions a match"
        )
        lines.append("  ends: " + ", ".join(f"{name} {count}" for name, count in self.end_reasons.items()))
        return "\n".join(lines)

    def _pairing(self) -> str:
        if self.b is None:
            return f"{self.a}, {self.matches} matches"
        sides = f"sides swapped, {self.seeds} seeds" if self.swapped else f"{self.a} plays {next(iter(self.sides))}"
        return f"{self.a} against {self.b}, {self.matches} matches, {sides}"


@dataclass(frozen=True, eq=False)
class Tournament:
    """All players against each other.

    Attributes:
        tables: One table a pair.
        ratings: Elo by player, the strongest first.
        anchors: Names whose rating was given.
    """

    tables: list[MatchTable]
    ratings: dict[str, Rating]
    anchors: tuple[str, ...]

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return text_html(str(self))

    def as_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        ratings = {name: {"elo": r.elo, "half_width": r.half_width} for name, r in self.ratings.items()}
        return {"ratings": ratings, "anchors": list(self.anchors), "pairs": [t.as_dict() for t in self.tables]}

    def __str__(self) -> str:
        """The numbers, as text."""
        width = max(len(name) for name in self.ratings)
        lines: list[str] = []
        for name, rating in self.ratings.items():
            bound = "anchor" if name in self.anchors else f"+- {rating.half_width:.0f}"
            lines.append(f"{name:<{width}}  {rating.elo:6.0f}  {bound}")
        lines += [
            f"{t.a} against {t.b}: {t.wins} wins, {t.losses} losses, {t.draws} draws, score {t.score:.3f}"
            for t in self.tables
        ]
        return "\n".join(lines)


def has_success(game: Game) -> bool:
    """Whether a game has one team, and its rules name a winner or an end of `SUCCESS_ENDS`."""
    if len(game.teams) > 1:
        return False
    codes = (getattr(found.value, "__code__", None) for found in rules_code(game))
    names_winner = any("winner" in code.co_names for code in codes if code is not None)
    return names_winner or not set(SUCCESS_ENDS).isdisjoint(game.all_end_reasons)


def without_shaping(game: Game, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords, and 0 for each weight of shaping that is not among them."""
    return {p.name: 0.0 for p in game.parameters if p.shaping} | dict(keywords)


def play_pair(
    id: str,
    game: Game,
    make: Make,
    a: OpponentSpec,
    b: OpponentSpec = None,
    *,
    matches: int = 64,
    seed: int = EVALUATION_RUN,
    swap: bool | None = None,
    num_envs: int = 64,
    names: tuple[str, str | None] | None = None,
    progress: Progress | None = None,
    mates_of: MatesOf | None = None,
) -> MatchTable:
    """Plays matches between two players, or of one player in a game with one team.

    Args:
        id: Name for the table.
        game: The rules.
        make: ``make(n)`` gives a simulation of n lanes with ``autoreset_mode="off"``.
        a: First player, see `palaestra.core.run.opponents.resolve`.
        b: Second player; None where the game has one team.
        matches: Number of matches.
        seed: Number of the run; see `EVALUATION_RUN`.
        swap: Play each seed from both sides. None does so where the game declares
            ``symmetric_teams``; True also where the teams only have the same roles.
        num_envs: Matches at the same time.
        names: What the players are called; their own names if None.
        progress: Called with the numbers of finished and of all matches.
        mates_of: Teammates of a, see `MatesOf`; None lets a play its whole team.

    Raises:
        ValueError: A number out of range, a player too many or too few, or ``swap`` where the teams are not alike.
    """
    counts = matches_by_side(id, game, a, b, matches, seed, swap)
    names = names_of(names, a, b)
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}")
    halves: list[np.ndarray] = []
    for side, count in enumerate(counts):
        if count == 0:
            continue
        done = sum(len(half) for half in halves)
        sim = make(min(num_envs, count))
        try:
            set_players(sim, side, a, b, mates_of)
            seeds = match_seeds(seed, range(count))
            halves.append(play_seeds(sim, seeds, side, lambda n, done=done: progress and progress(done + n, matches)))
        finally:
            sim.close()
    return table_of(id, game, names, halves)


def matches_by_side(
    id: str, game: Game, a: OpponentSpec, b: OpponentSpec, matches: int, seed: int, swap: bool | None
) -> tuple[int, ...]:
    """Matches in which a plays the first team, and the second where sides are swapped; arguments as for `play_pair`.

    Raises:
        ValueError: A number out of range, a player too many or too few, or ``swap`` where the teams are not alike.
    """
    if matches < 1:
        raise ValueError(f"matches must be at least 1, got {matches}")
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is the number of a run, in [0, 2**32), got {seed}")
    return (matches - matches // 2, matches // 2) if _check_teams(game, id, a, b, swap) else (matches,)


def match_seeds(seed: int, numbers: range) -> np.ndarray:
    """Seeds of the matches of these numbers in a run, uint64."""
    return np.uint64(seed << 32) + np.arange(numbers.start, numbers.stop, dtype=np.uint64)


def set_players(sim: Simulation, side: int, a: OpponentSpec, b: OpponentSpec, mates_of: MatesOf | None = None) -> None:
    """Gives the teams their players: a plays team number ``side``, or its first agent where it has teammates."""
    teams = list(sim.game.teams)
    for team, player in zip(teams, (a, b) if side == 0 else (b, a), strict=False):
        sim.set_opponent(team, player)
    for agent, player in mates_of(teams[side]).items() if mates_of is not None else ():
        sim.set_opponent(agent, player)


def names_of(names: tuple[str, str | None] | None, a: OpponentSpec, b: OpponentSpec) -> tuple[str, str | None]:
    """What two players are called: their own names if None.

    Raises:
        ValueError: ``names`` are not two.
    """
    if names is None:
        return player_name(a), None if b is None else player_name(b)
    if isinstance(names, str) or len(names) != 2:
        raise ValueError(f"names must be two, what to call a and b (None where b is None), got {names!r}")
    return names


def table_of(id: str, game: Game, names: tuple[str, str | None], parts: Sequence[np.ndarray]) -> MatchTable:
    """The table of matches that were played in parts, in the order of seeds and sides."""
    results = np.concatenate(parts)
    return MatchTable(id, *names, game, results[np.lexsort((results["side"], results["seed"]))])


def play_tournament(
    players: Mapping[str, OpponentSpec],
    pair: Callable[[str, str, Progress], MatchTable],
    matches: int,
    anchors: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Tournament:
    """Lets all players meet each other and rates them.

    Args:
        players: Players by name.
        pair: ``pair(a, b, progress)`` plays the matches of two players.
        matches: How many those are.
        anchors: Elo of some players, by name; the mean is 0 without any.
        progress: Called with the numbers of finished and of all matches.

    Raises:
        ValueError: Fewer than two players, or an anchor that is none of them.
    """
    names, pairs = list(players), pairs_of(players, anchors)
    points = np.zeros((len(names), len(names)))
    tables: list[MatchTable] = []
    for number, (a, b) in enumerate(pairs):
        before, total = number * matches, len(pairs) * matches
        table = pair(a, b, lambda n, _, before=before, total=total: progress and progress(before + n, total))
        tables.append(table)
        points[names.index(a), names.index(b)] = table.wins + table.draws / 2
        points[names.index(b), names.index(a)] = table.losses + table.draws / 2
    ratings = fit_elo(names, points, anchors, matches_per_trial=max(t.matches / t.seeds for t in tables))
    strongest_first = sorted(ratings.items(), key=lambda item: -item[1].elo)
    return Tournament(tables, dict(strongest_first), tuple(anchors or ()))


def pairs_of(players: Mapping[str, OpponentSpec], anchors: Mapping[str, float] | None) -> list[tuple[str, str]]:
    """Names of all pairs of players.

    Raises:
        ValueError: Fewer than two players, or an anchor that is none of them.
    """
    names = list(players)
    if len(names) < 2:
        raise ValueError(f"a tournament needs at least two players, got {', '.join(names) or 'none'}")
    for name in anchors or {}:
        if name not in players:
            raise ValueError(f"anchor {name!r} is none of the players: {', '.join(names)}")
    for name, elo in (anchors or {}).items():
        if not math.isfinite(elo):
            raise ValueError(f"the Elo of anchor {name!r} must be a finite number, got {elo}")
    return list(combinations(names, 2))


def _check_teams(game: Game, id: str, a: OpponentSpec, b: OpponentSpec, swap: bool | None) -> bool:
    """Whether both players play both sides.

    Raises:
        ValueError: The players are too many or too few for the teams, or the teams are not alike.
    """
    teams = list(game.teams)
    if len(teams) > 2:
        raise ValueError(f"{id} has {len(teams)} teams, matches of two players need one or two")
    if a is None or (b is None) != (len(teams) == 1):
        raise ValueError(f"{id} has {'one team' if len(teams) == 1 else 'two teams'}: give as many players")
    if swap and not teams_are_alike(game):
        raise ValueError(f"the teams of {id} are not alike: players cannot change sides (swap=False)")
    return game.symmetric_teams if swap is None else swap


def play_seeds(
    sim: Simulation, seeds: np.ndarray, side: int, report: Callable[[int], Any] = lambda finished: None
) -> np.ndarray:
    """Plays matches to their ends: lane i those of the seeds i, i + N, i + 2 N, ... with N <= their number.

    Args:
        sim: In ``autoreset_mode="off"``, with players.
        seeds: uint64.
        side: Number of the team that the first player plays.
        report: Called with the number of finished matches.

    Returns:
        One `MATCH` record a seed.
    """
    n, count = sim.num_envs, len(seeds)
    teams = list(sim.game.teams)
    results = np.zeros(count, MATCH)
    match_of_lane = np.arange(n)
    returns = np.zeros((n, len(teams)))
    finished = 0
    sim.reset(seed=seeds[match_of_lane])
    while finished < count:
        running = sim.states["pending"] == RUNNING
        sim.step()
        for number, team in enumerate(teams):
            returns[:, number] += sim.team_rewards(team)
        over = running & (sim.terminated | sim.truncated)
        if not over.any():
            continue
        row = match_of_lane[over]
        winner = sim.info["winner"][over]
        results["seed"][row], results["side"][row] = seeds[row], side
        results["outcome"][row] = np.where(winner < 0, 0, np.where(winner == side, 1, -1))
        results["steps"][row] = sim.states["steps"][over]
        results["end_reason"][row] = sim.info["end_reason"][over]
        results["return_a"][row] = returns[over, side]
        results["return_b"][row] = returns[over, 1 - side] if len(teams) == 2 else 0.0
        finished += len(row)
        report(finished)
        match_of_lane[over] += n
        again = over & (match_of_lane < count)
        if again.any():
            returns[again] = 0.0
            sim.reset(again, seed=seeds[np.minimum(match_of_lane, count - 1)])
    return results
