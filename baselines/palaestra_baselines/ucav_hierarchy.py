"""Hierarchical pilots by fictitious self-play: the outer loop of the UCAV family.

Chai, Chen, Zhu, Yao and Zhao, "A Hierarchical Deep RL Framework for 6-DOF UCAV Air-to-Air Combat" (arXiv 2212.03830):
an outer loop chooses what to do, an inner loop that is frozen flies it, and the outer loop learns by fictitious
self-play against the history of its strategies; its win rate rises from generation to generation. States, actions,
rewards, networks and numbers are not public: all of them are ours here.

* The outer loop decides five times a second by the aim commands of ``palaestra/UcavDogfight-Contest-v2``: where the
  nose is to point relative to the other aircraft, and how fast to fly. All zeros is pure pursuit at corner speed, with
  which every learner starts. The inner loop is the law with which the scripts point.
* The league is `palaestra_baselines.common.league`: scripts in a share of the lanes, the generations before in the
  others.
* ``--learner es`` (default) is the evolution strategy of `palaestra_baselines.common.evolution` on a linear policy:
  it explores by weights that stay the same through a match. ``--learner ppo`` is Stable-Baselines3's PPO, as in the
  paper, which explores anew in each decision; it flies red.
* The evolution strategy maximises health dealt less health lost, and one for an end by rule, over a minute; PPO gets
  what ``--training-options`` say, such as the shaping of ``palaestra/UcavDogfight-v2``.

::

    palaestra train ucav_hierarchy --seed 1
    palaestra train ucav_hierarchy --anchor-share 1                                # scripts alone, no self-play
    palaestra train ucav_hierarchy --anchor-share 0 --draw latest --latest-share 1  # its last self alone
    palaestra train ucav_hierarchy --learner ppo --options commands=stick          # a flat pilot
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnvWrapper

import palaestra
from palaestra import registry
from palaestra.adapters.sb3 import as_vec_env
from palaestra.core.run.opponents import Opponent, OpponentSpec
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation.matches import match_seeds, play_seeds, without_shaping
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster, gives_numbers, keywords, one_team_roster
from palaestra_baselines.common.evolution import TINY, ChoicePlayer, Evolution, Shape, observed_columns, play_members
from palaestra_baselines.common.league import LeagueArgs, Opponents, train_league
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for
from palaestra_baselines.common.run_folder import evaluation_hint, run_command
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report, linear_schedule
from palaestra_baselines.poisson_ppo import make_ppo
from palaestra_baselines.ppo_tracking import perceptron_player
from palaestra_baselines.ucav_pursuit import policy_arrays

METHOD, GAME = "ucav_hierarchy", "UcavDogfight"
SEEN = (
    *("height_over_floor", "roll", "pitch", "airspeed", "load_factor", "health"),
    *("direction", "relative_velocity", "range", "gun_range", "closure", "train_angle", "aspect_angle", "other_nose"),
    *("other_airspeed", "altitude_difference", "energy_difference", "other_health"),
)
"""Fields of the observation that the linear policy sees."""
MEASURED = 64
"""Matches between scripts in which means and deviations of the observation are measured."""
CONSTANT = 1e-6
"""A number of smaller deviation does not change."""


@dataclass
class Args(LeagueArgs):
    """Arguments, beside those of `LeagueArgs`; with ``--learner es`` those of PPO have no effect, and conversely.

    Attributes:
        learner: ``es`` or ``ppo``.
        seen: Evolution: fields of the observation that the policy sees; all if none is named.
        action_scales: Evolution: how far a weight of 1 moves each number of the action; one for all, or one each.
        pairs: Evolution: pairs of members.
        trials: Evolution: matches of a member in an update.
        sigma: Evolution: standard deviation of the weights of the members.
        learning_rate: Of Adam, at the start and at the end; falls linearly.
        lanes: PPO: matches at once.
        rollout: PPO: decisions of each lane between two updates.
        minibatches: PPO: gradient steps of an epoch.
        epochs: PPO: passes over a rollout.
        gamma: PPO: discount per decision.
        gae_lambda: PPO: decay of generalised advantage estimation.
        clip: PPO: how far an update may change the probability of an action.
        max_gradient_norm: PPO: longer gradients are clipped to this norm.
        std: PPO: standard deviation of the first actions.
    """

    SHARES: ClassVar[tuple[str, ...]] = (*LeagueArgs.SHARES, "gamma", "gae_lambda", "clip")
    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LeagueArgs.MAY_BE_ZERO, "seen")

    env_id: str = "palaestra/UcavDogfight-Contest-v2"
    options: tuple[str, ...] = ("commands=aim",)
    anchor_options: tuple[str, ...] = ("blue_commands=stick",)
    training_options: tuple[str, ...] = ("duration_s=60",)
    anchors: tuple[str, ...] = ("pure_pursuit", "lag_pursuit", "lead_pursuit", "expert")
    total_steps: int = 40_000_000
    evaluations: int = 5
    directory: Path = Path("runs/ucav_hierarchy/{env_id}")
    learner: Literal["es", "ppo"] = "es"
    seen: tuple[str, ...] = SEEN
    action_scales: tuple[float, ...] = (1.0, 0.4, 0.4, 0.15)
    pairs: int = 48
    anchor_share: float = 0.75
    trials: int = 8
    sigma: float = 0.05
    learning_rate: tuple[float, float] = (0.01, 0.002)
    lanes: int = 128
    rollout: int = 128
    minibatches: int = 8
    epochs: int = 4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    max_gradient_norm: float = 0.5
    std: float = 0.1

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **self.rules)
        if not game.symmetric_teams and self.anchor_share < 1.0:
            raise ValueError(f"generations play either team, and those of {game.name} are not alike: --anchor-share 1")
        if self.lanes * self.rollout % self.minibatches:
            raise ValueError(
                f"--minibatches must divide the {self.lanes * self.rollout} decisions of a rollout, "
                f"got {self.minibatches}"
            )

    def rate(self, generation: int, share: float) -> float:
        """Learning rate after a share of the decisions of a generation, the first of which is 1."""
        return linear_schedule(self.learning_rate, (generation - 1 + min(share, 1.0)) / self.evaluations)

    @property
    def training_rules(self) -> dict[str, Any]:
        """Keywords of the game in training."""
        return {**self.rules, **keywords(self.training_options)}


# ------------------------------------------------------------------------------------------------ evolution strategy


@dataclass(frozen=True)
class Arena:
    """Lanes of the evolution strategy in which its members play one team.

    Attributes:
        sim: The lanes of the first member, those of the second, and so on.
        roster: The learning agents.
        own: Their team.
        other: The opponents' team.
        opponents: Who plays it.
        per_member: Lanes of a member.
    """

    sim: Simulation
    roster: Roster
    own: str
    other: str
    opponents: Opponents
    per_member: int

    def play(self, shape: Shape, members: np.ndarray, seeds: np.ndarray, update: int) -> tuple[np.ndarray, int]:
        """One match of each member in each of its lanes, as of `play_members`; scripts change with each update."""
        places = np.arange(self.sim.num_envs) % self.per_member
        self.opponents.assign(self.sim, self.other, places, self.per_member, update * self.per_member)
        own_seeds = seeds[: self.per_member]
        return play_members(self.sim, self.roster, self.own, shape, members, own_seeds, self.opponents.watch)


class EvolutionLearner:
    """The evolution strategy as a `palaestra_baselines.common.league.Learner`."""

    def __init__(self, args: Args) -> None:
        """Starts with weights whose actions are all zeros.

        Raises:
            ValueError: Arguments that do not fit the game; names the option.
        """
        self.args = args
        self.shape = self._measured_shape()
        self.search = Evolution(self.shape.start(np.random.default_rng([args.seed, 0])))

    def _measured_shape(self) -> Shape:
        """Scales of what the policy sees, from matches between the anchors: the same for each seed."""
        args = self.args
        sim = palaestra.make_batch(args.env_id, MEASURED, autoreset_mode="off", **args.training_rules)
        roster = one_team_roster(Roster, sim.game, next(iter(sim.game.teams)), numbers=True)
        for place, anchor in enumerate(args.anchors):
            for team in sim.game.teams:
                sim.set_opponent(team, anchor, np.arange(MEASURED) % len(args.anchors) == place)
        sim.reset(seed=EVALUATION_SEED << 32)
        (role,), rows = roster.columns, []
        running = np.ones(MEASURED, np.bool_)
        while running.any():
            rows.append(roster.read_observations(sim)[role][running].reshape(-1, roster.sizes[role]).copy())
            sim.step()
            running &= ~(sim.terminated | sim.truncated)
        sim.close()
        columns = observed_columns(roster, args.seen)
        seen = np.concatenate(rows)[:, columns].astype(np.float64)
        deviations = seen.std(axis=0)
        scales = args.action_scales * (roster.actions if len(args.action_scales) == 1 else 1)
        if len(scales) != roster.actions:
            raise ValueError(
                f"--action-scales: one number, or one for each of the {roster.actions} of an action, got {len(scales)}"
            )
        deviations[deviations < CONSTANT] = 1.0
        return Shape(columns, seen.mean(axis=0), deviations, args.hidden, np.array(scales), roster.sizes[role])

    def arenas(self, opponents: Opponents) -> list[Arena]:
        """Lanes against scripts and lanes against generations, in which each team is played as often."""
        args = self.args
        scripts = opponents.script_places(args.trials)
        kinds = (
            (scripts, opponents.scripts_alone, keywords(args.anchor_options)),
            (args.trials - scripts, opponents.generations_alone, {}),
        )
        made = []
        for trials, players, more in kinds:
            game, _ = registry.make_game(args.env_id, **args.rules, **more)
            teams = list(game.teams)
            sides = [teams, teams[::-1]] if game.symmetric_teams else [teams]
            for own, other in sides if trials else ():
                per_member = -(-trials // len(sides))
                lanes, rules = 2 * args.pairs * per_member, {**args.training_rules, **more}
                sim = palaestra.make_batch(args.env_id, lanes, autoreset_mode="off", **rules)
                roster = one_team_roster(Roster, sim.game, own, numbers=True)
                made.append(Arena(sim, roster, own, other, players, per_member))
        return made

    def train(self, opponents: Opponents, generation: int, decisions: int, report: Callable[[int], None]) -> int:
        """See `palaestra_baselines.common.league.Learner`."""
        args, played, update = self.args, 0, 0
        rng = np.random.default_rng([args.seed, generation])
        arenas = self.arenas(opponents)
        while played < decisions:
            members = self.search.draw(rng, args.pairs, args.sigma)
            seeds = rng.integers(1 << 48, size=args.trials, dtype=np.uint64)
            parts = [arena.play(self.shape, members, seeds, update) for arena in arenas]
            played += sum(count for _, count in parts)
            returns = np.concatenate([returns for returns, _ in parts], axis=1).mean(axis=1)
            self.search.learn(members, returns, args.rate(generation, played / decisions))
            update += 1
            report(played)
        for arena in arenas:
            arena.sim.close()
        return played

    def arrays(self) -> dict[str, np.ndarray]:
        """The policy of the averaged weights."""
        return self.shape.arrays(self.search.average)

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        return self.search.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned."""
        self.search.restore(state)


