"""PPO of Stable-Baselines3 as a method of the figures: the agents of a team share the weights of policy and value.

A row of `palaestra.adapters.sb3` is one agent of a lane. Its value is that of its own observation, its reward the
team's. Observations are scaled by their running mean and deviation, up to 10 deviations. A decision of a lane counts
once, however many agents decide.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize

from palaestra import registry
from palaestra.adapters.sb3 import as_vec_env
from palaestra.core.run.snapshot import Snapshot
from palaestra.evaluation import evaluate
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster, keywords
from palaestra_baselines.common.flat_networks import GreedyPlayer
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for, save_policy
from palaestra_baselines.common.rollout import check_rules
from palaestra_baselines.common.run_folder import WEIGHTS, RunFolder
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, LaneArgs, Report, linear_schedule

METHOD = "sb3_ppo"


@dataclass
class Args(LaneArgs):
    """Arguments of PPO, beside those of `LaneArgs`.

    Attributes:
        rollout: Decisions of each lane between two updates.
        epochs: Passes over a rollout.
        minibatches: Gradient steps of an epoch.
        clip: How far an update may change the probability of an action.
        gae_lambda: Decay of generalised advantage estimation.
        entropy: Coefficient of the entropy, at the start and at the end; falls linearly.
        deviation: Standard deviation of the numbers before the training; their range is [-1, 1].
        reward_scale: Rewards are multiplied by it before they are learnt.
        normalise: Whether observations are scaled by their running mean and deviation.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "clip", "gae_lambda")

    env_id: str = "palaestra/QuadPushBox-v0"
    team: str = "robot"
    opponent: str = ""
    total_steps: int = 50_000
    evaluations: int = 10
    matches: int = 64
    lanes: int = 32
    rollout: int = 64
    epochs: int = 10
    minibatches: int = 16
    clip: float = 0.2
    gae_lambda: float = 0.95
    entropy: tuple[float, float] = (0.0, 0.0)
    learning_rate: tuple[float, float] = (3e-4, 3e-5)
    max_gradient_norm: float = 0.5
    deviation: float = 0.5
    reward_scale: float = 1.0
    normalise: bool = True
    directory: Path = Path("runs/sb3_ppo")

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be, or a game whose agents differ or have opponents; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **keywords(self.options))
        if list(game.teams) != [self.team] or len(game.roles) != 1 or self.opponent:
            raise ValueError(
                f"{game.name} has the teams {', '.join(game.teams)} and the roles "
                f"{', '.join(role.name for role in game.roles)}, got --team {self.team!r}, --opponent "
                f"{self.opponent!r}: this PPO learns the only team of a game, of one role, without an opponent"
            )
        if not Roster(game, [self.team], numbers=True).gives_numbers:
            raise ValueError(f"{game.name}: agents make choices, and this PPO learns real numbers alone")
        samples = self.lanes * self.rollout * len(game.agents)
        if samples % self.minibatches:
            raise ValueError(
                f"--minibatches must divide the {samples} decisions of agents of a rollout, got {self.minibatches}"
            )


