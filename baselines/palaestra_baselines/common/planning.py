"""Model predictive control by sampling in the world models of a team (MPPI), and the player that plans.

Plans of H decisions of all agents are drawn around a mean, the plan of the decision before shifted by one, beside plans
that the actor plays in the model (Williams et al., arXiv 1509.01149; Hansen et al., arXiv 2310.16828). A plan is worth

    G = mean_i sum_{t<H} gamma^t r_i(z_t, a_t) + gamma^H Q(z_H, actor(z_H))

The models know no end of a match: plans are valued as if it went on. The elites, the plans of greatest G, give the next
mean and deviation of each agent, by weights exp((G - max G) / (temperature * range of values)). At the end one elite is
drawn by weight and its first decision is played; exploration adds noise of the last deviation. ``decentralised`` agents
choose elites of their own, by r_i and Q_i alone: elites of the whole team would be communication.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, NamedTuple, get_args

import numpy as np
import torch

from palaestra.game import Game
from palaestra.players.choosing import Chance
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import fitting_network, load_arrays
from palaestra_baselines.common.world_models import Design, Masks, Mode, Sight, WorldModel

LEAST_DEVIATION = 0.05
"""Of the numbers of a plan."""
CHUNK = 16
"""Matches that a player plans at once, filled up: what it plays does not depend on how many are played beside it."""
MOST = 1 << 16
"""Most numbers of the draws of a plan that a player from a file may have."""
WORDS: dict[str, tuple[str, ...]] = {"mode": get_args(Mode), "actor_sees": get_args(Sight)}
"""What fields of a design that are words may be."""


class Plan(NamedTuple):
    """What is played, and what is to come.

    Attributes:
        actions: ``[n, A, M]``, scaled, in [-1, 1].
        following: Mean of the plan, shifted to the next decision: ``[n, A, H * M]``.
        values: ``[n, A]``, G of the best plan, of the team or of each agent.
    """

    actions: torch.Tensor
    following: torch.Tensor
    values: torch.Tensor


class Draws(NamedTuple):
    """Random numbers of a plan, all standard normal; see `split_draws`.

    Attributes:
        places: ``[A, n]``: their ranks are the places in the order.
        actor: ``[H, A, n, actor samples, M]``.
        samples: ``[iterations, H, A, n, other samples, M]``.
        choice: ``[n, A]``, of the elite that is played.
        noise: ``[A, n, M]``, of exploration and of an actor that plays alone.
    """

    places: torch.Tensor
    actor: torch.Tensor
    samples: torch.Tensor
    choice: torch.Tensor
    noise: torch.Tensor


def draws_shapes(design: Design, agents: int, numbers: int) -> dict[str, tuple[int, ...]]:
    """Shape of each of the `Draws` of one match, the axis of the matches left out."""
    h, others = design.horizon, design.samples - design.actor_samples
    planned = {
        "actor": (h, agents, design.actor_samples, numbers),
        "samples": (design.iterations, h, agents, others, numbers),
    }
    empty = {"actor": (0,), "samples": (0,)}
    return {"places": (agents,), **(planned if design.plan else empty), "choice": (agents,), "noise": (agents, numbers)}


def draws_size(design: Design, agents: int, numbers: int) -> int:
    """Random numbers of a plan of one match."""
    return sum(math.prod(shape) for shape in draws_shapes(design, agents, numbers).values())


def split_draws(normals: torch.Tensor, design: Design, agents: int, numbers: int) -> Draws:
    """The parts of standard normal draws ``[n, draws_size]``."""
    shapes = draws_shapes(design, agents, numbers)
    parts = normals.split([math.prod(shape) for shape in shapes.values()], 1)
    named = {name: part.unflatten(1, shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}
    if design.plan:
        named["actor"] = named["actor"].permute(1, 2, 0, 3, 4)
        named["samples"] = named["samples"].permute(1, 2, 3, 0, 4, 5)
    return Draws(**{**named, "places": named["places"].T, "noise": named["noise"].transpose(0, 1)})


@torch.no_grad()
def decide(
    model: WorldModel,
    observations: Mapping[str, torch.Tensor],
    before: torch.Tensor,
    normals: torch.Tensor,
    explore: bool,
) -> Plan:
    """Plans a decision in all lanes, or asks the actor where the design has no planner.

    Args:
        model: The world models.
        observations: ``[n, A_role, size]`` by role.
        before: ``[n, A, H * M]``, the mean with which planning begins: what came out of the decision before, or 0.
        normals: Standard normal draws ``[n, draws_size]``.
        explore: Whether noise is added, or the actor's action is drawn.
    """
    design, (agents, _, numbers) = model.design, model.counts.shape
    draws = split_draws(normals, design, agents, numbers)
    places = draws.places.argsort(0).argsort(0) if design.mode == "random" else torch.arange(agents)[:, None]
    masks = model.masks(places)
    latents = model.encode(model.read(observations))
    if not design.plan:
        actions, _ = model.act(latents, masks, draws.noise if explore else None)
        values = model.values(latents, actions).mean(0).expand(agents, -1)
        return Plan(actions.transpose(0, 1), torch.zeros_like(before), values.T)
    return search(model, latents, masks, before.unflatten(-1, (design.horizon, numbers)), draws, explore)


def search(
    model: WorldModel,
    latents: torch.Tensor,
    masks: Masks,
    before: torch.Tensor,
    draws: Draws,
    explore: bool,
) -> Plan:
    """The planner; see the module.

    Args:
        model: The world models.
        latents: ``[A, n, L]``.
        masks: Who sees whom.
        before: ``[n, A, H, M]``, the first mean.
        draws: Random numbers.
        explore: Whether noise is added.
    """
    design, (agents, _, numbers) = model.design, model.counts.shape
    mean = before.permute(2, 1, 0, 3)[..., None, :]  # [H, A, n, 1, M]
    deviation = torch.full_like(mean, design.deviation)
    counts = model.counts[:, :, None]
    own = actor_plans(model, latents, masks, draws.actor)
    own_worth = worth_of(model, latents, masks, own)
    elites = weights = best = torch.empty(0)
    for noise in draws.samples:
        drawn = (mean + deviation * noise).clamp(-1.0, 1.0) * counts  # [H, A, n, S - P, M]
        plans = torch.cat([own, drawn], -2)
        worth = torch.cat([own_worth, worth_of(model, latents, masks, drawn)], -1)  # [G, n, S]
        best, index = worth.topk(design.elites, -1)
        weights = ((best - best[..., :1]) / (design.temperature * model.value_range)).softmax(-1)
        index = index.expand(agents, -1, -1)[None, ..., None].expand(design.horizon, -1, -1, -1, numbers)
        elites, shares = plans.gather(3, index), weights[None, ..., None]
        mean = (shares * elites).sum(-2, keepdim=True)
        deviation = (
            (shares * (elites - mean) ** 2).sum(-2, keepdim=True).sqrt().clamp(LEAST_DEVIATION, design.deviation)
        )
    uniforms = 0.5 * (1.0 + torch.erf(draws.choice.T * 0.5**0.5))[: len(weights)]
    chosen = (weights.cumsum(-1) <= uniforms[..., None]).sum(-1).clamp(max=design.elites - 1)  # [G, n]
    actions = elites[0].gather(2, chosen.expand(agents, -1)[..., None, None].expand(-1, -1, 1, numbers))[:, :, 0]
    if explore:
        actions = (actions + deviation[0, :, :, 0] * draws.noise).clamp(-1.0, 1.0) * model.counts
    shifted = torch.cat([mean[1:], torch.zeros_like(mean[:1])])[..., 0, :]
    return Plan(
        actions.transpose(0, 1), shifted.permute(2, 1, 0, 3).flatten(2), best[..., 0].expand(agents, -1).T.contiguous()
    )


def actor_plans(model: WorldModel, latents: torch.Tensor, masks: Masks, noise: torch.Tensor) -> torch.Tensor:
    """Plans ``[H, A, n, P, M]`` that the actor plays in the model, by draws of the same shape."""
    number = noise.shape[-2]
    many, sees, plans = latents.repeat_interleave(number, 1), masks.repeated(number), []
    for step, part in enumerate(noise):
        actions, _ = model.act(many, sees, part.flatten(1, 2))
        plans.append(actions.unflatten(1, part.shape[1:3]))
        if step + 1 < len(noise):
            many, _ = model.step(many, actions, sees)
    return torch.stack(plans)


def worth_of(model: WorldModel, latents: torch.Tensor, masks: Masks, plans: torch.Tensor) -> torch.Tensor:
    """G ``[1, n, S]`` of the team, or ``[A, n, S]`` of each decentralised agent, of plans ``[H, A, n, S, M]``."""
    count, number = plans.shape[2:4]
    total, discount = torch.zeros(len(latents), count * number), 1.0
    latents, masks = latents.repeat_interleave(number, 1), masks.repeated(number)
    for actions in plans.flatten(2, 3):
        latents, rewards = model.step(latents, actions, masks)
        total = total + discount * model.two_hot.decode(rewards)
        discount *= model.design.gamma
    actions, _ = model.act(latents, masks, None)
    values = model.values(latents, actions).mean(0)
    total = total.mean(0, keepdim=True) if len(values) == 1 else total
    return (total + discount * values).unflatten(1, (count, number))


# --------------------------------------------------------------------------------------------------------- the player


class PlanningPlayer:
    """Plays a team by planning, or by the actor alone: an `palaestra.core.run.opponents.Opponent`.

    Draws come from the seed of the lane and the number of the decision, so that a match repeats to the bit.

    Attributes:
        memory_size: The number of the decision, and the plan of each agent.
        policy_outputs: What it expects to earn, ``"value"``.
    """

    def __init__(self, model: WorldModel, team: str) -> None:
        """Keeps the model, whose agents are those of the team."""
        self.model, self.team = model, list(model.roster.game.teams).index(team)
        self.agents, _, self.numbers = model.counts.shape
        self.memory_size = 1 + self.agents * self.numbers * model.design.horizon
        self.policy_outputs = dict[str, np.ndarray]()

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        roster, count = self.model.roster, len(memory)
        seen = observations if isinstance(observations, dict) else {next(iter(roster.sizes)): observations}
        size = draws_size(self.model.design, self.agents, self.numbers)
        normals = Chance(seeds, memory[:, 0], 1, self.team).normals(size).astype(np.float32)
        before = memory[:, 1:].astype(np.float32).reshape(count, self.agents, -1)
        parts = []
        for start in range(0, count, CHUNK):
            rows = np.minimum(np.arange(start, start + CHUNK), count - 1)
            chunk = {name: torch.from_numpy(np.ascontiguousarray(seen[name][rows])) for name in roster.sizes}
            parts.append(
                decide(self.model, chunk, *map(torch.from_numpy, (before[rows], normals[rows])), explore=False)
            )
        actions, following, values = (torch.cat(x)[:count].numpy() for x in zip(*parts, strict=True))
        memory[:, 0] += 1
        memory[:, 1:] = following.reshape(count, -1)
        self.policy_outputs = {"value": values}
        chosen = {name: roster.joint[name].split(actions[:, columns]) for name, columns in roster.columns.items()}
        return next(iter(chosen.values())) if len(chosen) == 1 else chosen


def make_player(arrays: Mapping[str, np.ndarray], design: Design, game: Game, team: str) -> PlanningPlayer:
    """The player of a team by weights.

    Args:
        arrays: As `WorldModel.arrays` gives them.
        design: What they are of.
        game: The rules.
        team: Name of the team.

    Raises:
        ValueError: The weights were made for another game.
    """
    roster = Roster(game, [team], numbers=True)
    design.check()
    if draws_size(design, roster.agents, roster.actions) > MOST:
        raise ValueError(f"its planner draws more than {MOST} numbers for a decision")
    model = fitting_network(lambda: WorldModel(roster, design), arrays)
    load_arrays(model, arrays)
    return PlanningPlayer(model, team)


def design_of(notes: Any) -> Design:
    """The design in the metadata of a policy file, which may be anybody's.

    Raises:
        ValueError: It is none, or a word or number of it cannot be.
    """
    if not isinstance(notes, dict) or set(notes) != {f.name for f in fields(Design)}:
        raise ValueError("the metadata hold no design of world models: it was not saved by this version of seqwm")
    for f in fields(Design):
        if not is_possible(f, notes[f.name]):
            raise ValueError(f"{f.name} of the policy's design is {reprlib.repr(notes[f.name])}")
    given: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in notes.items()}
    design = Design(**given)
    design.check()
    return design


def is_possible(f: Field[Any], value: Any) -> bool:
    """Whether a value from JSON has kind and size of this field of a design."""
    if f.name in WORDS:
        return value in WORDS[f.name]
    if f.type == "bool":
        return isinstance(value, bool)
    if f.type == "float":
        low, high = (0.0, 1.0) if f.name == "gamma" else (1e-6, 80.0)
        return type(value) in (int, float) and low <= value <= high
    sizes = value if isinstance(value, list) else [value]
    is_kind = isinstance(value, list) == (f.type != "int") and bool(sizes)
    return is_kind and all(type(size) is int and 1 <= size <= MOST for size in sizes)
