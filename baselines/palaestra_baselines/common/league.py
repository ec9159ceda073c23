"""Fictitious self-play: generation after generation learns against scripts and against the generations before it.

Brown, "Iterative Solution of Games by Fictitious Play" (1951), in the form of Heinrich, Lanctot and Silver,
"Fictitious Self-Play in Extensive-Form Games" (ICML 2015), and Vinyals et al., Nature 575 (2019): a learner plays
against a draw from the history of its own strategies, not against its last one alone. The league knows games and
players, and nothing of what a game is about or how a `Learner` learns. A generation is four steps:

1. the learner trains until its share of the decisions is played, in lanes of which some have scripts for opponents
   (the *anchors*) and the others a pool of the generations before (`palaestra.wrappers.SelfPlayPool`);
2. its policy is frozen, in ``generation_<k>.safetensors``; generation 0 is the policy before any training;
3. it plays all anchors and all generations before, from both sides where the teams are alike;
4. it is accepted, unless its share of wins over an anchor is more than ``drop`` below that of the last accepted
   generation. A refused one is no opponent: the learner goes on from the last accepted one, with more anchors.

Only matches that a rule ended are won or lost here; those that the clock ended are *undecided* and count as half.
``league.csv`` has a row for each pair of players. There is no ``best.safetensors``: ratings of a generation move as
others join, so each has its own file and the table says which one to take. A killed league goes on at the last complete
generation, to the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from palaestra import registry
from palaestra.cli.progress_bar import Progress
from palaestra.core.run.opponents import load_policy, player_name
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation import evaluate
from palaestra.evaluation.ratings import Rating, fit_elo
from palaestra.game import Game
from palaestra.wrappers import SelfPlayPool
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, write_csv
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report

Draw = Literal["uniform", "latest", "pfsp"]
LEAGUE = "league.csv"
BY_RULE = 1
"""Ends of matches with larger numbers come from a rule; this one is the horizon."""


@dataclass
class LeagueArgs(RunArgs):
    """Arguments of every league, beside those of `RunArgs`; ``evaluations`` is the number of generations.

    Attributes:
        env_id: Game of two teams.
        options: Keywords of the game, ``name=value`` each.
        anchor_options: Further ones where scripts are the opponents; the learner then plays the first team alone where
            these make the teams unlike.
        training_options: Further ones that hold in training alone, such as weights of shaping.
        anchors: Scripts, or files of policies, that are opponents in each generation and by which generations are
            rated.
        anchor_share: Share of the lanes with scripts; 1 is training without self-play.
        refused_share: The same after a generation that was refused, at least.
        draw: How an opponent is drawn from the generations: ``uniform``, ``latest`` or ``pfsp`` (prioritised), see
            `palaestra.wrappers.SelfPlayPool`.
        latest_share: With ``latest``, the probability of the last generation.
        drop: How far the share of wins over an anchor may fall from one accepted generation to the next.
        matches: Of an evaluation of two players.
        hidden: Widths of the hidden layers; none for a linear policy.
    """

    SHARES: ClassVar[tuple[str, ...]] = ("anchor_share", "refused_share", "latest_share", "drop")
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (
        *RunArgs.MAY_BE_ZERO,
        *("anchor_share", "drop", "anchor_options", "training_options", "hidden"),
    )

    env_id: str = "palaestra/SkirmishDuel-v0"
    options: tuple[str, ...] = ()
    anchor_options: tuple[str, ...] = ()
    training_options: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ("random",)
    evaluations: int = 5
    anchor_share: float = 0.5
    refused_share: float = 0.75
    draw: Draw = "uniform"
    latest_share: float = 0.5
    drop: float = 0.05
    matches: int = 512
    hidden: tuple[int, ...] = ()

    @property
    def rules(self) -> dict[str, Any]:
        """Keywords of the game."""
        return keywords(self.options)

    @property
    def anchor_rules(self) -> dict[str, Any]:
        """The same where scripts are the opponents."""
        return {**self.rules, **keywords(self.anchor_options)}

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **self.rules)
        if len(game.teams) != 2:
            raise ValueError(f"--env-id is a game of two teams; {game.name} has {', '.join(game.teams)}")
        if not self.anchors:
            raise ValueError("--anchors names at least one script: generations are rated by them")
        for name in self.anchors:
            if name not in (*game.scripts, "random") and not Path(name).is_file():
                raise ValueError(
                    f"--anchors: {game.name} has no script {name!r}, and it is no file of a policy: choose from "
                    f"{', '.join(game.scripts)}"
                )
        if len(set(self.anchors)) < len(self.anchors):
            raise ValueError(f"--anchors names a player twice: {', '.join(self.anchors)}")


class Learner(Protocol):
    """What trains in a league."""

    def train(self, opponents: Opponents, generation: int, decisions: int, report: Callable[[int], None]) -> int:
        """Trains for at least so many decisions, and returns how many they were; ``report`` hears of them meanwhile."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """The policy, as `save_policy` takes it."""
        ...

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned."""
        ...


