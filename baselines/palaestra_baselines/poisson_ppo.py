"""PPO of Stable-Baselines3 with Poisson, ordinal, categorical and Gaussian policies of continuous actions.

"Discretizing Continuous Action Space with Unimodal Probability Distributions for On-Policy Reinforcement Learning"
(arXiv 2408.00309) cuts each dimension of an action into K atoms and chooses them by a Poisson distribution that is cut
off, so that the policy stays unimodal. Its code is not public. The heads stand in
`palaestra_baselines.common.ordered_heads`; PPO itself (Schulman et al., arXiv 1707.06347) is Stable-Baselines3's. All
heads have the same networks and start with equally wide first actions.

It learns any Gymnasium environment with a bounded Box of actions, and the only team of a game of ours, whose agents
share policy and value: a row of the batch is one agent, its value that of its own observation, its reward the team's,
and a decision of a lane counts once, however many agents decide. The third command
learns the same body on the batch engine of `palaestra.games.robots`::

    python -m palaestra_baselines.poisson_ppo --env-id HalfCheetah-v5 --head poisson
    python -m palaestra_baselines.poisson_ppo --env-id UcavTrack --head gaussian --lanes 64 --directory runs/flight
    python -m palaestra_baselines.poisson_ppo --env-id MaHalfCheetah --options "parts='1'" --directory runs/body
    palaestra eval UcavTrack --a runs/flight/seed_0/last.safetensors

Observations are scaled by their running mean and deviation, up to 10 deviations. The curve has two returns:
``training_return`` of the matches that ended since the row before, whose actions are sampled, and ``return`` of an
evaluation, in which the most probable atoms, or the means, are played.

A resumed run of our games goes on bitwise as it would have. Environments of Gymnasium cannot be saved: there a resumed
run starts new episodes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from palaestra import registry
from palaestra.adapters.sb3 import as_vec_env
from palaestra.console import find_id
from palaestra.evaluation import evaluate
from palaestra.game import Game
from palaestra_baselines.common.agents import Roster, keywords
from palaestra_baselines.common.flat_networks import GreedyPlayer
from palaestra_baselines.common.gymnasium_envs import make_gymnasium, play_gymnasium
from palaestra_baselines.common.ordered_heads import (
    HEADS,
    LEAST_LAMBDA,
    TAU_MODES,
    Atoms,
    AtomVecEnv,
    OrderedHead,
    OrderedPolicy,
)
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for, read_policy, save_policy
from palaestra_baselines.common.rollout import matches_state, restore_matches
from palaestra_baselines.common.run_folder import WEIGHTS, RunFolder, evaluation_hint, run_command
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, LaneArgs, Report, linear_schedule

METHOD = "poisson_ppo"
GAUSSIAN = "gaussian"
ALL_HEADS = (*HEADS, GAUSSIAN)


def find_environment(text: str) -> str:
    """The id of a text: an environment of Gymnasium in full, or one of ours as `palaestra.console.find_id` finds it.

    Raises:
        KeyError: No such environment; suggests the near one.
    """
    return text if text in gymnasium.registry and text not in registry.ROWS else find_id(text)


@dataclass
class Args(LaneArgs):
    """Arguments, beside those of `LaneArgs`.

    Attributes:
        head: ``poisson``, ``poisson_mirrored``, ``ordinal`` or ``categorical``, of atoms, or ``gaussian``, of numbers.
        atoms: Atoms per dimension of the action; the Gaussian head has none.
        tau: Temperature of the Poisson heads: ``learnt``, ``fixed`` at 1, or ``annealed``.
        start_std: Standard deviation of the first actions in half ranges; with ``fixed`` tau it follows from the atoms.
        rollout: Decisions of each lane between two updates.
        epochs: Passes over a rollout.
        minibatches: Gradient steps of an epoch.
        clip: How far an update may change the probability of an action.
        gae_lambda: Decay of generalised advantage estimation.
        entropy: Coefficient of the entropy, at the start and at the end; falls linearly.
        reward_scale: Rewards are multiplied by it before they are learnt.
        normalise: Whether observations are scaled by their running mean and deviation.
        normalise_rewards: Whether rewards are divided by the running deviation of the discounted return.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "clip", "gae_lambda", "start_std")
    FIND_ID: ClassVar[Any] = staticmethod(find_environment)

    env_id: str = "HalfCheetah-v5"
    opponent: str = ""
    head: str = "poisson"
    atoms: int = 11
    tau: str = "learnt"
    start_std: float = 0.5
    total_steps: int = 300_000
    learning_rate: tuple[float, float] = (3e-4, 3e-5)
    evaluations: int = 20
    matches: int = 5
    lanes: int = 8
    rollout: int = 256
    epochs: int = 10
    minibatches: int = 32
    clip: float = 0.2
    gae_lambda: float = 0.95
    entropy: tuple[float, float] = (0.0, 0.0)
    max_gradient_norm: float = 0.5
    reward_scale: float = 1.0
    normalise: bool = True
    normalise_rewards: bool = True
    directory: Path = Path("runs/poisson_ppo/{env_id}")

    @property
    def is_ours(self) -> bool:
        """Whether the environment is a registered game."""
        return self.env_id in registry.ROWS

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be, an environment whose actions are not bounded numbers, or a game whose agents
                differ or have opponents; names the option.
        """
        super().check()
        for name, choices in (("head", ALL_HEADS), ("tau", TAU_MODES)):
            if getattr(self, name) not in choices:
                raise ValueError(f"--{name} is one of {', '.join(choices)}, got {getattr(self, name)!r}")
        if self.start_std in (0.0, 1.0):
            raise ValueError(f"--start-std lies between 0 and 1, got {self.start_std}")
        if self.atoms < 2:
            raise ValueError(f"--atoms must be at least 2, got {self.atoms}")
        agents = self._agents_of_game() if self.is_ours else self._agents_of_gymnasium()
        samples = self.lanes * self.rollout * agents
        if samples % self.minibatches:
            raise ValueError(
                f"--minibatches must divide the {samples} decisions of agents of a rollout, got {self.minibatches}"
            )

    def _agents_of_game(self) -> int:
        game, _ = registry.make_game(self.env_id, **keywords(self.options))
        if self.opponent or len(game.teams) != 1 or len(game.roles) != 1 or self.team not in ("", *game.teams):
            raise ValueError(
                f"{game.name} has the teams {', '.join(game.teams)} and the roles "
                f"{', '.join(role.name for role in game.roles)}, got --team {self.team!r}, --opponent "
                f"{self.opponent!r}: this PPO learns the only team of a game, of one role, without an opponent"
            )
        if not Roster(game, game.teams, numbers=True).gives_numbers:
            raise ValueError(f"{game.name}: agents make choices, and this PPO learns real numbers alone")
        return len(game.agents)

    def _agents_of_gymnasium(self) -> int:
        if self.team or self.opponent:
            raise ValueError(f"{self.env_id} has no teams, got --team {self.team!r}, --opponent {self.opponent!r}")
        env = make_gymnasium(self.env_id, self.options)
        try:
            Atoms(env.action_space, self.atoms)
            if not isinstance(env.observation_space, spaces.Box) or len(env.observation_space.shape) != 1:
                raise ValueError(f"this PPO learns from a Box of one dimension, got {env.observation_space}")
        except ValueError as error:
            raise ValueError(f"--env-id {self.env_id}: {error}") from error
        finally:
            env.close()
        return 1


class UnitVecEnv(VecEnvWrapper):
    """Scales the range of each number of an action to [-1, 1], in float32."""

    def __init__(self, venv: Any) -> None:
        """Takes the bounds of the environment."""
        box = venv.action_space
        super().__init__(venv, action_space=spaces.Box(-1.0, 1.0, box.shape))
        self._middle, self._half = (box.high + box.low) / 2.0, (box.high - box.low) / 2.0

    def reset(self) -> Any:
        """Resets all environments."""
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        """Scales the actions."""
        self.venv.step_async(self._middle + self._half * actions)

    def step_wait(self) -> Any:
        """Results of the step."""
        return self.venv.step_wait()


class Lanes(VecEnvWrapper):
    """Lanes that go on from rollout to rollout: matches start in the first `reset` alone.

    Stable-Baselines3 resets its environment in each call of ``learn``.

    Attributes:
        sim: The simulation of one of our games; None for an environment of Gymnasium.
        statistics: Mean and deviation of observations; None where they are not scaled.
        returns: Of the matches that ended since `take_returns`, as they were paid.
    """

    def __init__(self, args: Args) -> None:
        """No match has started."""
        if args.is_ours:
            vec = as_vec_env(args.env_id, args.lanes, agents="rows", **keywords(args.options))
            self.sim, self._rows = vec.sim, vec.rows
        else:
            vec = DummyVecEnv([lambda: make_gymnasium(args.env_id, args.options)] * args.lanes)
            self.sim = None
        acted = UnitVecEnv(vec) if args.head == GAUSSIAN else AtomVecEnv(vec, args.atoms)
        self._reward_scale, self._shown = args.reward_scale, None
        self._normalised = VecNormalize(
            acted, training=True, norm_obs=args.normalise, norm_reward=args.normalise_rewards, gamma=args.gamma
        )
        self.statistics: Any = self._normalised.obs_rms if args.normalise else None
        self.returns: list[float] = []
        super().__init__(self._normalised)
        self._running = np.zeros(self.num_envs)

    def reset(self) -> Any:
        """Starts the matches, or shows where they are."""
        if self.sim is not None and self.sim.started:
            self._normalised.old_obs = self._rows.observe()  # after `restore` it has none
        elif self._shown is None:
            self._shown = self.venv.reset()
            return self._shown
        return self._normalised.normalize_obs(self._normalised.old_obs)

    def step_wait(self) -> Any:
        """Plays one decision; rewards are scaled."""
        seen, rewards, ends, infos = self.venv.step_wait()
        self._running += self._normalised.old_reward
        self.returns += self._running[ends].tolist()
        self._running[ends] = 0.0
        return seen, self._reward_scale * rewards, ends, infos

    def take_returns(self) -> list[float]:
        """Returns of the matches that ended since the last call."""
        taken, self.returns = self.returns, []
        return taken

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        found: dict[str, Any] = {"running": self._running, "returns": self.returns}
        for name, rms in (("", self.statistics), ("reward_", self._normalised.ret_rms)):
            if rms is not None:
                found |= {f"{name}mean": rms.mean, f"{name}var": rms.var, f"{name}count": float(rms.count)}
        found["discounted"] = self._normalised.returns
        if self.sim is not None and self.sim.started:
            found |= matches_state(self.sim)
        return found

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores what `state` returned; environments of Gymnasium will start new episodes.

        Raises:
            ValueError: The matches were played by other rules, or do not fit these lanes.
        """
        self.returns = list(state["returns"])
        for name, rms in (("", self.statistics), ("reward_", self._normalised.ret_rms)):
            if rms is not None:
                rms.mean, rms.var = np.array(state[f"{name}mean"]), np.array(state[f"{name}var"])
                rms.count = state[f"{name}count"]
        if self.sim is not None and "states" in state:
            restore_matches(self.sim, state)
            self._running, self._normalised.returns = np.array(state["running"]), np.array(state["discounted"])


