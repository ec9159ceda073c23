"""PPO of Stable-Baselines3 for any environment: the agents of a team share one policy of their own observations.

Schulman et al., "Proximal Policy Optimization Algorithms" (arXiv 1707.06347), on `palaestra.adapters.sb3`. A row of the
batch is an agent: it sees its own observation and earns its own reward, or its team's where rewards are shared. Agents
of unlike roles are padded to one space. The other teams are played by a script (``--opponent``). Nothing is tuned, and
forbidden alternatives are not masked; they are the no-op. It is the first thing to try::

    palaestra train ppo --env-id CartPole
    palaestra train ppo --env-id TeamTag --team chaser
    palaestra eval TeamTag --a runs/ppo/TeamTag-v0/seed_0/last.safetensors --b default

Observations and actions are those of the game, not scaled. Learning rate and entropy coefficient fall linearly. The
curve has the share of the matches that the most probable actions win and their mean return. A resumed run goes on
bitwise as it would have.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnvWrapper

from palaestra import registry
from palaestra.adapters.sb3 import as_vec_env
from palaestra.core.run.opponents import Opponent
from palaestra.game import Game
from palaestra.players.model_player import ModelPlayer
from palaestra.players.sb3_archives import Sb3Network
from palaestra_baselines.common.agents import check_observation, keywords
from palaestra_baselines.common.policy_file import arrays_to_layers, policy_for, read_policy, save_policy
from palaestra_baselines.common.rollout import matches_state, restore_matches
from palaestra_baselines.common.run_folder import WEIGHTS, RunFolder
from palaestra_baselines.common.training import (
    Evaluation,
    LaneArgs,
    Report,
    learning_command,
    linear_schedule,
    measure_team,
)
from palaestra_baselines.poisson_ppo import make_ppo
from palaestra_baselines.ppo_tracking import layer_arrays

METHOD = "ppo"


@dataclass
class Args(LaneArgs):
    """Arguments, beside those of `LaneArgs`.

    Attributes:
        team: Name of the team that learns; empty for the first one.
        opponent: Plays the other teams: a script, with its strength, "default", "random" or the file of a policy.
        rollout: Decisions of each lane between two updates.
        epochs: Passes over a rollout.
        minibatches: Gradient steps of an epoch.
        clip: How far an update may change the probability of an action.
        gae_lambda: Decay of generalised advantage estimation.
        entropy: Coefficient of the entropy, at the start and at the end; falls linearly.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LaneArgs.MAY_BE_ZERO, "entropy")
    SHARES: ClassVar[tuple[str, ...]] = (*LaneArgs.SHARES, "clip", "gae_lambda")

    env_id: str = "palaestra/CartPole-v0"
    opponent: str = "default"
    total_steps: int = 300_000
    lanes: int = 64
    rollout: int = 64
    epochs: int = 4
    minibatches: int = 16
    clip: float = 0.2
    gae_lambda: float = 0.95
    entropy: tuple[float, float] = (0.01, 0.0)
    max_gradient_norm: float = 0.5
    directory: Path = Path("runs/ppo/{env_id}")

    def fit_to_game(self) -> None:
        """See `LaneArgs`; names the team that learns."""
        super().fit_to_game()
        if not self.team:
            game, _ = registry.make_game(self.env_id, **keywords(self.options))
            self.team = next(iter(game.teams))

    def check(self) -> None:
        """Looks at the arguments.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        super().check()
        game, _ = registry.make_game(self.env_id, **keywords(self.options))
        if self.team not in game.teams:
            raise ValueError(f"--team is one of {', '.join(game.teams)}, got {self.team!r}")
        if len(game.teams) > 2:
            raise ValueError(f"{game.name} has {len(game.teams)} teams: this method learns games of one or two")
        for slot in game.teams[self.team]:
            check_observation(game, game.role_of(slot)[0])
        if bool(self.opponent) != (len(game.teams) == 2):
            wanted = "is for games of two teams" if self.opponent else "says who plays the other team"
            raise ValueError(f"{game.name}: --opponent {wanted}, got {self.opponent!r}")
        if self.lanes * self.rollout % self.minibatches:
            raise ValueError(
                f"--minibatches must divide the {self.lanes * self.rollout} decisions of a rollout, "
                f"got {self.minibatches}"
            )


class Lanes(VecEnvWrapper):
    """Matches that go on from rollout to rollout: Stable-Baselines3 resets its environment in each ``learn``.

    Attributes:
        sim: The simulation.
    """

    def __init__(self, args: Args) -> None:
        """Starts the matches.

        Raises:
            ValueError: Stable-Baselines3 has no policy for these actions.
        """
        given: dict[str, Any] = {"opponent": args.opponent} if args.opponent else {}
        given |= {"team": args.team, "agents": "rows", "observation": "flat", **keywords(args.options)}
        vec = as_vec_env(args.env_id, args.lanes, **given)
        super().__init__(vec)
        self.sim, self._rows = vec.sim, vec.rows
        vec.seed(args.seed << 32)
        vec.reset()

    def reset(self) -> Any:
        """Shows where the matches are."""
        return self._rows.observe()

    def step_wait(self) -> Any:
        """Plays one decision."""
        return self.venv.step_wait()


# ------------------------------------------------------------------------------------------------------------- policy


def policy_arrays(model: PPO) -> dict[str, np.ndarray]:
    """The layers of the action: copies."""
    policy: Any = model.policy
    linear = [m for m in policy.mlp_extractor.policy_net if isinstance(m, torch.nn.Linear)] + [policy.action_net]
    return layer_arrays([(m.weight.detach().numpy().copy(), m.bias.detach().numpy().copy()) for m in linear])


def player(arrays: Mapping[str, np.ndarray], actions: str, game: Game, team: str) -> Opponent:
    """The player of a team that takes the most probable actions.

    Args:
        arrays: Layers as `policy_arrays` gives them.
        actions: Class of the space of the actions: ``Discrete``, ``MultiDiscrete`` or ``Box``.
        game: The rules.
        team: Name of the team.

    Raises:
        ValueError: The policy is one of another game.
    """
    network = Sb3Network(METHOD, "actor-critic", "Box", actions, arrays_to_layers(arrays), "Tanh")
    return ModelPlayer(network, agents="rows").for_team(game, team)


def load_policy(path: Path, game: Game, team: str) -> Opponent:
    """The player of a policy file; called by `palaestra.core.run.opponents.load_policy`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        return player(arrays, str(read_policy(path)[1].get("actions")), game, team)


