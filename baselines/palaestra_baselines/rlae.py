"""RLAE: PPO and MAPPO over the weights of an ensemble of language models.

Fu et al., "RLAE: Reinforcement Learning-Assisted Ensemble for LLMs" (arXiv 2506.00439) write one text with K language
models. The state is an embedding of the text so far and the position of the span; the action K weights, held for a span
of 8 tokens; each token is the most probable one of the weighted sum of the models' distributions over the union of
their vocabularies; the reward is whether the answer is right, at its end. One agent gives all weights (PPO), or one
agent for each model its own (MAPPO), with a learning rate of 1e-4, gamma 0.99, clipping at 0.2 and entropy 0.01.

The code that the authors released takes the weights themselves for probabilities: its ratio is the new weight over the
old one, no action is drawn, and no value is subtracted from the return. A weight is not the probability of anything
that happened, so that its gradient is not that of the expected return, and it is not PPO.

Ours: the policy is a normal distribution over the *logits* of the weights, whose softmax is part of the environment; an
action is a draw from it, its density gives the ratio, and a value gives the advantages. With ``--agents one`` PPO is
that of Stable-Baselines3 on `palaestra.adapters.sb3`; with ``--agents each`` it is `palaestra_baselines.mappo`, whose
loss is the same::

    rho = exp(log N(u; mean(o), deviation) - log N(u; mean_old(o), deviation_old))
    policy:  -mean min(rho A, clip(rho, 1 - c, 1 + c) A) - entropy coefficient * entropy

A state is what the environment shows: features of the span's domain, the models' entropies, and the position. Learning
rates and sizes are ours. Greedy play gives the means. The paper's state is the whole text so far; ours shows one span,
so that where spans before tell more agents need a recurrent state. Both kinds of agents then learn by MAPPO: with one
agent it is PPO with a recurrent policy::

    python -m palaestra_baselines.rlae --agents one
    python -m palaestra_baselines.rlae --agents each
    python -m palaestra_baselines.rlae --agents one --recurrent --options spans=12 domain_stay=0.95 feature_noise=1.0
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed

from palaestra import registry
from palaestra.adapters.sb3 import SimulationVecEnv, as_vec_env
from palaestra.core.run.opponents import Opponent
from palaestra.evaluation import evaluate
from palaestra_baselines import mappo
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.flat_networks import DEVIATION, UtilityPlayer
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.run_folder import WEIGHTS, RunFolder
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report, learning_command, linear_schedule
from palaestra_baselines.poisson_ppo import make_ppo

METHOD = "rlae"
GAME = "LLMEnsemble"
WHO = {"one": ("palaestra/LLMEnsemble-v0", "agent"), "each": ("palaestra/LLMEnsemble-Multi-v0", "expert")}
"""Environment and team by the agents that decide."""


load_policy = mappo.load_policy
"""The player of a policy file, which gives the means of the logits."""


@dataclass
class Args(mappo.Args):
    """Arguments beside those of `palaestra_baselines.mappo.Args`, which both agents share.

    With one agent that has no recurrent state the critic has the widths and the rate of the policy: arguments of the
    critic mean nothing.

    Attributes:
        agents: ``one`` gives the logits of all models; ``each`` gives that of its own.
        env_id: Environment; that of `agents` if empty.
        team: Likewise.
    """

    agents: Literal["one", "each"] = "one"
    env_id: str = ""
    team: str = ""
    opponent: str = ""
    total_steps: int = 200_000
    lanes: int = 128
    rollout: int = 12
    chunk: int = 12
    evaluations: int = 10
    matches: int = 1024
    directory: Path = Path("runs/rlae/{env_id}")

    def __post_init__(self) -> None:
        """Fills in what `agents` says."""
        env_id, team = WHO[self.agents]
        self.env_id, self.team = self.env_id or env_id, self.team or team

    @property
    def by_sb3(self) -> bool:
        """Whether PPO is that of Stable-Baselines3, which has no recurrent state."""
        return self.agents == "one" and not self.recurrent

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be, or another game; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **keywords(self.options))
        if not game.name.startswith(GAME) or list(game.teams) != [WHO[self.agents][1]]:
            raise ValueError(
                f"--agents {self.agents} weights the models of {WHO[self.agents][0]}, got --env-id {self.env_id}: give "
                "the other --agents, or leave --env-id out (mappo learns real numbers in other games)"
            )
        if self.opponent:
            raise ValueError(f"--opponent {self.opponent}: nobody plays against an ensemble, leave it out")
        if self.network != "flat":
            raise ValueError("--network entity reads units, an ensemble has none: leave --network out")
        if self.by_sb3 and self.lanes * self.rollout % self.minibatches:
            raise ValueError(f"--lanes times --rollout must be a multiple of --minibatches, got {self.minibatches}")


def make_model(args: Args, vec: SimulationVecEnv) -> PPO:
    """PPO of random weights."""
    space: Any = vec.action_space
    log_std = math.log(DEVIATION * space.high.max())
    return make_ppo(args, "MlpPolicy", vec, activation_fn=torch.nn.ReLU, log_std_init=log_std)


def policy_arrays(model: PPO) -> dict[str, np.ndarray]:
    """The mean of the policy by names of `palaestra_baselines.common.flat_networks`, ranges scaled to [-1, 1]."""
    policy: Any = model.policy
    layers = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)] + [policy.action_net]
    named = {"place_bias": torch.zeros(1, layers[0].out_features)}
    for number, layer in enumerate(layers):
        named |= {f"layer_{number}.weight": layer.weight, f"layer_{number}.bias": layer.bias}
    half = torch.from_numpy(model.action_space.high)  # type: ignore[attr-defined]
    last = f"layer_{len(layers) - 1}"
    named |= {f"{last}.weight": named[f"{last}.weight"] / half[:, None], f"{last}.bias": named[f"{last}.bias"] / half}
    return {f"{WHO['one'][1]}.{name}": array.detach().numpy().copy() for name, array in named.items()}


def train_one(args: Args, evaluation: Evaluation | None) -> Report:
    """PPO with one agent.

    Lanes and draws start anew after each evaluation, from the seed and the number of decisions: a checkpoint holds the
    weights alone, and a resumed run goes on bitwise as it would have.
    """
    torch.set_num_threads(1)
    with RunFolder(args, METHOD) as folder:
        vec = as_vec_env(args.env_id, args.lanes, **keywords(args.options))
        model, steps, updates, cpu_s = make_model(args, vec), folder.steps, 0, 0.0
        if folder.before:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        while True:
            if folder.is_due(steps):
                arrays, counts = policy_arrays(model), {"steps": steps, "updates": updates}
                player = UtilityPlayer(arrays, vec.sim.game, args.team)
                figures = evaluation(lambda _, player=player: player) if evaluation else mean_return(args, player)
                facts = {"method": METHOD, "env_id": args.env_id, "args": args.settings, "figures": figures}
                save_policy(args.folder / WEIGHTS, arrays, **facts, **counts)
                state = {"model": model.get_parameters(), "updates": updates, "cpu_s": cpu_s}
                folder.record({**counts, **figures, "cpu_s": cpu_s}, state if steps < args.total_steps else None)
                folder.progress.say(f"{steps:9d} decisions: {figures}")
            if steps >= args.total_steps:
                break
            began_s = time.process_time()
            steps += learn_until_due(args, folder, model, vec, steps)
            updates += model.num_timesteps // (args.lanes * args.rollout) * args.epochs * args.minibatches
            cpu_s += time.process_time() - began_s
        vec.close()
    last = folder.rows[-1]
    return Report(args.folder / WEIGHTS, steps, int(last["updates"]), last["cpu_s"], folder.rows)


def learn_until_due(args: Args, folder: RunFolder, model: PPO, vec: SimulationVecEnv, steps: int) -> int:
    """Learns from the decisions until the next evaluation; returns their number, a multiple of a rollout's."""
    done = steps * args.evaluations // args.total_steps + 1
    wanted = math.ceil(done * args.total_steps / args.evaluations) - steps
    set_random_seed((args.seed * 1_000_003 + steps) % 2**32)
    vec.seed((args.seed << 32) + steps)

    def schedule(*_: Any) -> bool:
        share = (steps + model.num_timesteps) / args.total_steps
        model.ent_coef = linear_schedule(args.entropy, share)
        model.lr_schedule = lambda _: linear_schedule(args.learning_rate, share)
        folder.progress.update(steps + model.num_timesteps)
        return True

    model.learn(wanted, callback=schedule)
    return model.num_timesteps


def mean_return(args: Args, player: Opponent) -> dict[str, float]:
    """Share of right tokens in matches that no training plays."""
    options: dict[str, Any] = {"matches": args.matches, "num_envs": args.matches, "seed": EVALUATION_SEED}
    table = evaluate(args.env_id, player, **options, **keywords(args.options))
    return {"return": float(table.results["return_a"].mean())}


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`."""
    return train_one(args, evaluation) if args.by_sb3 else mappo.train(args, evaluation, METHOD)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