def make_model(args: Args, lanes: Lanes) -> PPO:
    """PPO of random weights."""
    if args.head == GAUSSIAN:
        return make_ppo(args, "MlpPolicy", lanes, log_std_init=float(np.log(args.start_std)))
    return make_ppo(args, OrderedPolicy, lanes, head=args.head, tau=args.tau, start_std=args.start_std)


def make_ppo(args: Any, policy: Any, lanes: VecEnv, **of_policy: Any) -> PPO:
    """Stable-Baselines3's PPO of random weights, with the hidden layers, rollouts and clipping of the arguments."""
    return PPO(
        policy,
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
        policy_kwargs={"net_arch": list(args.hidden), **of_policy},
    )


# ------------------------------------------------------------------------------------------------------------- player


class UnitPolicy:
    """Observations to the most probable action in NumPy, each number in [-1, 1].

    Attributes:
        inputs: Numbers of an observation.
        dimensions: D, numbers of an action.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Reads what `policy_arrays` gave.

        Raises:
            ValueError: Arrays are missing or do not fit each other.
        """
        self._layers = [(weight.T, bias) for weight, bias in arrays_to_layers(arrays)]
        if "head" not in arrays or "atoms" not in arrays:
            raise ValueError("the policy does not say what its head is")
        head, self._atoms = int(arrays["head"]), int(arrays["atoms"])
        if not 0 <= head < len(ALL_HEADS) or self._atoms < 2:
            raise ValueError(f"the policy has a head of number {head} with {self._atoms} atoms, which there is not")
        self._head = ALL_HEADS[head]
        self._statistics = [arrays[name] for name in ("mean", "deviation", "bound") if name in arrays]
        outputs = {"ordinal": self._atoms - 1, "categorical": self._atoms}.get(self._head, 1)
        self.inputs, (self.dimensions, left) = len(self._layers[0][0]), divmod(len(self._layers[-1][1]), outputs)
        if left:
            raise ValueError(f"the policy has {len(self._layers[-1][1])} outputs, {outputs} for each number")

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Numbers ``[..., D]`` of observations ``[..., inputs]``."""
        hidden = observations
        if self._statistics:
            mean, deviation, bound = self._statistics
            hidden = np.clip((hidden - mean) / deviation, -bound, bound).astype(np.float32)
        for weight, bias in self._layers[:-1]:
            hidden = np.tanh(hidden @ weight + bias)
        weight, bias = self._layers[-1]
        outputs = (hidden @ weight).astype(bias.dtype) + bias
        if self._head == GAUSSIAN:
            return np.clip(outputs, -1.0, 1.0)
        return self._mode(outputs) * 2.0 / (self._atoms - 1) - 1.0

    def _mode(self, outputs: np.ndarray) -> np.ndarray:
        """The most probable atoms ``[..., D]``."""
        if self._head.startswith("poisson"):
            # p_k / p_(k-1) = (lambda / k)^(1 / tau): probabilities rise as long as k < lambda, whatever tau is.
            rate = np.logaddexp(0.0, outputs) + LEAST_LAMBDA
            atoms = np.clip(np.ceil(rate) - 1.0, 0.0, self._atoms - 1)
            return self._atoms - 1 - atoms if self._head == "poisson_mirrored" else atoms
        table = outputs.reshape(*outputs.shape[:-1], self.dimensions, -1)
        if self._head == "ordinal":
            table = np.concatenate([np.zeros((*table.shape[:-1], 1)), table.cumsum(axis=-1)], axis=-1)
        return table.argmax(axis=-1)


class ModePlayer(GreedyPlayer):
    """Plays the most probable action: an `palaestra.core.run.opponents.Opponent`.

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
        self._policy = UnitPolicy(arrays)
        ((self._role, size),) = roster.sizes.items()
        found = (self._policy.inputs, self._policy.dimensions)
        if found != (size, roster.actions) or not roster.gives_numbers:
            raise ValueError(
                f"the policy sees {found[0]} numbers and gives {found[1]}; {team} of {game.name} sees {size} and gives "
                f"{roster.actions}"
            )

    def numbers(self, observations: np.ndarray) -> np.ndarray:
        """Numbers ``[n, A, D]`` whose ranges are scaled to [-1, 1], of observations ``[n, A, I]``."""
        return self._policy(observations)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        return self.best(self._role, self.numbers(observations), None)


