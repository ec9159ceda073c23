"""MAPPO whose matches are played by Ray actors, on this machine or on a cluster: three marines learn to beat a script.

    pip install "palaestra[ray,baselines]"
    python examples/mappo_on_ray.py --actors 2

Networks, losses and advantages are those of `palaestra_baselines.mappo`; new here are what an actor plays and keeps
(`Player`) and the loop of a learner that reads `palaestra.scale.sample`. A batch may be a few versions of the policy
old when it is learnt from: the actors keep the probabilities of what they did, and PPO's ratio does the rest. On a
cluster give ``--address``, and put this file where all machines can import it.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra.scale.sampler import Batch, sample
from palaestra_baselines.common.agents import Roster, one_team_roster
from palaestra_baselines.common.flat_networks import Utilities, masked_log_softmax
from palaestra_baselines.common.rollout import OBSERVATIONS, Position, Sequences, draw_actions
from palaestra_baselines.common.training import gradient_step
from palaestra_baselines.mappo import (
    Args,
    Critic,
    ValueScale,
    entropy_of,
    log_chosen,
    log_policy,
    policy_loss,
    read_rollout,
    sequences,
    value_loss,
)

TEAM, HIDDEN = "red", (64, 64)
RATE, ENTROPY = 1e-3, 0.01


def roster_of(game: Game) -> Roster:
    """The agents that learn."""
    return one_team_roster(Roster, game, TEAM)


class Player:
    """What plays the lanes of an actor: a `palaestra.scale.sampler_actor.Policy`."""

    def __init__(self, sim: Simulation, rng: np.random.Generator) -> None:
        torch.set_num_threads(1)
        self.roster, self.rng = roster_of(sim.game), rng
        self.network = Utilities(self.roster, HIDDEN)

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        """Takes the learner's weights."""
        self.network.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})

    def observe(self, sim: Simulation) -> dict[str, np.ndarray]:
        """A `Position` by name, and who won the match that is over."""
        roster = self.roster
        seen, legal = roster.read_observations(sim), roster.read_legal(sim)
        flags = roster.read_alive(sim), roster.read_asked(sim), sim.states["steps"] == 0
        return {**Position(seen, legal, *flags, sim.state()).named(), "winner": sim.info["winner"]}

    @torch.no_grad()
    def act(self, sim: Simulation, observed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws legal actions."""
        position = position_of({name: torch.from_numpy(value) for name, value in observed.items()})
        logits = self.network(position.observations)
        actions = draw_actions(self.rng, position.legal.numpy(), logits.numpy())
        self.roster.write_actions(sim, actions)
        logs = log_chosen(masked_log_softmax(logits, position.legal), torch.from_numpy(actions))
        return {"actions": actions.astype(np.uint8), "log_probabilities": logs.numpy()}


def policy(sim: Simulation, rng: np.random.Generator) -> Player:
    """What actors import."""
    return Player(sim, rng)


def position_of(tensors: Mapping[str, torch.Tensor]) -> Position:
    """The position among the arrays of `Player.observe`."""
    named = Position.__dataclass_fields__
    return Position.from_named({n: x for n, x in tensors.items() if n.startswith(OBSERVATIONS) or n in named})


class Learner:
    """Policy and critic, and how they learn from a batch."""

    def __init__(self, args: Args, game: Game) -> None:
        torch.manual_seed(args.seed)
        self.args, self.roster = args, roster_of(game)
        self.network, self.scale = Utilities(self.roster, HIDDEN), ValueScale(args.value_decay)

    def weights(self) -> dict[str, np.ndarray]:
        """What the actors need."""
        return {name: value.numpy() for name, value in self.network.state_dict().items()}

    def standardise(self, batch: Batch) -> None:
        """Makes the critic, and scales the inputs of both networks by a first batch."""
        position = position_of({name: torch.tensor(value) for name, value in batch.arrays.items()})
        seen = {role: rows.flatten(0, 1).numpy() for role, rows in position.observations.items()}
        states = position.state.flatten(0, 1).numpy()
        self.critic = Critic(states.shape[-1], HIDDEN)
        self.network.standardise(seen)
        self.critic.standardise(states)
        self.optimizers = [torch.optim.Adam(n.parameters(), fused=True) for n in (self.network, self.critic)]

    def learn(self, batch: Batch) -> None:
        """Some epochs of MAPPO's two losses on one batch."""
        args, tensors = self.args, {name: torch.tensor(value) for name, value in batch.arrays.items()}
        position = position_of(tensors)
        rollout = Sequences(
            position,
            (position.alive & ~position.first[..., None])[..., None].float(),
            tensors["actions"].long(),
            tensors["rewards"][..., self.roster.slots[:1]],  # one reward for the team
            1.0 - tensors["terminated"].float(),
            tensors["running"].float(),
        )
        samples = read_rollout(rollout, self.network, self.critic, self.scale, args, team=0)
        samples = replace(samples, old=tensors["log_probabilities"])
        for _ in range(args.epochs):
            for numbers in torch.randperm(args.rollout * args.lanes).tensor_split(args.minibatches):
                some = samples.at(*sequences(numbers, 1, args.lanes))
                logs = log_policy(self.network, some)
                chosen = log_chosen(logs, some.actions)
                loss = policy_loss(chosen, some.old, some.advantages, some.acts, args.clip)
                loss = loss - ENTROPY * entropy_of(self.network, logs, some)
                error = value_loss(self.critic(some.states), some.values, some.targets, some.weights, args.clip)
                for optimizer, value in zip(self.optimizers, (loss, error), strict=True):
                    gradient_step(optimizer, value, RATE, args.max_gradient_norm)


def train(options: argparse.Namespace) -> None:
    """Trains for some updates and prints a line after each."""
    torch.set_num_threads(1)
    args = Args(lanes=options.lanes, rollout=options.length, seed=options.seed)
    learner = Learner(args, registry.make_game(options.env_id)[0])
    sizes = {"actors": options.actors, "lanes": args.lanes, "length": args.rollout, "depth": options.depth}
    where = {"address": options.address, "seed": options.seed}
    rivals = {"blue": options.opponent}
    with sample(options.env_id, "mappo_on_ray:policy", learner.weights(), opponents=rivals, **sizes, **where) as stream:
        learner.standardise(next(stream))
        first = stream.publish(learner.weights())  # earlier batches saw other inputs
        batches = (batch for batch in stream if batch.version >= first)
        decisions, began = 0, time.monotonic()
        for update, batch in zip(range(1, options.updates + 1), batches, strict=False):
            lag = stream.version - batch.version
            learner.learn(batch)
            stream.publish(learner.weights())
            decisions += int(batch.arrays["running"].sum())
            over = batch.arrays["terminated"] | batch.arrays["truncated"]
            won = batch.arrays["winner"][1:][over] == 0
            win_rate = won.mean() if won.size else 0.0
            rate = decisions / (time.monotonic() - began)
            print(
                f"update {update}: {decisions} decisions, {win_rate:.0%} of {won.size} matches won, "
                f"policy {lag} versions old, {rate:.0f} decisions/s, {stream.losses} actors lost",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--actors", type=int, default=2, help="processes that play")
    parser.add_argument("--address", help="of a Ray cluster (auto, ip:6379); without one it is started here")
    parser.add_argument("--updates", type=int, default=100, help="batches to learn from")
    parser.add_argument("--lanes", type=int, default=64, help="matches at once in an actor")
    parser.add_argument("--length", type=int, default=64, help="decisions of a lane in a batch")
    parser.add_argument("--depth", type=int, default=1, help="batches of an actor that are in work or wait")
    parser.add_argument("--env-id", default="palaestra/Skirmish-3m-v0", help="game whose teams are red and blue")
    parser.add_argument("--opponent", default="builtin", help="script of blue")
    parser.add_argument("--seed", type=int, default=0, help="number of the run")
    train(parser.parse_args())
