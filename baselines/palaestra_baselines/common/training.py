"""What methods for two teams share: arguments, lanes, evaluations and checkpoints, and replay for value-based ones.

Both teams of a game learn, each against the other, or one team learns against a script (``--team``). The
networks, the loss, the exploration and the loop of a method stand in its own file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import nn

from palaestra import registry
from palaestra.core.run.opponents import Opponent, OpponentSpec
from palaestra.evaluation import EVALUATION_RUN, MatchTable, evaluate
from palaestra.game import Game
from palaestra_baselines.common.agents import (
    Roster,
    check_mates,
    keywords,
    make_lanes,
    make_rules,
    one_team_roster,
    opponents_of,
    two_team_roster,
)
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.rollout import Batch, Collector, Replay, Sequences, epsilon_greedy
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command

EVALUATION_SEED = 2**30
"""Number of the run whose matches evaluate a training; final figures use others."""


@dataclass
class LaneArgs(RunArgs):
    """Arguments of all methods, beside those of `RunArgs`.

    Attributes:
        env_id: Game of two teams, zero-sum if both learn; of one team where it learns by itself.
        options: Keywords of the game, ``name=value`` each.
        team: Name of the team that learns, against ``opponent``; empty if both learn by self-play. The only team of a
            game learns without an opponent. On the command line the first team where a game lacks that of the default.
        lanes: Matches at once.
        learning_rate: Of Adam, at the start and at the end; falls linearly.
        gamma: Discount per decision.
        hidden: Widths of the networks of the agents.
        max_gradient_norm: Longer gradients are clipped to this norm.
        opponent: Script, with its strength, "default" or "random", of the evaluations; empty for none. If one team
            learns, it plays the other in the training too. On the command line the game's default script where a game
            lacks that of the default.
        matches: Matches of an evaluation.
    """

    SHARES: ClassVar[tuple[str, ...]] = ("gamma",)

    env_id: str = "palaestra/TeamPong-v0"
    options: tuple[str, ...] = ()
    team: str = ""
    total_steps: int = 1_500_000
    lanes: int = 256
    learning_rate: tuple[float, float] = (1e-3, 1e-4)
    gamma: float = 0.99
    hidden: tuple[int, ...] = (64, 64)
    max_gradient_norm: float = 10.0
    opponent: str = "random"
    matches: int = 200

    def fit_to_game(self) -> None:
        """Takes team and opponent from the game, where those of the default are given and it has none of that name."""
        of_class: Any = type(self)
        if self.env_id not in registry.ROWS or not of_class.opponent:
            return
        game = make_rules(self.env_id, self.options)
        if self.team == of_class.team and self.team not in game.teams and (self.team or len(game.teams) == 1):
            self.team = next(iter(game.teams))
        if self.opponent == of_class.opponent and len(game.teams) == 1:
            self.opponent = ""
        elif self.opponent == of_class.opponent and self.opponent not in (*game.scripts, "random"):
            self.opponent = game.default_opponent


@dataclass
class LearningArgs(LaneArgs):
    """Arguments that value-based methods share, beside those of `LaneArgs`.

    Attributes:
        updates: Gradient steps after each decision of all lanes.
        batch_size: Decisions in a gradient step.
        replay_size: Decisions that are kept.
        warmup_steps: Decisions at random before learning starts.
        epsilon: Probability of a random action, at the start and at the end.
        epsilon_until: Share of the training after which it is that of the end; falls linearly.
        tau: Coefficient of Polyak averaging of the target network, at each gradient step.
        double: Choose the greedy actions of the target by the online network (double Q-learning).
        random_starts: Start matches at positions drawn uniformly; only where positions can be counted.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "warmup_steps")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "epsilon", "epsilon_until", "tau")

    updates: int = 3
    batch_size: int = 256
    replay_size: int = 500_000
    warmup_steps: int = 20_000
    epsilon: tuple[float, float] = (1.0, 0.05)
    epsilon_until: float = 0.3
    tau: float = 0.01
    double: bool = True
    random_starts: bool = False


@dataclass(frozen=True)
class Report:
    """Result of a training.

    Attributes:
        weights: Saved policy, always the last one; evaluations select none.
        steps: Decisions played.
        updates: Gradient steps.
        cpu_s: Processor time of all parts of the run, evaluations left out.
        log: One row per evaluation.
    """

    weights: Path
    steps: int
    updates: int
    cpu_s: float
    log: list[dict[str, float]] = field(default_factory=list)

    def __str__(self) -> str:
        """The costs, in a line."""
        return f"{self.weights}: {self.steps} decisions, {self.updates} gradient steps, {self.cpu_s:.0f} s of processor"