class Lanes(VecEnvWrapper):
    """Lanes that go on from rollout to rollout: matches start in the first `reset` alone.

    Stable-Baselines3 resets its environment in each call of ``learn``.

    Attributes:
        sim: The simulation.
        statistics: Mean and deviation of observations; None where they are not scaled.
    """

    def __init__(self, args: Args) -> None:
        """No match has started."""
        vec = as_vec_env(args.env_id, args.lanes, agents="rows", team=args.team, **keywords(args.options))
        self.sim, self._rows, self._reward_scale = vec.sim, vec.rows, args.reward_scale
        self._normalised = VecNormalize(vec, norm_reward=False) if args.normalise else None
        self.statistics: Any = self._normalised.obs_rms if self._normalised else None
        super().__init__(self._normalised or vec)

    def reset(self) -> Any:
        """Starts the matches, or shows where they are."""
        if not self.sim.started:
            return self.venv.reset()
        seen: Any = self._rows.observe()
        if self._normalised is None:
            return seen
        self._normalised.old_obs = seen  # Stable-Baselines3 reads it; after `restore` there is none
        return self._normalised.normalize_obs(seen)

    def step_wait(self) -> Any:
        """Plays one decision; rewards are scaled."""
        seen, rewards, ends, infos = self.venv.step_wait()
        return seen, self._reward_scale * rewards, ends, infos

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        found: dict[str, Any] = {}
        if self.statistics is not None:
            found |= {"mean": self.statistics.mean, "var": self.statistics.var, "count": float(self.statistics.count)}
        if self.sim.started:
            snapshot = self.sim.snapshot()
            found |= {
                "rules": self.sim.rules,
                "states": snapshot.states.view(np.uint8).reshape(self.sim.num_envs, -1),
                "lane_seeds": snapshot.lane_seeds,
                "memories": snapshot.memories,
                "engine": snapshot.engine,
            }
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned.

        Raises:
            ValueError: The matches were played by other rules, or do not fit these lanes.
        """
        if self.statistics is not None:
            self.statistics.mean, self.statistics.var = np.array(state["mean"]), np.array(state["var"])
            self.statistics.count = state["count"]
        if "states" in state:
            check_rules(self.sim, state["rules"])
            states = np.ascontiguousarray(state["states"]).view(self.sim.game.state_dtype)[:, 0]
            arrays = (states, state["lane_seeds"], state["memories"], state["engine"])
            self.sim.restore(Snapshot(self.sim.game.name, self.sim.rules, *arrays))


def make_model(args: Args, lanes: Lanes) -> PPO:
    """PPO of random weights."""
    model = PPO(
        "MlpPolicy",
        lanes,
        n_steps=args.rollout,
        batch_size=lanes.num_envs * args.rollout // args.minibatches,
        n_epochs=args.epochs,
        gamma=args.gamma,
        gae_lambda=args.gae_lambda,
        clip_range=args.clip,
        max_grad_norm=args.max_gradient_norm,
        seed=args.seed,
        device="cpu",
        policy_kwargs={"net_arch": list(args.hidden)},
    )
    space, policy = lanes.action_space, model.policy
    half: Any = (space.high - space.low) / 2.0  # type: ignore[attr-defined]
    with torch.no_grad():
        policy.log_std.copy_(torch.from_numpy(np.log(args.deviation * half)))  # type: ignore[operator]
    return model


# ------------------------------------------------------------------------------------------------------------- player


class MeanPlayer(GreedyPlayer):
    """Plays the means of the policy, clipped to their ranges: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        memory_size: 0, the player is memoryless.
    """

    memory_size = 0

    def __init__(self, arrays: Mapping[str, np.ndarray], game: Game, team: str) -> None:
        """Reads the weights.

        Args:
            arrays: As `policy_arrays` gives them.
            game: The rules.
            team: Name of the team.

        Raises:
            ValueError: The weights were made for another game.
        """
        roster = Roster(game, [team], numbers=True)
        super().__init__(roster)
        ((self._role, size),) = roster.sizes.items()
        self._layers = [(weight.T, bias) for weight, bias in arrays_to_layers(arrays)]
        self._statistics = [arrays[name] for name in ("mean", "deviation", "bound") if name in arrays]
        found = (len(self._layers[0][0]), len(self._layers[-1][1]))
        if found != (size, roster.actions):
            raise ValueError(
                f"the policy sees {found[0]} numbers and gives {found[1]}; {team} of {game.name} sees {size} and gives "
                f"{roster.actions}"
            )

    def means(self, observations: np.ndarray) -> np.ndarray:
        """Means ``[n, A, K]`` of numbers whose ranges are scaled to [-1, 1], of observations ``[n, A, I]``."""
        hidden = observations
        if self._statistics:
            mean, deviation, bound = self._statistics
            hidden = np.clip((hidden - mean) / deviation, -bound, bound).astype(np.float32)
        for weight, bias in self._layers[:-1]:
            hidden = np.tanh(hidden @ weight + bias)
        weight, bias = self._layers[-1]
        return hidden @ weight + bias

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        return self.best(self._role, self.means(observations), None)


def policy_arrays(model: PPO, lanes: Lanes) -> dict[str, np.ndarray]:
    """Layers of the means, of ranges scaled to [-1, 1], and the scale of observations by now: all copies."""
    policy: Any = model.policy
    layers = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)] + [policy.action_net]
    arrays: dict[str, np.ndarray] = {}
    for number, layer in enumerate(layers):
        parts = {"weight": layer.weight, "bias": layer.bias}
        arrays |= {f"layer_{number}.{name}": part.detach().numpy().copy() for name, part in parts.items()}
    space: Any = lanes.action_space
    middle, half = (space.high + space.low) / 2.0, (space.high - space.low) / 2.0
    last = f"layer_{len(layers) - 1}"
    arrays[f"{last}.bias"] = (arrays[f"{last}.bias"] - middle) / half
    arrays[f"{last}.weight"] /= half[:, None]
    if isinstance(lanes.venv, VecNormalize):
        arrays["mean"] = lanes.statistics.mean.copy()
        arrays["deviation"] = np.sqrt(lanes.statistics.var + lanes.venv.epsilon)
        arrays["bound"] = np.array(lanes.venv.clip_obs)
    return arrays


def load_policy(path: Path, game: Game, team: str) -> MeanPlayer:
    """The player of a policy file.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return MeanPlayer(arrays, game, team)


