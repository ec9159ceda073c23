"""The loop of FM3Q, VDN and IQL: collect, regress totals on rewards, judge, keep a checkpoint.

A method is a *mixer*: it makes of the utilities q [B, A] of the chosen actions one or several totals Q [B, K], each on
the reward of the first team times a sign. With y_k = sign_k r + gamma Q_k'(o', a*'), a* the agents' own greedy actions
and ' the weights that follow slowly, the loss is the mean of (y_k - Q_k)^2 (Mnih et al., Nature 518, 2015).
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from palaestra.core.opponents import Opponent
from palaestra.evaluation import evaluate
from palaestra_baselines.common.curves import CurveLog
from palaestra_baselines.common.progress import Progress
from palaestra_baselines.common.self_play import Batch, Collector, Replay, Roster, keywords, make_lanes
from palaestra_baselines.common.utilities import Utilities, UtilityPlayer, save_utilities

JUDGE_SEED = 2**30
"""Number of the run whose matches judge a training; the final figures use others."""


@dataclass
class LearningArgs:
    """Arguments that all methods share.

    Attributes:
        env_id: Two-team zero-sum game of discrete actions.
        options: Keywords of the game, ``name=value`` each.
        seed: Seed of weights, actions and matches.
        total_steps: Decisions of matches to play.
        lanes: Matches at once.
        updates: Gradient steps after each decision of all lanes.
        batch_size: Decisions in a gradient step.
        replay_size: Decisions that are kept.
        warmup_steps: Decisions at random before learning starts.
        epsilon: Share of random actions, at the start and at the end.
        epsilon_until: Share of the training after which it is that of the end; falls linearly.
        learning_rate: Of Adam, at the start and at the end; falls linearly.
        gamma: Discount per decision.
        tau: Share by which the slow weights follow at each gradient step.
        hidden: Widths of the utility networks.
        double: Choose the greedy actions of the target by the fast weights (double Q-learning).
        max_gradient_norm: Longer gradients are shortened.
        random_starts: Start matches at positions drawn uniformly; only where positions can be counted.
        opponent: Script, with its strength, against which the training is judged; empty for nobody.
        evaluations: How often it is judged.
        matches: Matches of such an evaluation.
        directory: Where logs, checkpoints and weights go, in a folder per seed.
        resume: Go on after the last checkpoint of this seed.
        quiet: Print nothing.
    """

    env_id: str = "palaestra/TeamPong-v0"
    options: tuple[str, ...] = ()
    seed: int = 0
    total_steps: int = 1_500_000
    lanes: int = 256
    updates: int = 3
    batch_size: int = 256
    replay_size: int = 500_000
    warmup_steps: int = 20_000
    epsilon: tuple[float, float] = (1.0, 0.05)
    epsilon_until: float = 0.3
    learning_rate: tuple[float, float] = (1e-3, 1e-4)
    gamma: float = 0.99
    tau: float = 0.01
    hidden: tuple[int, ...] = (64, 64)
    double: bool = True
    max_gradient_norm: float = 10.0
    random_starts: bool = False
    opponent: str = ""
    evaluations: int = 20
    matches: int = 200
    directory: Path = Path("runs/self_play")
    resume: bool = False
    quiet: bool = False

    @property
    def folder(self) -> Path:
        """Folder of this seed."""
        return self.directory / f"seed_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the result, as JSON can hold it: all but where and how it runs."""
        values = {k: v for k, v in asdict(self).items() if k not in ("directory", "resume", "quiet")}
        return json.loads(json.dumps(values))


@dataclass(frozen=True)
class Report:
    """Result of a training.

    Attributes:
        weights: Saved policy, the last one: none is chosen by an evaluation.
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
        """What was spent, in a line."""
        return f"{self.weights}: {self.steps} decisions, {self.updates} gradient steps, {self.cpu_s:.0f} s of processor"


class Mixer(Protocol):
    """What makes a method, an `nn.Module`.

    Attributes:
        signs: float32 ``[K]``: the reward of a total is that of the first team times this.
    """

    signs: torch.Tensor

    def __call__(self, utilities: torch.Tensor, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Totals ``[B, K]`` of utilities ``[B, A]`` (0 for agents out of the match), seen ``[B, A_role, size]``."""
        ...


Judge = Callable[[Callable[[str], Opponent]], dict[str, float]]
"""``judge(player_of)`` -> columns of the log, where ``player_of(team)`` plays a team by the weights of now."""