def policy_arrays(model: PPO, lanes: Lanes) -> dict[str, np.ndarray]:
    """Layers, what the head is, and the scale of observations by now: all copies."""
    policy: Any = model.policy
    head = policy.action_net
    is_ordered = isinstance(head, OrderedHead)
    layers = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)]
    layers.append(head.linear if is_ordered else head)
    arrays: dict[str, np.ndarray] = {}
    for number, layer in enumerate(layers):
        parts = {"weight": layer.weight, "bias": layer.bias}
        arrays |= {f"layer_{number}.{name}": part.detach().numpy().copy() for name, part in parts.items()}
    if is_ordered:
        arrays[f"layer_{len(layers) - 1}.bias"] = (head.linear.bias.double() + head.start).detach().numpy()
        if head.is_poisson:
            arrays["tau"] = head.log_tau.detach().exp().numpy()
    arrays["head"] = np.array(float(ALL_HEADS.index(head.head if is_ordered else GAUSSIAN)))
    arrays["atoms"] = np.array(float(head.atoms if is_ordered else 2))
    if lanes.statistics is not None:
        arrays["mean"] = lanes.statistics.mean.copy()
        arrays["deviation"] = np.sqrt(lanes.statistics.var + lanes.venv.epsilon)  # type: ignore[attr-defined]
        arrays["bound"] = np.array(lanes.venv.clip_obs)  # type: ignore[attr-defined]
    return arrays