@dataclass(frozen=True)
class Opponents:
    """Whom a generation trains against.

    Attributes:
        anchors: Scripts.
        share: Share of the lanes that they have.
        pools: The accepted generations by the team that they play; none for the first generation.
    """

    anchors: Sequence[str]
    share: float
    pools: Mapping[str, SelfPlayPool]

    @property
    def scripts_alone(self) -> Opponents:
        """The scripts, for lanes of their own."""
        return Opponents(self.anchors, 1.0, {})

    @property
    def generations_alone(self) -> Opponents:
        """The generations, likewise."""
        return Opponents(self.anchors, 0.0, self.pools)

    def assign(self, sim: Simulation, team: str, places: np.ndarray, count: int, turn: int = 0) -> None:
        """Gives every lane its opponent.

        Args:
            sim: The lanes.
            team: That the opponents play.
            places: Number of each lane's place, from 0 to ``count`` - 1: scripts have the first ones.
            count: Of places.
            turn: The scripts move on by so many places.
        """
        scripts = self.script_places(count)
        for place in range(scripts):
            sim.set_opponent(team, self.anchors[(place + turn) % len(self.anchors)], places == place)
        if scripts < count:
            sim.set_opponent(team, self.pools[team], places >= scripts)

    def script_places(self, count: int) -> int:
        """How many of so many places have scripts."""
        return round(self.share * count) if self.pools else count

    def watch(self, sim: Simulation) -> None:
        """Reports the results of the last step to the pools, which a prioritised draw needs."""
        for pool in self.pools.values():
            if pool.draw == "pfsp":
                pool.watch(sim)


@dataclass(frozen=True)
class Record:
    """Matches of two players, those that a rule ended: of all, not of those that were decided."""

    matches: int
    won: int
    lost: int

    @property
    def won_share(self) -> float:
        """Share of the matches that the first player won."""
        return self.won / self.matches

    @property
    def lost_share(self) -> float:
        """Share of the matches that it lost."""
        return self.lost / self.matches

    @property
    def score(self) -> float:
        """Share of points of the first player: an undecided match is half a one."""
        return 0.5 + (self.won - self.lost) / (2 * self.matches)