# ----------------------------------------------------------------------------------------------------------- training


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files as in `palaestra_baselines.fm3q.train`.

    The draws of a rollout start from the seed and the number of decisions before it.

    Args:
        args: Arguments of the run.
        evaluation: What evaluations measure; matches against ``args.opponent`` if None.
    """
    torch.set_num_threads(1)
    args = dataclasses.replace(args)
    args.fit_to_game()
    with RunFolder(args, METHOD) as folder:
        lanes = Lanes(args)
        model = make_ppo(args, "MlpPolicy", lanes)
        steps, updates, cpu_s = folder.steps, 0, 0.0
        if folder.before:
            with folder.restoring():
                model.set_parameters(folder.before["model"], device="cpu")
                restore_matches(lanes.sim, folder.before["matches"])
                updates, cpu_s = folder.before["updates"], folder.before["cpu_s"]
        while True:
            if folder.is_due(steps):
                counts = {"steps": steps, "updates": updates}
                figures = record(args, folder, model, lanes, evaluation, counts, cpu_s)
                shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
                folder.progress.say(f"{steps:9d} decisions: {shown}")
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
    """Evaluates, and writes policy, curve and checkpoint; returns what was measured."""
    game, arrays, actions = lanes.sim.game, policy_arrays(model), type(lanes.action_space).__name__
    player_of = partial(player, arrays, actions, game)
    figures = evaluation(player_of) if evaluation else measure_team(args, game, args.team, player_of(args.team))
    facts = {"args": args.settings, "figures": figures, "actions": actions, **counts}
    save_policy(args.folder / WEIGHTS, arrays, method=METHOD, env_id=args.env_id, **facts)
    state = {"model": model.get_parameters(), "matches": matches_state(lanes.sim), "updates": counts["updates"]}
    folder.record({**counts, **figures, "cpu_s": cpu_s}, {**state, "cpu_s": cpu_s})
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