def load_policy(path: Path, game: Game, team: str) -> ModePlayer:
    """The player of a policy file.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return ModePlayer(arrays, game, team)


# ----------------------------------------------------------------------------------------------------------- training


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    The draws of a rollout start from the seed and the number of decisions before it.

    Args:
        args: Arguments of the run.
        evaluation: What evaluations measure in one of our games; the mean return if None.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        lanes = Lanes(args)
        model, steps, updates, cpu_s = make_model(args, lanes), folder.steps, 0, 0.0
        lanes.seed((args.seed << 32) + (0 if args.is_ours else folder.steps))  # resumed episodes are new ones
        if folder.before:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
                lanes.restore(folder.before["lanes"])
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        while True:
            if folder.is_due(steps):
                counts = {"steps": steps, "updates": updates}
                figures = record(args, folder, model, lanes, evaluation, counts, cpu_s)
                shown = "  ".join(f"{name} {value:.5g}" for name, value in figures.items())
                folder.progress.say(f"{steps:9d} decisions: {shown}")
            if steps >= args.total_steps:
                break
            began_s, share = time.process_time(), steps / args.total_steps
            set_random_seed((args.seed * 1_000_003 + steps) % 2**32)
            rate, model.ent_coef = linear_schedule(args.learning_rate, share), linear_schedule(args.entropy, share)
            model.lr_schedule = lambda _, rate=rate: rate
            if isinstance(model.policy.action_net, OrderedHead):
                model.policy.action_net.anneal(share)
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
    """Evaluates, and writes policy, curve and checkpoint; returns what was measured."""
    arrays = policy_arrays(model, lanes)
    if lanes.sim is None:
        figures = {
            "return": float(np.mean(play_gymnasium(args.env_id, UnitPolicy(arrays), args.matches, args.options)))
        }
    else:
        game = lanes.sim.game
        player = ModePlayer(arrays, game, next(iter(game.teams)))
        figures = evaluation(lambda _: player) if evaluation else mean_return(args, player)
    played = lanes.take_returns()
    figures = {**figures, "training_return": float(np.mean(played)) if played else float("nan")}
    facts = {"args": args.settings, "figures": figures, **counts}
    save_policy(args.folder / WEIGHTS, arrays, method=METHOD, env_id=args.env_id, **facts)
    state = {"model": model.get_parameters(), "lanes": lanes.state(), "updates": counts["updates"], "cpu_s": cpu_s}
    folder.record({**counts, **figures, "cpu_s": cpu_s}, state)
    return figures


def mean_return(args: Args, player: ModePlayer) -> dict[str, float]:
    """Mean return in matches that no training plays."""
    options: dict[str, Any] = {"matches": args.matches, "num_envs": args.matches, "seed": EVALUATION_SEED}
    table = evaluate(args.env_id, player, **options, **keywords(args.options))
    return {"return": float(table.results["return_a"].mean())}


def main(argv: Sequence[str] | None = None) -> None:
    """Trains, and says where the policy is."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    print(report)
    if args.is_ours:
        print(evaluation_hint(args, report.weights, None))
    else:
        returns = play_gymnasium(
            args.env_id, UnitPolicy(read_policy(report.weights)[0]), 20, args.options, 2 * EVALUATION_SEED
        )
        print(
            f"return of the most probable actions in 20 new episodes: {np.mean(returns):.1f} +- {np.std(returns):.1f}"
        )


if __name__ == "__main__":
    main()