# ----------------------------------------------------------------------------------------------------------- training


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    The draws of a rollout start from the seed and the number of decisions before it: a resumed run goes on bitwise as
    it would have.

    Args:
        args: Arguments of the run.
        evaluation: What evaluations measure; the mean return if None.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        lanes = Lanes(args)
        model, steps, updates, cpu_s = make_model(args, lanes), folder.steps, 0, 0.0
        lanes.seed(args.seed << 32)
        if folder.before:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
                lanes.restore(folder.before["lanes"])
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        while True:
            if folder.is_due(steps):
                counts = {"steps": steps, "updates": updates}
                figures = record(args, folder, model, lanes, evaluation, counts, cpu_s)
                folder.progress.say(f"{steps:9d} decisions: {figures}")
            if steps >= args.total_steps:
                break
            began_s, share = time.process_time(), steps / args.total_steps
            set_random_seed((args.seed * 1_000_003 + steps) % 2**32)
            rate, model.ent_coef = linear_schedule(args.learning_rate, share), linear_schedule(args.entropy, share)
            model.lr_schedule = lambda _, rate=rate: rate
            model.learn(lanes.num_envs * args.rollout)
            steps += args.lanes * args.rollout
            updates += args.epochs * args.minibatches
            cpu_s += time.process_time() - began_s
            folder.progress.update(steps)
        lanes.close()
    last = folder.rows[-1]
    return Report(args.folder / WEIGHTS, steps, int(last["updates"]), last["cpu_s"], folder.rows)


def record(
    args: Args,
    folder: RunFolder,
    model: PPO,
    lanes: Lanes,
    evaluation: Evaluation | None,
    counts: Mapping[str, int],
    cpu_s: float,
) -> dict[str, float]:
    """Evaluates, and writes policy, curve and checkpoint; returns what the evaluation measured."""
    arrays = policy_arrays(model, lanes)
    player = MeanPlayer(arrays, lanes.sim.game, args.team)
    figures = evaluation(lambda _: player) if evaluation else mean_return(args, player)
    facts = {"args": args.settings, "figures": figures, **counts}
    save_policy(args.folder / WEIGHTS, arrays, method=METHOD, env_id=args.env_id, **facts)
    state = {"model": model.get_parameters(), "lanes": lanes.state(), "updates": counts["updates"], "cpu_s": cpu_s}
    folder.record({**counts, **figures, "cpu_s": cpu_s}, state if counts["steps"] < args.total_steps else None)
    return figures


def mean_return(args: Args, player: MeanPlayer) -> dict[str, float]:
    """Mean return in matches that no training plays."""
    options: dict[str, Any] = {"matches": args.matches, "num_envs": args.matches, "seed": EVALUATION_SEED}
    table = evaluate(args.env_id, player, **options, **keywords(args.options))
    return {"return": float(table.results["return_a"].mean())}