# ---------------------------------------------------------------------------------------------------------------- PPO


class Lanes(VecEnvWrapper):
    """Matches that go on from rollout to rollout: Stable-Baselines3 resets in each ``learn``."""

    opponents: Opponents

    def __init__(self, args: Args) -> None:
        """No match yet."""
        vec = as_vec_env(args.env_id, args.lanes, team="red", **args.training_rules)
        super().__init__(vec)
        self.sim, self._rows = vec.sim, vec.rows

    def begin(self, opponents: Opponents, seed: int) -> None:
        """Starts the matches of a generation."""
        self.opponents = opponents
        lanes = np.arange(self.num_envs)
        opponents.assign(self.sim, list(self.sim.game.teams)[1], lanes, len(lanes))
        self.venv.seed(seed)
        self.venv.reset()

    def reset(self) -> Any:
        """Shows where the matches are."""
        return self._rows.observe()

    def step_wait(self) -> Any:
        """Plays one decision."""
        results = self.venv.step_wait()
        self.opponents.watch(self.sim)
        return results


class PpoLearner:
    """Stable-Baselines3's PPO as a `palaestra_baselines.common.league.Learner`; a generation starts new matches."""

    def __init__(self, args: Args) -> None:
        """Starts with random weights, or near zeros where the commands are aims: zeros are pure pursuit there."""
        torch.set_num_threads(1)
        self.args, self.lanes = args, Lanes(args)
        self.lanes.begin(Opponents(args.anchors, 1.0, {}), 0)
        self.model = make_ppo(args, "MlpPolicy", self.lanes, log_std_init=float(np.log(args.std)))
        self.steps = 0

    def train(self, opponents: Opponents, generation: int, decisions: int, report: Callable[[int], None]) -> int:
        """See `palaestra_baselines.common.league.Learner`."""
        args, played = self.args, 0
        self.lanes.begin(opponents, (args.seed << 32) + (generation << 20))
        while played < decisions:
            set_random_seed((args.seed * 1_000_003 + self.steps) % 2**32)
            rate = args.rate(generation, played / decisions)
            self.model.lr_schedule = lambda _, rate=rate: rate
            self.model.learn(args.lanes * args.rollout)
            played += args.lanes * args.rollout
            self.steps += args.lanes * args.rollout
            report(played)
        return played

    def arrays(self) -> dict[str, np.ndarray]:
        """The mean of the policy."""
        return policy_arrays(self.model)

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint: copies, since the model goes on learning in its own arrays."""
        return {"model": copy.deepcopy(self.model.get_parameters()), "steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned."""
        self.model.set_parameters(state["model"], device="cpu")
        self.steps = int(state["steps"])