class League:
    """Players and the results of their matches.

    Attributes:
        args: Arguments of the run.
        game: The rules.
        records: Of pairs of players, by their names.
        accepted: Numbers of the accepted generations.
        refused: Whether the last generation was not accepted.
    """

    def __init__(self, args: LeagueArgs, method: str) -> None:
        """No generation yet."""
        self.args, self.method = args, method
        self.game, _ = registry.make_game(args.env_id, **args.rules)
        self.records: dict[tuple[str, str], Record] = {}
        self.accepted: list[int] = []
        self.refused = False
        self.pools = {team: self._new_pool(team) for team in self.game.teams}

    def _new_pool(self, team: str) -> SelfPlayPool:
        args = self.args
        return SelfPlayPool(args.env_id, team, draw=args.draw, latest_share=args.latest_share, **args.rules)

    def file(self, generation: int) -> Path:
        """Policy of a generation."""
        return self.args.folder / f"generation_{generation}.safetensors"

    def opponents(self) -> Opponents:
        """Whom the next generation trains against."""
        args = self.args
        share = max(args.anchor_share, args.refused_share) if self.refused else args.anchor_share
        pools = self.pools if any(self.accepted) and share < 1.0 else {}
        return Opponents(args.anchors, share, pools)

    def judge(self, generation: int, report: Callable[[str], None] = lambda text: None) -> None:
        """Lets a new generation play everybody, and accepts or refuses it."""
        name, args = name_of(generation), self.args
        file = str(self.file(generation))
        for anchor in args.anchors:
            self.play_pair((name, anchor), (file, anchor), args.anchor_rules, report)
        for earlier in range(generation):
            self.play_pair((name, name_of(earlier)), (file, str(self.file(earlier))), args.rules, report)
        fallen = [anchor for anchor in args.anchors if self._fall(generation, anchor) > args.drop]
        self.refused = generation > 0 and bool(fallen)
        if not self.refused:
            self._accept(generation)

    def _fall(self, generation: int, anchor: str) -> float:
        """How much smaller the share of wins is than that of the last accepted generation."""
        last = max((k for k in self.accepted if k > 0), default=None)
        if last is None:
            return 0.0
        before, now = (self.records[name_of(k), anchor] for k in (last, generation))
        return before.won_share - now.won_share

    def _accept(self, generation: int) -> None:
        self.accepted.append(generation)
        if generation > 0:
            for pool in self.pools.values():
                pool.add(self.file(generation))

    def play_pair(
        self, names: tuple[str, str], players: tuple[str, str], rules: Mapping[str, Any], report: Callable[[str], None]
    ) -> None:
        """Plays the matches of two players and notes how many a rule ended for the first and for the second."""
        args = self.args
        lanes = min(256, max(args.matches // 2, 1))
        options: dict[str, Any] = {"matches": args.matches, "num_envs": lanes, "seed": EVALUATION_SEED, **rules}
        table = evaluate(args.env_id, *players, **options).results
        by_rule = table["end_reason"] > BY_RULE
        won, lost = (int((by_rule & (table["outcome"] == sign)).sum()) for sign in (1, -1))
        record = self.records[names] = Record(len(table), won, lost)
        told = f"{record.won_share:.3f} won, {record.lost_share:.3f} lost of {record.matches}"
        report(f"{names[0]} against {names[1]}: {told}")

    def ratings(self) -> dict[str, Rating]:
        """Elo of all players; the first anchor has 0."""
        names = list(dict.fromkeys(name for pair in self.records for name in pair))
        points = np.zeros((len(names), len(names)))
        for (a, b), record in self.records.items():
            i, j = names.index(a), names.index(b)
            points[i, j] = record.score * record.matches
            points[j, i] = record.matches - points[i, j]
        sides = 2.0 if self.game.symmetric_teams else 1.0
        return fit_elo(names, points, {self.args.anchors[0]: 0.0}, matches_per_trial=sides)

    def figures(self, generation: int) -> dict[str, float]:
        """Columns of the curve about a generation."""
        name, figures = name_of(generation), {"accepted": int(not self.refused)}
        for anchor in self.args.anchors:
            record = self.records[name, anchor]
            figures |= {
                f"won_{player_name(anchor)}": record.won_share,
                f"lost_{player_name(anchor)}": record.lost_share,
            }
        before = max((k for k in self.accepted if k < generation), default=None)
        score = 0.5 if before is None else self.records[name, name_of(before)].score
        return figures | {"score_before": score, "elo": self.ratings()[name].elo}

    def write_table(self) -> None:
        """Writes ``league.csv``."""
        rows = [(a, b, r.matches, r.won, r.lost, f"{r.score:.4f}") for (a, b), r in self.records.items()]
        write_csv(self.args.folder / LEAGUE, [("player", "opponent", "matches", "won", "lost", "score"), *rows])

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        records = [[a, b, r.matches, r.won, r.lost] for (a, b), r in self.records.items()]
        pools = {team: {"matches": pool.matches, "points": pool.points} for team, pool in self.pools.items()}
        return {"records": records, "accepted": self.accepted, "refused": self.refused, "pools": pools}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned; the files of the generations are there."""
        self.records = {(a, b): Record(*counts) for a, b, *counts in state["records"]}
        self.pools = {team: self._new_pool(team) for team in self.game.teams}
        self.accepted = []
        for generation in state["accepted"]:
            self._accept(generation)
        self.refused = state["refused"]
        for team, counts in state["pools"].items():
            self.pools[team].matches, self.pools[team].points = counts["matches"], counts["points"]


def show(progress: Progress, steps: int, more: int) -> None:
    """Shows the decisions of the generations before and of this one."""
    progress.update(min(steps + more, progress.total))


def name_of(generation: int) -> str:
    """Name of a generation among the players."""
    return f"generation_{generation}"


def train_league(
    args: LeagueArgs,
    method: str,
    learner_of: Callable[[Any], Learner],
    evaluation: Evaluation | None = None,
) -> Report:
    """Trains a league, or resumes; its files stand in ``args.folder``.

    Args:
        args: Arguments of the run.
        method: Name of the method, for files and display.
        learner_of: Makes the learner from the arguments.
        evaluation: Measures further columns of the curve.
    """
    with RunFolder(args, method) as folder:
        league, learner, cpu_s = League(args, method), learner_of(args), 0.0
        steps, generation = folder.steps, len(folder.rows)
        accepted_state = learner.state()
        if folder.before:
            with folder.restoring():
                learner.restore(folder.before["learner"])
                league.restore(folder.before["league"])
                accepted_state, cpu_s = folder.before["accepted"], folder.before["cpu_s"]
        while generation <= args.evaluations:
            began_s = time.process_time()
            if generation:
                if league.refused:
                    learner.restore(accepted_state)
                due = generation * args.total_steps // args.evaluations
                report = partial(show, folder.progress, steps)
                steps += learner.train(league.opponents(), generation, max(due - steps, 1), report)
                if generation < args.evaluations:  # one update may be longer than what is left: more is to come
                    steps = min(steps, args.total_steps - 1)
            cpu_s += time.process_time() - began_s
            folder.begin()
            for path in (league.file(generation), args.folder / WEIGHTS):
                facts = {"generation": generation, "steps": steps, "rules": keywords(args.options)}
                save_policy(path, learner.arrays(), method=method, env_id=args.env_id, args=args.settings, **facts)
            league.judge(generation, folder.progress.say)
            if not league.refused:
                accepted_state = learner.state()
            figures = league.figures(generation)
            if evaluation is not None:
                figures |= evaluation(partial(load_policy, league.file(generation), league.game))
            row = {"steps": steps, "generation": generation, **figures, "cpu_s": cpu_s}
            saved = {"learner": learner.state(), "accepted": accepted_state, "league": league.state(), "cpu_s": cpu_s}
            league.write_table()
            folder.record(row, saved)
            shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
            folder.progress.say(f"generation {generation}, {steps} decisions: {shown}")
            show(folder.progress, steps, 0)
            generation += 1
    last = folder.rows[-1]
    return Report(args.folder / WEIGHTS, int(last["steps"]), len(folder.rows) - 1, last["cpu_s"], folder.rows)


__all__ = ["Game", "League", "LeagueArgs", "Learner", "Opponents", "train_league"]