class Learner(nn.Module):
    """Utilities and mixer: everything that is learnt."""

    def __init__(self, utilities: Utilities, mixer: Any) -> None:
        """Takes both."""
        super().__init__()
        self.utilities, self.mixer = utilities, mixer

    def totals(self, batch: Batch) -> torch.Tensor:
        """Totals ``[B, K]`` of the decisions as they were taken."""
        values = self.utilities(batch.observations).gather(2, batch.actions[:, :, None])[:, :, 0]
        return self.mixer(values * batch.alive, batch.observations)

    def greedy_totals(self, batch: Batch, chooser: Utilities | None) -> torch.Tensor:
        """Totals ``[B, K]`` of the agents' own greedy actions after the decisions, chosen by ``chooser`` or itself."""
        values = self.utilities(batch.next_observations)
        choice = values if chooser is None else chooser(batch.next_observations)
        greedy = choice.masked_fill(~batch.next_legal, -torch.inf).argmax(2, keepdim=True)
        return self.mixer(values.gather(2, greedy)[:, :, 0] * batch.next_alive, batch.next_observations)


def td_loss(fast: Learner, slow: Learner, batch: Batch, gamma: float, double: bool) -> torch.Tensor:
    """Mean of (sign r + gamma Q'(o', a*') - Q(o, a))^2 over decisions and totals."""
    with torch.no_grad():
        following = slow.greedy_totals(batch, fast.utilities if double else None)
        target = batch.rewards[:, None] * fast.mixer.signs + gamma * batch.goes_on[:, None] * following
    error = (fast.totals(batch) - target) ** 2
    return (error.mean(1) * batch.weights).sum() / batch.weights.sum()


# ----------------------------------------------------------------------------------------------------------- training