LEARNERS = {"es": EvolutionLearner, "ppo": PpoLearner}


# -------------------------------------------------------------------------------------------------------------- funnel


def funnel(args: Args, player: OpponentSpec, opponent: OpponentSpec, matches: int = 256) -> dict[str, float]:
    """What comes of the chances of red, in matches that no training plays.

    Args:
        args: Environment and keywords.
        player: Flies red.
        opponent: Flies blue.
        matches: Number of matches, all at once.

    Returns:
        ``opportunities``: how often it came near a shot, a match; ``cone_s``: seconds with the other inside the cone, a
        match; ``damage``: health that the gun took per opportunity; ``rear``, ``front``: shares of that from within 60
        degrees of the tail and from ahead; ``end_<reason>``: shares of the matches.
    """
    game, _ = registry.make_game(args.env_id, **args.anchor_rules)
    opponents = dict(zip(game.teams, (player, opponent), strict=True))
    rules = without_shaping(game, args.anchor_rules)
    sim = palaestra.make_batch(args.env_id, matches, autoreset_mode="off", opponents=opponents, **rules)
    play_seeds(sim, match_seeds(EVALUATION_SEED, range(matches)), 0)
    info, reasons = sim.info, sim.info["end_reason"]
    chances, dealt = info["opportunities"][:, 0].sum(), info["gun_damage"][:, 0].sum()
    by_aspect = info["aspect_damage"][:, 0].sum(axis=0) / max(dealt, TINY)
    figures = {
        "opportunities": chances / matches,
        "cone_s": info["cone_seconds"][:, 0].mean(),
        "damage": dealt / max(chances, 1),
        "rear": by_aspect[0],
        "front": by_aspect[2],
    }
    ends = {f"end_{game.end_reason(k)}": (reasons == k).mean() for k in range(1, 2 + len(game.end_reasons))}
    sim.close()
    return {name: float(value) for name, value in {**figures, **ends}.items()}


# ------------------------------------------------------------------------------------------------------------ training


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """Player of a saved policy; called by `palaestra.core.run.opponents.load_policy`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        if gives_numbers(game, game.teams[team]):
            return perceptron_player(arrays, game, team)
        return ChoicePlayer(arrays_to_layers(arrays), game, team)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.common.league.train_league`.

    Args:
        args: Arguments of the run.
        evaluation: Measures further columns of the curve; `funnel` against the last of the anchors if None, in games
            that say what came of a chance.
    """
    torch.set_num_threads(1)
    return train_league(args, METHOD, LEARNERS[args.learner], evaluation or partial(funnel_of, args))


def funnel_of(args: Args, player_of: Callable[[str], Opponent]) -> dict[str, float]:
    """The columns of `funnel`; none in other games."""
    game, _ = registry.make_game(args.env_id, **args.rules)
    if game.name != GAME:
        return {}
    return funnel(args, player_of(next(iter(game.teams))), args.anchors[-1], args.matches)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains a league."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    print(report)
    print(evaluation_hint(args, report.weights, args.anchors[-1]))


__all__ = ["Args", "load_policy", "main", "train"]

if __name__ == "__main__":
    main()