Evaluation = Callable[[Callable[[str], Opponent]], dict[str, float]]
"""``evaluation(player_of)`` -> columns of the curve; ``player_of(team)`` plays a team by the current weights."""


class Policy(Protocol):
    """Networks that play, and that a file can hold."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights by name."""
        ...

    def notes(self) -> dict[str, Any]:
        """Further metadata of the file."""
        ...

    def player(self, game: Game, team: str) -> Opponent:
        """The greedy player of a team by copies of the current weights."""
        ...


class FolderTraining:
    """One run in its folder: evaluates, saves and resumes. A method adds what it plays, measures and learns.

    Attributes:
        args: Arguments of the run.
        folder: Its files.
        rng: Generator of its draws.
        updates: Gradient steps so far, or what `COUNT` counts.
        losses: Further columns of the curve, about what was learnt last.
        figures: Of the last evaluation.
        cpu_s: Processor time so far, evaluations left out.
    """

    COUNT: ClassVar[str] = "updates"
    """Name of `updates` in the curve and in the policy file."""
    CONTINUES: ClassVar[bool] = False
    """Whether a run that has ended can go on with more steps; else its last checkpoint holds the curve alone."""
    IS_ONE_FILE: bool = True
    """Whether the policy file is all of the policy."""

    def __init__(self, args: Any, folder: Any, rng: np.random.Generator, losses: Iterable[str]) -> None:
        """Starts the clock; ``losses`` are the names of the columns."""
        torch.set_num_threads(1)
        self.args, self.folder, self.rng = args, folder, rng
        self.updates, self._steps, self.cpu_s = 0, 0, 0.0
        self.losses: dict[str, float] = dict.fromkeys(losses, 0.0)
        self.figures: dict[str, float] = {}
        self._began_s = time.process_time()
        self._learnt: dict[str, Any] = {}

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return self._steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self._steps = steps

    def measure(self, policy: Any) -> dict[str, float]:
        """Columns of the curve about the current weights."""
        raise NotImplementedError

    def resume(self, **learnt: Any) -> None:
        """Registers the learnt modules, and restores them from the checkpoint if the run goes on.

        Args:
            **learnt: Modules and optimizers by name.

        Raises:
            FileError: The checkpoint does not fit; names it.
        """
        self._learnt, before = learnt, self.folder.before
        if before is None:
            return
        with self.folder.restoring():
            if self.folder.is_finished and not self.CONTINUES:  # weights and curve are there, and nothing else may be
                last: dict[str, Any] = self.folder.rows[-1]
                self.steps, self.updates, self.cpu_s = self.folder.steps, last[self.COUNT], last["cpu_s"]
                return
            for name, part in learnt.items():
                part.load_state_dict(before[name])
            self.restore(before)

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the learnt parts."""
        counts = {"updates": self.updates, "losses": self.losses, "cpu_s": self.cpu_s}
        return {"rng": self.rng.bit_generator.state, **counts}

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.rng.bit_generator.state = before["rng"]
        self.updates, self.losses, self.cpu_s = before["updates"], before["losses"], before["cpu_s"]

    @property
    def progress(self) -> float:
        """How much of the training is done."""
        return min(self.steps / self.args.total_steps, 1.0)

    def should_continue(self, policy: Any) -> bool:
        """Whether the training continues; evaluates ``policy`` and writes a checkpoint where these are due."""
        self.cpu_s += time.process_time() - self._began_s
        steps = self.steps
        if self.folder.is_due(steps):
            self._evaluate(policy)
        self.folder.progress.update(steps, **self.figures, **self.losses)
        self._began_s = time.process_time()
        return steps < self.args.total_steps

    def _evaluate(self, policy: Any) -> None:
        steps, args, figures = self.steps, self.args, self.measure(policy)
        self.figures, counts = figures, {"steps": steps, self.COUNT: self.updates}
        facts = {**policy.notes(), **counts, "figures": figures}
        path = args.folder / WEIGHTS
        save_policy(path, policy.arrays(), method=self.folder.method, env_id=args.env_id, args=args.settings, **facts)
        row = {**counts, **figures, **self.losses, "cpu_s": self.cpu_s}
        state = None  # at the end: the schedules have ended, so nothing could go on as in a longer run
        if steps < args.total_steps or self.CONTINUES:
            state = {**{name: part.state_dict() for name, part in self._learnt.items()}, **self.state()}
        self.folder.record(row, state, is_one_file=self.IS_ONE_FILE)
        shown = "  ".join(f"{name} {value:.3g}" for name, value in {**figures, **self.losses}.items())
        self.folder.progress.say(f"{steps:9d} decisions: {shown}")

    def report(self) -> Report:
        """Ends the run."""
        return Report(self.args.folder / WEIGHTS, self.steps, self.updates, self.cpu_s, self.folder.rows)


class LaneTraining(FolderTraining):
    """One run: all agents of both teams, or of one, learn in all lanes.

    Attributes:
        roster: The learning agents.
        replay: Their last decisions.
        collector: Plays the lanes.
    """

    LOSSES: ClassVar[tuple[str, ...]] = ("loss",)
    """Columns of the curve about a gradient step."""
    ROSTER: ClassVar[type[Roster]] = Roster
    """What a team that learns observes."""
    REPLAY: ClassVar[type[Replay]] = Replay
    """Where decisions are kept."""
    KEEPS_REPLAY: ClassVar[bool] = False
    """Whether a checkpoint holds the replay."""
    LEARNS_BESIDE_OTHERS: ClassVar[bool] = False
    """Whether the method learns one agent beside teammates that others play, ``--options mates=...``."""
    LEARNS_NUMBERS: ClassVar[bool] = False
    """Whether the method learns real numbers, too; the others refuse them."""

    def __init__(
        self, args: LaneArgs, folder: RunFolder, evaluation: Evaluation | None, rows: int, **recorded: Any
    ) -> None:
        """Starts the lanes.

        Args:
            args: Arguments of the run.
            folder: Its files, entered.
            evaluation: What evaluations measure; matches against the script ``args.opponent`` if None.
            rows: Decisions of a lane that the replay keeps.
            **recorded: Keywords of `Collector`: what else is recorded, and where matches start.
        """
        super().__init__(args, folder, np.random.default_rng([args.seed, 2]), self.LOSSES)
        torch.manual_seed(args.seed)
        check_mates(args.env_id, args.options, args.team, None if self.LEARNS_BESIDE_OTHERS else folder.method)
        sim = make_lanes(
            args.env_id,
            args.options,
            args.lanes,
            opponents_of(args.env_id, args.options, args.team, args.opponent) if args.team else None,
        )
        options = {"numbers": True} if self.LEARNS_NUMBERS else {}
        self.roster = (
            one_team_roster(self.ROSTER, sim.game, args.team, **options) if args.team else two_team_roster(sim.game)
        )
        if args.team:
            self.roster.leave_to_others(sim)
        self.replay = self.REPLAY(rows + 1, args.lanes)
        self.collector = Collector(sim, self.roster, self.replay, args.seed, **recorded)
        self.evaluation = evaluation or self._evaluate_by_script

    @property
    def steps(self) -> int:
        """Decisions that the collector has played."""
        return self.collector.steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self.collector.steps = steps

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds beside the learnt parts."""
        replay = {"replay": self.replay.state()} if self.KEEPS_REPLAY else {}
        return {**replay, "collector": self.collector.state(), **super().state()}

    def restore(self, before: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        if self.KEEPS_REPLAY:
            self.replay.restore(before["replay"])
        self.collector.restore(before["collector"])
        super().restore(before)

    def measure(self, policy: Policy) -> dict[str, float]:
        """What the evaluation finds of players by the current weights."""
        return self.evaluation(lambda team: policy.player(self.roster.game, team))

    def count_update(self, *losses: torch.Tensor | float) -> None:
        """Counts a gradient step, whose `LOSSES` these are."""
        self.updates += 1
        self.losses = {name: float(torch.as_tensor(x).detach()) for name, x in zip(self.LOSSES, losses, strict=True)}

    def _evaluate_by_script(self, player_of: Callable[[str], Opponent]) -> dict[str, float]:
        """Share of matches won against the script: of all, and as each team where the teams are not alike."""
        args, teams = self.args, tuple(self.roster.game.teams)
        if len(teams) > 1 and not args.opponent:
            return {}
        if args.team:
            return measure_team(args, self.roster.game, args.team, player_of(args.team))
        players = {team: player_of(team) for team in teams}
        half, options = args.matches // 2, keywords(args.options)
        table = play_both_sides(
            args.env_id, players, args.opponent, args.matches, EVALUATION_SEED, num_envs=half, **options
        )
        by_team = {f"win_rate_{team}": rate for team, rate in zip(teams, table.win_rates, strict=True)}
        return {"win_rate": table.win_rate} | ({} if self.roster.alike else by_team)

    def report(self) -> Report:
        """Ends the run."""
        self.collector.sim.close()
        return super().report()


class Training(LaneTraining):
    """One run of a value-based method: decisions at random first, then batches from a replay."""

    KEEPS_REPLAY = True
    args: LearningArgs

    def __init__(self, args: LearningArgs, folder: RunFolder, evaluation: Evaluation | None, **recorded: Any) -> None:
        """Starts the lanes; arguments as in `LaneTraining`."""
        rows = max(args.replay_size // args.lanes, 2)
        super().__init__(args, folder, evaluation, rows, random_starts=args.random_starts, **recorded)

    @property
    def is_warming_up(self) -> bool:
        """Whether decisions are still random and nothing is learnt."""
        return self.collector.steps < self.args.warmup_steps

    def play(self, utilities: Any, epsilon: float) -> None:
        """One epsilon-greedy decision in all lanes, at random while the run warms up.

        Args:
            utilities: A module as `palaestra_baselines.common.flat_networks.FlatUtilities`.
            epsilon: Probability of a random action.
        """
        collector, values, memory = self.collector, None, None
        position, is_recurrent = collector.position, bool(utilities.memory_size)
        if is_recurrent or not self.is_warming_up:
            observed = {name: torch.from_numpy(rows) for name, rows in position.observations.items()}
            before = torch.from_numpy(position.memory) if is_recurrent else None
            with torch.no_grad():
                values, features = utilities.evaluate(observed, before)
            memory = features.numpy() if is_recurrent else None
            values = None if self.is_warming_up else values.numpy()
        collector.play(epsilon_greedy(collector.rng, position.legal, values, epsilon), memory)

    def sample(self) -> Batch:
        """A batch for the next gradient step."""
        return self.replay.sample(self.rng, self.args.batch_size)

    def sample_sequences(self, length: int) -> Sequences:
        """Sequences for the next gradient step: as many as make a batch of decisions, and at least one."""
        return self.replay.sample_sequences(self.rng, max(self.args.batch_size // length, 1), length)


def learn(
    training: Training,
    online: nn.Module,
    target: nn.Module,
    loss: Callable[[], torch.Tensor],
    utilities_of: Callable[[Any], Any] = lambda network: network,
    average: Any = None,
) -> Report:
    """The loop of value-based methods: decisions in all lanes, then gradient steps on batches of the replay.

    The probability of a random action falls linearly over a part of the training, the learning rate over all of it.
    What is evaluated and saved are the utilities of the target network, or those of ``average``.

    Args:
        training: The run.
        online: Networks that learn.
        target: Their target networks, which follow by ``tau`` at each gradient step.
        loss: Draws a batch and returns its loss.
        utilities_of: The utilities among ``online`` or ``target``: their inputs are scaled when learning starts.
        average: Averaged weights of the utilities, which follow by ``average`` at each gradient step.
    """
    args: Any = training.args
    played = utilities_of(target) if average is None else average
    optimizer = torch.optim.Adam(online.parameters(), lr=args.learning_rate[0], fused=True)
    averaged = {} if average is None else {"average": average}
    training.resume(online=online, target=target, **averaged, optimizer=optimizer)
    while training.should_continue(played):
        training.play(utilities_of(online), linear_schedule(args.epsilon, training.progress / args.epsilon_until))
        if training.is_warming_up:
            continue
        if training.updates == 0:
            for utilities in (utilities_of(online), utilities_of(target), *averaged.values()):
                utilities.standardise(training.replay.observed())
        rate = linear_schedule(args.learning_rate, training.progress)
        for _ in range(args.updates):
            value = loss()
            gradient_step(optimizer, value, rate, args.max_gradient_norm)
            polyak_update(target, online, args.tau)
            if average is not None:
                polyak_update(average, utilities_of(online), args.average)
            training.count_update(value)
    return training.report()


def measure_team(args: LaneArgs, game: Game, team: str, player: OpponentSpec) -> dict[str, float]:
    """Share of the matches that a team wins against ``args.opponent``, and its mean return; of an only team the return.

    Args:
        args: Environment, opponent and number of matches.
        game: Its rules.
        team: Name of the team.
        player: Plays it.
    """
    teams = list(game.teams)
    options: dict[str, Any] = {"matches": args.matches, "num_envs": args.matches, "seed": EVALUATION_SEED}
    options |= {"swap": False, **keywords(args.options)} if len(teams) > 1 else keywords(args.options)
    if len(teams) == 1:
        return {"return": float(evaluate(args.env_id, player, **options).results["return_a"].mean())}
    is_first = team == teams[0]
    table = evaluate(args.env_id, *((player, args.opponent) if is_first else (args.opponent, player)), **options)
    wins, returns = (table.wins, "return_a") if is_first else (table.losses, "return_b")
    return {"win_rate": wins / table.matches, "return": float(table.results[returns].mean())}


def learning_command(
    kind: type[LaneArgs], method: str, about: str, argv: Sequence[str] | None, train: Callable[[Any], Report]
) -> None:
    """The command of a method, see `palaestra_baselines.common.run_folder.run_command`."""
    args, report = run_command(kind, method, about, argv, train)
    print(report)
    game = make_rules(args.env_id, args.options)
    is_second, opponent = args.team == list(game.teams)[-1], args.opponent or "random"
    if len(game.teams) == 1:
        is_second, opponent = False, None
    print(evaluation_hint(args, report.weights, opponent, is_second))


def linear_schedule(ends: tuple[float, float], share: float) -> float:
    """Linear interpolation from the first to the second number; constant where ``share`` is over 1."""
    return ends[0] + (ends[1] - ends[0]) * min(share, 1.0)


def gradient_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor, rate: float, max_norm: float) -> float:
    """One gradient step.

    Args:
        optimizer: Of the parameters; a group may have a ``"share"`` of the learning rate.
        loss: A scalar.
        rate: Learning rate of this step.
        max_norm: A gradient of greater norm, over all parameters, is clipped to it.

    Returns:
        The norm before.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("share", 1.0)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)
    optimizer.step()
    return float(norm)


@torch.no_grad()
def polyak_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Polyak averaging: ``target <- target + tau (online - target)``."""
    for follower, leader in zip(target.parameters(), online.parameters(), strict=True):
        follower.lerp_(leader, tau)


def weighted_mean(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Mean of ``values`` by ``weights``, which are 0 for rows that are no decision of a match; 0 where all are."""
    return (values * weights).sum() / weights.sum().clamp(min=1.0)


PlayerOfTeam = OpponentSpec | Mapping[str, OpponentSpec]
"""A player of either team: a script, the file of a policy, or a player for each team by its name."""


@dataclass(frozen=True)
class BothSides:
    """Matches of a player against an opponent, half of them as each team.

    Attributes:
        as_first: The player has the first team.
        as_second: The player has the second team; the table counts wins of the opponent.
    """

    as_first: MatchTable
    as_second: MatchTable

    @property
    def win_rates(self) -> tuple[float, float]:
        """Share of matches that the player won as first and as second team."""
        return self.as_first.wins / self.as_first.matches, self.as_second.losses / self.as_second.matches

    @property
    def win_rate(self) -> float:
        """Share of all matches that the player won."""
        return sum(self.win_rates) / 2

    @property
    def score(self) -> float:
        """Share of the points of the player: a win is 1, a draw 1/2."""
        return (self.as_first.score + 1.0 - self.as_second.score) / 2


def play_both_sides(
    id: str,
    player: PlayerOfTeam,
    opponent: PlayerOfTeam,
    matches: int,
    seed: int = EVALUATION_RUN,
    num_envs: int = 64,
    **keywords: Any,
) -> BothSides:
    """Plays matches of a two-team game, half of them with the player as each team; both halves have the same seeds.

    Args:
        id: Registered id.
        player: Its wins are counted.
        opponent: The other player.
        matches: Number of matches, rounded down to an even number.
        seed: Number of the run, as for `palaestra.evaluation.evaluate`.
        num_envs: Matches at once.
        **keywords: Of the game.
    """
    options: dict[str, Any] = {"matches": matches // 2, "seed": seed, "swap": False, "num_envs": num_envs, **keywords}
    first = evaluate(id, in_team(player, 0), in_team(opponent, 1), **options)
    second = evaluate(id, in_team(opponent, 0), in_team(player, 1), **options)
    return BothSides(first, second)


def in_team(player: PlayerOfTeam, number: int) -> OpponentSpec:
    """The player of the team with this number."""
    return list(player.values())[number] if isinstance(player, Mapping) else player