class Training:
    """One run: lanes, replay, weights, log and checkpoints."""

    def __init__(
        self, args: LearningArgs, method: str, make_mixer: Callable[[Roster], Any], judge: Judge | None
    ) -> None:
        """Starts a run, or takes up the last checkpoint of one."""
        torch.set_num_threads(1)
        torch.manual_seed(args.seed)
        self.args, self.method = args, method
        sim = make_lanes(args.env_id, args.options, args.lanes)
        self.roster = Roster(sim.game)
        self.fast = Learner(Utilities(self.roster, args.hidden), make_mixer(self.roster))
        self.slow = copy.deepcopy(self.fast).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.fast.parameters(), lr=args.learning_rate[0], fused=True)
        self.replay = Replay(self.roster, max(args.replay_size // args.lanes, 2) + 1, args.lanes)
        self.collector = Collector(sim, self.replay, self.roster, args.seed, args.random_starts)
        self.rng = np.random.default_rng([args.seed, 2])
        self.judge = judge or (lambda player_of: judge_by_script(args, self.roster, player_of))
        self.updates, self.loss, self.cpu_s, self.next_evaluation = 0, 0.0, 0.0, 0
        self.rows: list[dict[str, float]] = []
        path = args.folder / "checkpoint.pt"
        before = torch.load(path, weights_only=False) if args.resume and path.exists() else None
        self.log = CurveLog(args.folder / "log.csv", before and before["collector"]["steps"])
        if before:
            self.restore(before)

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return min(self.collector.steps / self.args.total_steps, 1.0)

    def play(self) -> None:
        """One decision in all lanes."""
        args = self.args
        if self.collector.steps < args.warmup_steps:
            self.collector.play(None, 1.0)
            return
        epsilon = between(args.epsilon, self.share / args.epsilon_until)
        with torch.no_grad():
            seen = {n: torch.from_numpy(x) for n, x in self.roster.see(self.collector.sim).items()}
            values = self.fast.utilities(seen).numpy()
        self.collector.play(values, epsilon)

    def learn(self) -> None:
        """The gradient steps that follow a decision of all lanes."""
        args = self.args
        if self.collector.steps < args.warmup_steps:
            return
        if self.updates == 0:
            self.standardise()
        for group in self.optimizer.param_groups:
            group["lr"] = between(args.learning_rate, self.share)
        slow, fast = list(self.slow.parameters()), list(self.fast.parameters())
        for _ in range(args.updates):
            batch = self.replay.sample(self.rng, args.batch_size)
            loss = td_loss(self.fast, self.slow, batch, args.gamma, args.double)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(fast, args.max_gradient_norm)
            self.optimizer.step()
            with torch.no_grad():
                for follower, leader in zip(slow, fast, strict=True):
                    follower.lerp_(leader, args.tau)
            self.updates += 1
            self.loss = float(loss.detach())

    def standardise(self) -> None:
        """Scales the inputs by what was seen at random play, in the weights and in those that follow."""
        filled = self.replay.filled
        seen = {n: flat_rows(self.replay.arrays[f"see.{n}"][:filled]) for n in self.roster.slots}
        for learner in (self.fast, self.slow):
            learner.utilities.standardise(seen)

    def evaluate(self) -> dict[str, float]:
        """Judges the slow weights, writes log, weights and checkpoint."""
        weights = self.slow.utilities.arrays()
        figures = self.judge(lambda team: UtilityPlayer(weights, self.roster.game, team))
        row = {
            "steps": self.collector.steps,
            "updates": self.updates,
            **figures,
            "loss": self.loss,
            "cpu_s": self.cpu_s,
        }
        self.log.write(row)
        self.rows.append(row)
        facts = {"steps": self.collector.steps, "updates": self.updates, "figures": figures}
        env_id, settings = self.args.env_id, self.args.settings
        path = self.args.folder / "last.safetensors"
        save_utilities(path, self.slow.utilities, method=self.method, env_id=env_id, args=settings, **facts)
        unfinished = self.args.folder / "checkpoint.part"
        torch.save(self.state(), unfinished)
        unfinished.replace(self.args.folder / "checkpoint.pt")
        return figures

    def state(self) -> dict[str, Any]:
        """Everything that decides how the run goes on."""
        return {
            "fast": self.fast.state_dict(),
            "slow": self.slow.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "replay": self.replay.state(),
            "collector": self.collector.state(),
            "rng": self.rng.bit_generator.state,
            "counts": (self.updates, self.loss, self.cpu_s, self.next_evaluation),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        for name in ("fast", "slow", "optimizer"):
            getattr(self, name).load_state_dict(state[name])
        self.replay.restore(state["replay"])
        self.collector.restore(state["collector"])
        self.rng.bit_generator.state = state["rng"]
        self.updates, self.loss, self.cpu_s, self.next_evaluation = state["counts"]


def run(args: LearningArgs, method: str, make_mixer: Callable[[Roster], Any], judge: Judge | None = None) -> Report:
    """Trains a method, or goes on training it.

    Files of the run, in `LearningArgs.folder`: ``log.csv`` (a row per evaluation), ``last.safetensors`` and
    ``checkpoint.pt``, from which a run goes on to the bit.

    Args:
        args: Of the run.
        method: Its name in the entry-point group ``palaestra.baselines``.
        make_mixer: ``make_mixer(roster)`` gives the `Mixer`.
        judge: What evaluations measure; matches against the script ``args.opponent`` if None.
    """
    training = Training(args, method, make_mixer, judge)
    collector, interval = training.collector, max(args.total_steps // args.evaluations, 1)
    with Progress(f"{method}, seed {args.seed}", args.total_steps, collector.steps, args.quiet) as progress:
        while True:
            steps = collector.steps
            if steps >= training.next_evaluation:
                training.next_evaluation = (steps // interval + 1) * interval
                figures = training.evaluate()
                progress.say(f"{steps:9d} decisions: " + "  ".join(f"{k} {v:.3g}" for k, v in figures.items()))
                if steps >= args.total_steps:
                    break
            began_s = time.process_time()
            training.play()
            training.learn()
            training.cpu_s += time.process_time() - began_s
            progress.update(collector.steps, loss=training.loss)
    collector.sim.close()
    return Report(args.folder / "last.safetensors", collector.steps, training.updates, training.cpu_s, training.rows)


def flat_rows(array: np.ndarray) -> np.ndarray:
    """``[rows, lanes, ...]`` as ``[rows * lanes, ...]``."""
    return array.reshape(-1, *array.shape[2:])


def between(ends: tuple[float, float], share: float) -> float:
    """Goes from the first to the second number linearly; stays there when ``share`` is over 1."""
    return ends[0] + (ends[1] - ends[0]) * min(share, 1.0)


def judge_by_script(args: LearningArgs, roster: Roster, player_of: Callable[[str], Opponent]) -> dict[str, float]:
    """Share of matches won against the script, half of them as each team: of all, and as each team where it matters."""
    if not args.opponent:
        return {}
    (first, second), matches = roster.game.teams, args.matches // 2
    options = {"matches": matches, "seed": JUDGE_SEED, "num_envs": matches, "swap": False, **keywords(args.options)}
    shares = {
        first: evaluate(args.env_id, player_of(first), args.opponent, **options).wins / matches,
        second: evaluate(args.env_id, args.opponent, player_of(second), **options).losses / matches,
    }
    both = {"win_rate": sum(shares.values()) / 2}
    return both if roster.alike else {**both, **{f"win_rate_{team}": share for team, share in shares.items()}}
